"""Warnings for clients: collected while a request is answered, sent as `Warning` headers."""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


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
