"""Errors as Problem Details for HTTP (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from aioinformer.authorization.users import AccessDenied, Unauthenticated
from aioinformer.errors import AioinformerError, ApiError, ApiNotFound, NotFound, SelectorError, Stale, TransportError
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger

_errors = RepeatedErrors(get_logger("aioinformer.web"))

#: The errors that become problems, see `problem`.
HANDLED: Final = (NotFound, SelectorError, Stale, Unauthenticated, AccessDenied, ApiError, TransportError)


class Problem(msgspec.Struct, frozen=True):
    """An answer about an error, as plain data.

    Attributes:
        status: of the response.
        detail: what was wrong, and what to do.
        headers: of the response, without the type.
    """

    status: int
    detail: str
    headers: Mapping[str, str] = {}

    @property
    def body(self) -> bytes:
        """The JSON of the response."""
        title = HTTPStatus(self.status).phrase
        found = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return msgspec.json.encode(found)

    def all_headers(self) -> dict[str, str]:
        """Return the headers with the type. No cache keeps the answer."""
        return {"Content-Type": "application/problem+json", "Cache-Control": "no-store", **self.headers}


def problem(error: AioinformerError) -> Problem:
    """Return the answer about an error.

    | error | status |
    |---|---|
    | `NotFound` | 404 |
    | `SelectorError` | 400 |
    | `Unauthenticated` | 401; 503 if that cannot be found out now |
    | `AccessDenied` | 403 |
    | `Stale`, `TransportError` | 503 |
    | one with `status` and `headers` of its own, as those of streams | that status |
    | another `ApiError` | 502: what the API server says to this service is logged, and is not for its users |

    Other errors of this package are mistakes of the program: 500, without a text.
    """
    match error:
        case ApiNotFound():
            return Problem(404, f"{error.group_resource} {error.name!r} not found")
        case NotFound():
            return Problem(404, str(error))
        case SelectorError():
            return Problem(400, str(error))
        case Stale():
            return Problem(503, str(error), {"Retry-After": "1"})
        case TransportError():
            _report(error)
            return Problem(503, "the service does not reach its cluster now", {"Retry-After": "1"})
        case ApiError():
            _report(error)
            return Problem(502, "the cluster refused a request of this service")
        case _ if hasattr(error, "headers") and hasattr(error, "status"):
            return Problem(error.status, str(error), error.headers)
        case _:
            return Problem(500, "the service made a mistake; its log says more")


def _report(error: Any) -> None:
    kind = type(error).__name__
    _errors.report(kind, error, "a request was answered with an error: %s: %s", kind, error, level=logging.WARNING)
