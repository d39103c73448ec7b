"""The errors of the framework.

```
AioinformerError
├── UsageError                a mistake in the calling program; the message says what to do
│   ├── InformerStopped       a method was called that a stopped informer does not support
│   ├── OptionError           an option has an invalid value (also a ValueError)
│   ├── UnknownOption         a keyword argument does not exist (also a TypeError)
│   ├── SelectorError         a label or field selector is invalid (also a ValueError)
│   └── IndexNotFound         no index has this name (also a KeyError)
├── NotFound                  the object is not in the cache (also a KeyError)
├── AlreadyOwned              the object has another controller
│   └── FormerOwner           its controller is the former object of the same name
├── Stale                     a cache has not followed the server for too long
├── FIFOClosed                the queue is closed and empty
├── KeyFuncError              an object has no valid key
├── DecodeError               the server sent bytes that cannot be decoded
│   └── FrameTooLarge         an object is larger than the configured limit
├── ProcessingError           objects from the server could not be put into the cache
├── TransportError            the server was not reached, or the connection broke
│   └── WriteOutcomeUnknown   a write was sent, and its answer was lost
└── ApiError                  the server answered with an error
    ├── ApiNotFound           404: the object or the resource does not exist (also a NotFound)
    ├── Forbidden             403: the user may not do that
    ├── Conflict              409: the object has changed since the version that the write names, or fields are owned
    ├── AlreadyExists         409: an object of this name exists
    ├── Invalid               422: the object breaks rules of its kind, by field
    ├── TooManyRequests       429: the server asks to wait, or an eviction would break a disruption budget
    ├── Gone                  410: what was requested no longer exists
    │   └── Expired           410: the server no longer has the requested version
    └── ResourceVersionTooLarge   the server does not have the requested version yet
```
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from aioinformer.exports import lazy_exports
from aioinformer.logs import visible

#: Exceptions of users' functions that are caught. KeyboardInterrupt and SystemExit are not: they end the program.
USER_ERRORS: Final = (Exception, GeneratorExit)

E = TypeVar("E", bound="ApiError")

_MAX_LENGTH = 1000
#: The message of a conflict between field managers.
_MANAGER: Final = re.compile(r'(?:conflict with "((?:[^"\\]|\\.)*)")?.*', re.DOTALL)


class AioinformerError(Exception):
    """Base class of the errors that this package raises on purpose.

    `str()` returns one line without control characters, even if the message quotes a server, a plugin or a file. It is
    safe to print and to log.
    """

    def __str__(self) -> str:
        return visible(Exception.__str__(self))  # KeyError.__str__ would add quotes


class UsageError(AioinformerError):
    """The calling program made a mistake; the message says what to do instead."""


class InformerStopped(UsageError):
    """The informer has stopped; a stopped informer cannot be started again."""


class OptionError(UsageError, ValueError):
    """An option has an invalid value; the message names the option and its valid values."""


class UnknownOption(UsageError, TypeError):
    """A keyword argument does not exist; the message names it, the most similar one, and all that exist."""


class SelectorError(UsageError, ValueError):
    """A selector does not follow the grammar of Kubernetes."""


class IndexNotFound(UsageError, KeyError):
    """No index has this name."""


class NotFound(AioinformerError, KeyError):
    """The object is not in the cache. `reason` and `status` equal those of the API's own error.

    Args:
        group_resource: the resource, such as "deployments.apps".
        name: the name or key that was looked up.
        hint: what to do about it, "" for none.
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


class AlreadyOwned(AioinformerError):
    """An object cannot be given a controller, since it has another one.

    Args:
        name: of the object.
        kind: of its controller.
        controller: the name of its controller.
        uid: of its controller.
    """

    _text = "{} already has another controller: {} {}"

    def __init__(self, name: str, kind: str, controller: str, uid: str = "") -> None:
        super().__init__(self._text.format(name or "the object", kind, controller, uid))
        self.name = name
        self.kind = kind
        self.controller = controller
        self.uid = uid

    def __reduce__(self) -> tuple[type[AlreadyOwned], tuple[str, str, str, str]]:
        return type(self), (self.name, self.kind, self.controller, self.uid)


class FormerOwner(AlreadyOwned):
    """An object belongs to a deleted object, whose name its successor has: the garbage collector is about to delete it.

    A reconciler that raises this error waits for the garbage collector: this is no failure, and is not counted.
    """

    _text = "{} belongs to the former {} {} (uid {})"


