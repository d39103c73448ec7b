"""What a client is to be warned of by those who know nothing of requests."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOLD: ContextVar[list[str] | None] = ContextVar("told", default=None)


@contextmanager
def collected(warnings: list[str]) -> Iterator[None]:
    """Lets warnings of the block be put into a list."""
    token = _TOLD.set(warnings)
    try:
        yield
    finally:
        _TOLD.reset(token)


def warn(text: str) -> None:
    """Warns whoever asked, once; nobody, if no request is being answered."""
    warnings = _TOLD.get()
    if warnings is not None and text not in warnings:
        warnings.append(text)
