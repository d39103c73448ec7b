"""Errors of the API: HTTP status, `reason`, `message` and `details` of a `Status` object.

The wording is part of the contract: kubectl prints it, client-go's helpers compare it, and people search for it.
Functions of the server raise `StatusError` where the API refuses a request. Their docstrings say so if the status needs
an explanation.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

    from aioinformer.resources.resource import Resource

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@dataclass(frozen=True, slots=True)
class Cause:
    """What is wrong with one field.

    Attributes:
        reason: "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden" or "FieldValueNotSupported".
        field: path of the field, "metadata.name".
        message: the API's message, "Required value: …".
    """

    reason: str
    field: str
    message: str

    @classmethod
    def invalid(cls, field: str, value: str, why: str) -> Cause:
        return cls("FieldValueInvalid", field, f"Invalid value: {value}: {why}")

    @classmethod
    def required(cls, field: str, why: str = "") -> Cause:
        return cls("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")

    @classmethod
    def forbidden(cls, field: str, why: str) -> Cause:
        return cls("FieldValueForbidden", field, f"Forbidden: {why}")

    @classmethod
    def unsupported(cls, field: str, value: str, supported: Sequence[str]) -> Cause:
        known = ", ".join(f'"{name}"' for name in supported)
        return cls("FieldValueNotSupported", field, f"Unsupported value: {value}: supported values: {known}")

    @classmethod
    def too_many(cls, field: str, count: int, most: int) -> Cause:
        return cls("FieldValueTooMany", field, f"Too many: {count}: must have at most {most} items")

    @classmethod
    def too_long(cls, field: str, most: int) -> Cause:
        return cls("FieldValueTooLong", field, f"Too long: may not be more than {most} bytes")


class StatusError(Exception):
    """An error response.

    Attributes:
        reason: machine-readable, "" where the API gives none (internal errors).
        details: the `details` member, or None to leave it out.
        metadata: the `metadata` member; only expired continue tokens have one.
        retry_after: seconds for the `Retry-After` header, or None.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}
        self.retry_after = retry_after
        self.warnings: tuple[str, ...] = ()

    def body(self) -> dict[str, Any]:
        """Return the `Status` object, in the field order of the API."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def resource_details(resource: Resource[Any], name: str) -> dict[str, Any]:
    """Return `details` that name a resource (the API's `kind` there is the plural)."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource[Any], name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    details = resource_details(resource, name)
    if causes:
        details["causes"] = [_cause(cause) for cause in causes]
    subject = f"{resource.group_resource} {quote(name)}" if name else resource.group_resource
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=details)


def not_found(resource: Resource[Any], name: str) -> StatusError:
    message = f"{resource.group_resource} {quote(name)} not found"
    return StatusError(404, "NotFound", message, details=resource_details(resource, name))


def resource_not_found() -> StatusError:
    """Return 404: the group and version exist, the resource in it does not."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def already_exists(resource: Resource[Any], name: str, *, going: bool = False) -> StatusError:
    """Return 409: the name is taken, perhaps by an object that is being deleted."""
    message = f"{'object is being deleted: ' if going else ''}{resource.group_resource} {quote(name)} already exists"
    return StatusError(409, "AlreadyExists", message, details=resource_details(resource, name))


def conflict(resource: Resource[Any], name: str, why: str, *, kind: str = "") -> StatusError:
    """Return 409: an optimistic-concurrency failure.

    Args:
        kind: named instead of the resource; the API does so for preconditions of a deletion.
    """
    subject = kind or resource.group_resource
    details = {"name": name, "kind": kind} if kind else resource_details(resource, name)
    return StatusError(
        409, "Conflict", f"Operation cannot be fulfilled on {subject} {quote(name)}: {why}", details=details
    )


def object_modified(resource: Resource[Any], name: str) -> StatusError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def expired(message: str, *, metadata: dict[str, Any] | None = None) -> StatusError:
    return StatusError(410, "Expired", message, metadata=metadata)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return 422 with one cause for each invalid field.

    Args:
        kind: as in the message, "ConfigMap", or the resource for custom ones.
        group: API group, "" for the core group.
    """
    messages = [f"{cause.field}: {cause.message}" for cause in causes]
    unique = list(dict.fromkeys(messages))
    text = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [_cause(cause) for cause in causes]
    return StatusError(422, "Invalid", f"{qualified} {quote(name)} is invalid: {text}", details=details)


def invalid_object(resource: Resource[Any], name: str, causes: Sequence[Cause]) -> StatusError:
    """Return 422 for an object of a resource."""
    return invalid(resource.kind, resource.group, name, causes)


def internal_error(message: str) -> StatusError:
    """Return 500 without a reason, the API's response to unforeseen errors."""
    return StatusError(500, "", message)


def not_installed() -> StatusError:
    """Return 503: the server has just started and does not know all its paths."""
    message = "the request has been made before all known HTTP paths have been installed, please try again"
    return StatusError(503, "ServiceUnavailable", message, details={"retryAfterSeconds": 5}, retry_after=5)


def version_too_large(asked: int, current: int) -> StatusError:
    """Return 504: the requested version has not happened yet."""
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        retry_after=1,
    )


def _cause(cause: Cause) -> dict[str, str]:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}


@contextmanager
def collected(warnings: list[str]) -> Iterator[None]:
    """Collect the warnings of the block in a list."""
    token = _COLLECTED.set(warnings)
    try:
        yield
    finally:
        _COLLECTED.reset(token)


def warn(text: str) -> None:
    """Warn the client of the current request, once per text; without a request, do nothing."""
    warnings = _COLLECTED.get()
    if warnings is not None and text not in warnings:
        warnings.append(text)


def warning_headers(warnings: Sequence[str]) -> list[str]:
    """Return a `Warning` header for each text. Texts with control characters are left out."""
    plain = (each for each in warnings if not _CONTROL.search(each))
    return [f'299 - "{text}"' for text in (each.replace("\\", "\\\\").replace('"', '\\"') for each in plain)]


def with_warnings(answer: web.Response, warnings: Sequence[str]) -> web.Response:
    """Add warnings to a response and return it."""
    for header in warning_headers(warnings):
        answer.headers.add("Warning", header)
    return answer