class Stale(AioinformerError):
    """A cache has not followed the server for longer than allowed.

    Args:
        subject: the informer, as logs name it.
        age: for how many seconds.
        cause: why: the state of the informer.

    Attributes:
        age: as given.
        cause: as given.
    """

    def __init__(self, subject: str, age: float, cause: str) -> None:
        super().__init__(f"{subject} has not followed the server for {age:.0f} s: {cause}")
        self.age = age
        self.cause = cause
        self._subject = subject

    def __reduce__(self) -> tuple[type[Stale], tuple[str, float, str]]:
        return type(self), (self._subject, self.age, self.cause)


class FIFOClosed(AioinformerError):
    """The queue is closed, and all its items have been popped."""


class KeyFuncError(AioinformerError):
    """A key function cannot make a key for an object; the cause is chained."""


class DecodeError(AioinformerError):
    """The server sent bytes that do not follow the API. The message never quotes content of objects.

    Attributes:
        key: `namespace/name` of the object, "" if that could not be read.
        version: its resourceVersion, "" if that could not be read.
        fields: path of each field that the class refuses -> why; {} if they are not known. Of several, a class of
            msgspec names the first one that it reads.
    """

    def __init__(
        self, message: str, *, key: str = "", version: str = "", fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.key = key
        self.version = version
        self.fields: Mapping[str, str] = fields or {}


class FrameTooLarge(DecodeError):
    """A line of a watch, or an item of a list, is larger than the configured limit."""


class ProcessingError(AioinformerError):
    """Objects from the server could not be put into the cache. The reflector relists after a delay."""


class TransportError(AioinformerError):
    """The server was not reached, or the connection broke before the response was complete. The cause is chained.

    Attributes:
        sent: whether the connection broke after the request was sent; False if that is not known. Transports set it.
            It distinguishes a watch whose connection was cut from a server that cannot be reached.
        unsent: whether the request was certainly not sent, so that the server cannot have processed it.
        transient: whether the same request may succeed in a moment: a server that starts refuses connections. An
            untrusted certificate or an unknown host name is not transient.
    """

    sent = False
    unsent = False
    transient = False


class WriteOutcomeUnknown(TransportError):
    """A write was sent, and its answer was lost: the server may have processed it or not. The cause is chained.

    It was not repeated. Read the object to find out, or repeat the write if processing it twice does no harm.
    """


class ApiError(AioinformerError):
    """The server answered with an error.

    Texts of the server are cut to 1,000 characters, and control characters in them are made visible.

    Attributes:
        status: the HTTP status, or the `code` of a Status object in a watch.
        reason: the machine-readable `reason` of the Status ("Forbidden"), or the HTTP phrase.
        message: the server's message.
        retry_after: seconds that the server asks to wait before the next request, or None.
        causes: the reasons in `details.causes` of the Status.
        hint: what this process knows of the reason, such as a token that has expired; "" for nothing.
        details: the `details` of the Status; {} if the server sent none.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        text = f"{status} {reason}: {message}" if message else f"{status} {reason}".strip()
        # Not super(): after this class, the order of ApiNotFound has NotFound, which has other arguments.
        Exception.__init__(self, f"{text}; {hint}" if hint else text)
        self.status = status
        self.reason = visible(reason)
        self.message = visible(message)
        self.retry_after = retry_after
        self.causes = tuple(map(visible, causes))
        self.hint = hint
        self.details: Mapping[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[E], arguments: tuple[Any, ...], state: dict[str, Any]) -> E:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def explained(error: E, hint: str) -> E:
    """Return an error of the server whose text also says what it means here, or what to do about it."""
    made = _restored(type(error), (f"{error}; {hint}",), error.__dict__)
    made.__cause__ = error.__cause__
    return made


class ApiNotFound(ApiError, NotFound):
    """404: the server does not have the object, or does not serve the resource.

    `except NotFound` catches this error and that of a lister, which says that the *cache* does not have the object.
    """

    @property
    def group_resource(self) -> str:  # type: ignore[override]
        """The resource, such as "deployments.apps"; "" if the server did not name it."""
        kind = _cut(self.details.get("kind"))
        group = _cut(self.details.get("group"))
        return f"{kind}.{group}" if group else kind

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the object; "" if the server did not name it."""
        return _cut(self.details.get("name"))


class Forbidden(ApiError):
    """403: the user may not do that, or admission refuses it."""


class FieldConflict(NamedTuple):
    """A field that an apply did not take over from the field manager that owns it; "" for what the server left out."""

    field: str
    manager: str
    message: str


class Conflict(ApiError):
    """409: the object has changed since the version or the uid that the write names. Read it again, and decide anew.

    Also an apply of fields that other field managers own, and every other 409 but `AlreadyExists`.
    """

    @property
    def conflicts(self) -> tuple[FieldConflict, ...]:
        """The fields that other managers own, after an apply; () after other writes."""
        causes = [cause for cause in _causes(self.details) if cause.get("reason") == "FieldManagerConflict"]
        shown = [(_shown(cause.get("field")), _shown(cause.get("message"))) for cause in causes]
        managers = [re.sub(r'\\(["\\])', r"\1", _MANAGER.sub(r"\1", text, 1)) for _, text in shown]
        return tuple(FieldConflict(field, by, text) for (field, text), by in zip(shown, managers, strict=True))


class AlreadyExists(ApiError):
    """409: an object of this name exists."""


class TooManyRequests(ApiError):
    """429: the server has too much to do, or an eviction would break a disruption budget."""


class StatusCause(msgspec.Struct, frozen=True):
    """Why one field is not valid.

    Attributes:
        field: the path of the field, "spec.replicas"; "" if the server named none.
        reason: for machines, "FieldValueInvalid".
        message: for people.
    """

    field: str
    reason: str
    message: str


class Invalid(ApiError):
    """422: the object breaks rules of its kind."""

    @property
    def fields(self) -> dict[str, tuple[StatusCause, ...]]:
        """The causes by the path of their field; {} if the server named none."""
        found: dict[str, tuple[StatusCause, ...]] = {}
        for entry in _causes(self.details):
            cause = StatusCause(_shown(entry.get("field")), _shown(entry.get("reason")), _shown(entry.get("message")))
            found[cause.field] = (*found.get(cause.field, ()), cause)
        return found


class Gone(ApiError):
    """410: what was requested no longer exists."""


class Expired(Gone):
    """410: the server no longer has the requested resourceVersion or continue token."""


class ResourceVersionTooLarge(ApiError):
    """The server does not have the requested resourceVersion yet; typical after a restore or a failover."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for a message about an unknown name, "did you mean pods?", or "" if no known name is similar."""
    from difflib import get_close_matches

    nearest = get_close_matches(name, list(known), n=1)
    return f"did you mean {nearest[0]}?" if nearest else ""


def api_error(
    status: int, body: Mapping[str, Any] | None = None, *, retry_after: float | None = None, hint: str = ""
) -> ApiError:
    """Return the error for an HTTP status and a `Status` object.

    Args:
        status: the HTTP status, or 0 to use the code of the body.
        body: the decoded `Status`, None if the server sent none.
        retry_after: seconds from the `Retry-After` header. Without it, `retryAfterSeconds` of the body is used.
        hint: of the transport; see `ApiError`.
    """
    body = body or {}
    code = body.get("code")
    status = status or (code if isinstance(code, int) and 100 <= code < 1000 else 500)
    reason = _cut(body.get("reason")) or _phrase(status)
    message = _cut(body.get("message"))
    details = body.get("details")
    details = details if isinstance(details, Mapping) else {}
    causes = tuple(_cut(cause.get("reason") or cause.get("message")) for cause in _causes(details))
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, (int, float)) and seconds > 0:
        retry_after = float(min(seconds, sys.maxsize))  # an integer of JSON may be too large for a float
    kind = _KINDS.get((status, reason)) or _KINDS.get((status, ""), ApiError)
    if status == 410 or reason in ("Expired", "Gone"):
        kind = Expired
    elif "ResourceVersionTooLarge" in causes or (
        # Servers before 1.19 send reason Timeout, and this text in the message.
        reason == "Timeout" and any("Too large resource version" in text for text in (message, *causes))
    ):
        kind = ResourceVersionTooLarge
    error = kind(status, reason, message, retry_after=retry_after, causes=causes, hint=hint)
    error.details = details
    return error


#: The classes of errors by status and reason. Those without a reason are for all other reasons of the status.
_KINDS: Final[Mapping[tuple[int, str], type[ApiError]]] = {
    (403, ""): Forbidden,
    (404, ""): ApiNotFound,
    (409, ""): Conflict,
    (409, "AlreadyExists"): AlreadyExists,
    (422, "Invalid"): Invalid,
    (429, ""): TooManyRequests,
}


def _causes(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = details.get("causes")
    return [cause for cause in (entries if isinstance(entries, (list, tuple)) else ()) if isinstance(cause, Mapping)]


def _shown(text: object) -> str:
    return visible(_cut(text))


def _phrase(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _cut(text: object) -> str:
    return str(text or "")[:_MAX_LENGTH]


def collapsed(error: BaseException) -> BaseException:
    """Return the exception in a group of one, at any depth; return any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
