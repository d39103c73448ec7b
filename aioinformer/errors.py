"""The errors of the framework, divided by whose fault they are.

```
AioinformerError
├── UsageError                the caller did something that cannot work; the message names the remedy
│   ├── InformerStopped       a stopped informer was asked to do something
│   ├── OptionError           an option has a value that makes no sense (also a ValueError)
│   ├── UnknownOption         a keyword argument that does not exist (also a TypeError)
│   ├── SelectorError         a label or field selector that does not parse (also a ValueError)
│   └── IndexNotFound         an index was asked for that was never added (also a KeyError)
├── NotFound                  a lister does not hold the object (also a KeyError)
├── FIFOClosed                the queue was closed and is empty
├── KeyFuncError              no key can be made of an object
├── DecodeError               bytes from the server that are not what they should be
│   └── FrameTooLarge         one object is larger than the configured cap
├── ProcessingError           what the server sent could not be taken into the cache
├── TransportError            the server was not reached, or the connection broke
└── ApiError                  the server answered with something other than success
    ├── Expired               410: the version asked for has left the server's window
    └── ResourceVersionTooLarge   the server has not reached the version asked for
```
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aioinformer.logs import visible

#: What a function of the user's may raise and only it fails by it. KeyboardInterrupt and SystemExit keep their meaning.
USER_ERRORS: Final = (Exception, GeneratorExit)
#: What anything may raise for want of memory or of stack, and not again a moment later.
EXHAUSTION: Final = (MemoryError, RecursionError)

_LONGEST = 1000


class AioinformerError(Exception):
    """Root of everything this package raises on purpose.

    `str()` of each is one line without control characters, whatever a server, a plugin or a file put into the message:
    it can be printed and logged as it is.
    """

    def __str__(self) -> str:
        return visible(Exception.__str__(self))  # not that of KeyError, which quotes


class UsageError(AioinformerError):
    """The caller asked for something that cannot work; the message says what to do instead."""


class InformerStopped(UsageError):
    """The informer has stopped; a stopped informer is never started again."""


class OptionError(UsageError, ValueError):
    """An option has a value that makes no sense; the message names the option and what it may be."""


class UnknownOption(UsageError, TypeError):
    """A keyword argument does not exist; the message names it, the nearest one that does, and all of them."""


class SelectorError(UsageError, ValueError):
    """A selector does not follow the grammar of Kubernetes."""


class IndexNotFound(UsageError, KeyError):
    """An index was asked for by a name under which none was added."""


class NotFound(AioinformerError, KeyError):
    """The cache does not hold the object; `reason` and `status` are those of the API's own answer.

    Args:
        group_resource: what was looked for.
        name: under which name or key.
        hint: what to do about it; "" for nothing.
    """

    reason = "NotFound"
    status = 404

    def __init__(self, group_resource: str, name: str, hint: str = "") -> None:
        super().__init__(f'{group_resource} "{name}" not found{hint and f"; {hint}"}')
        self.group_resource = group_resource
        self.name = name
        self._hint = hint

    def __reduce__(self) -> tuple[type[NotFound], tuple[str, str, str]]:
        return type(self), (self.group_resource, self.name, self._hint)


class FIFOClosed(AioinformerError):
    """The queue was closed, and everything that was in it has been popped."""


class KeyFuncError(AioinformerError):
    """No key can be made of an object; the cause is chained."""


class DecodeError(AioinformerError):
    """Bytes from the server are not what the API promises; the message never quotes object content.

    Attributes:
        key: `namespace/name` of the object concerned, or "" if not even that could be read.
        version: its resourceVersion, or "" if that could not be read.
    """

    def __init__(self, message: str, *, key: str = "", version: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.version = version


class FrameTooLarge(DecodeError):
    """One line of a watch, or one item of a list, is larger than the configured cap."""


class ProcessingError(AioinformerError):
    """What the server sent could not be taken into the cache; the collection is listed again, after a delay."""


class TransportError(AioinformerError):
    """No answer: the server was not reached, or the connection broke. The cause is chained.

    Attributes:
        sent: the request was sent, and the connection broke after that. A transport sets it; False if that is not
            known. A watch may wait for its head for long, and only a connection that stands can be cut.
    """

    sent = False


class ApiError(AioinformerError):
    """The server answered, and the answer is a failure.

    Attributes:
        status: the HTTP status, or the `code` of a Status object that came inside a stream.
        reason: the machine-readable `reason` of the Status ("Forbidden"), or the HTTP phrase.
        message: what the server said, cut to a sane length, with control characters made visible; `reason` and
            `causes` likewise.
        retry_after: seconds before which the server does not want to be asked again, or None.
        causes: reasons of `details.causes`, as in `ResourceVersionTooLarge`.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if message else f"{status} {reason}".strip())
        self.status = status
        self.reason = visible(reason)
        self.message = visible(message)
        self.retry_after = retry_after
        self.causes = tuple(map(visible, causes))


class Expired(ApiError):
    """410: the resource version or continue token is no longer in the server's history."""


class ResourceVersionTooLarge(ApiError):
    """The version asked for lies in the server's future; typical after a restore or a fail-over."""


def api_error(status: int, body: Mapping[str, Any] | None = None, *, retry_after: float | None = None) -> ApiError:
    """Makes the error that fits a `Status` object (or none) under an HTTP status.

    Args:
        status: the HTTP status, or 0 to take the code of the body.
        body: the decoded `Status`, as far as the server sent one.
        retry_after: seconds, from the `Retry-After` header; the body's own `retryAfterSeconds` is used without.
    """
    body = body or {}
    code = body.get("code")
    status = status or (code if isinstance(code, int) and 100 <= code < 1000 else 500)
    reason, message = _cut(body.get("reason")) or _phrase(status), _cut(body.get("message"))
    details = body.get("details")
    details = details if isinstance(details, Mapping) else {}
    entries = details.get("causes")
    causes = tuple(
        _cut(cause.get("reason") or cause.get("message"))
        for cause in (entries if isinstance(entries, (list, tuple)) else ())
        if isinstance(cause, Mapping)
    )
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, (int, float)) and seconds > 0:
        retry_after = float(min(seconds, sys.maxsize))  # integers of JSON may be too large for a float
    kind: type[ApiError] = ApiError
    if status == 410 or reason in ("Expired", "Gone"):
        kind = Expired
    elif "ResourceVersionTooLarge" in causes or (
        # Servers before 1.19 say it in words only, under reason Timeout.
        reason == "Timeout" and any("Too large resource version" in text for text in (message, *causes))
    ):
        kind = ResourceVersionTooLarge
    return kind(status, reason, message, retry_after=retry_after, causes=causes)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _cut(text: object) -> str:
    return str(text or "")[:_LONGEST]
