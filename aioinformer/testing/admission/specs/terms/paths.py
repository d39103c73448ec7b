"""Validation of file paths in volumes and of file modes."""

from __future__ import annotations

from posixpath import isabs
from typing import TYPE_CHECKING

from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODES = range(0o777 + 1)


def mode(value: int | None, path: str) -> Iterator[Cause]:
    """Check an optional file mode."""
    if value is not None and value not in _MODES:
        yield Cause.invalid(path, str(value), "must be a number between 0 and 0777 (octal), both inclusive")


def no_parent_steps(place: str, path: str) -> Iterator[Cause]:
    """Check that a path does not contain ".."."""
    if ".." in place.split("/"):
        yield Cause.invalid(path, quote(place), "must not contain '..'")


def descending_path(place: str, path: str) -> Iterator[Cause]:
    """Check that a path is relative and does not contain ".."."""
    if isabs(place):
        yield Cause.invalid(path, quote(place), "must be a relative path")
    yield from no_parent_steps(place, path)


def unreserved_path(place: str, path: str) -> Iterator[Cause]:
    """Check that a path is relative, does not contain "..", and is not reserved for the kubelet."""
    yield from descending_path(place, path)
    if place.startswith("..") and not place.startswith("../"):
        yield Cause.invalid(path, quote(place), "must not start with '..'")
