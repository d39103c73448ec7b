"""Paths of files in volumes, and their modes."""

from __future__ import annotations

from posixpath import isabs
from typing import TYPE_CHECKING

from aioinformer.testing.api.statuses import Cause, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODES = range(0o777 + 1)


def mode(value: int | None, path: str) -> Iterator[Cause]:
    """The mode of files, which may be left out."""
    if value is not None and value not in _MODES:
        yield Cause.invalid(path, str(value), "must be a number between 0 and 0777 (octal), both inclusive")


def no_way_back(place: str, path: str) -> Iterator[Cause]:
    """A path that never leads up."""
    if ".." in place.split("/"):
        yield Cause.invalid(path, shown(place), "must not contain '..'")


def descending_path(place: str, path: str) -> Iterator[Cause]:
    """A path that begins here and never leads up."""
    if isabs(place):
        yield Cause.invalid(path, shown(place), "must be a relative path")
    yield from no_way_back(place, path)


def unreserved_path(place: str, path: str) -> Iterator[Cause]:
    """The same, and nothing that kubelets keep for themselves."""
    yield from descending_path(place, path)
    if place.startswith("..") and not place.startswith("../"):
        yield Cause.invalid(path, shown(place), "must not start with '..'")
