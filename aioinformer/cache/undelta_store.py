"""`UndeltaStore`: a store that calls a function with all objects after each change, like client-go's."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from aioinformer.cache.indices import Indexers
from aioinformer.cache.store import Indexer
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func

T = TypeVar("T")


class UndeltaStore(Indexer[T]):
    """An indexer that passes all objects to a function after each write, for example to render a configuration file.

    The function runs before the write returns, and its exceptions reach the caller of the write.

    Args:
        push: called with all objects.
        key_func: object -> key.
        indexers: index functions by name.
    """

    def __init__(
        self,
        push: Callable[[builtins.list[T]], Any],
        key_func: Callable[[Any], str] = deletion_handling_meta_namespace_key_func,
        indexers: Indexers[T] | None = None,
    ) -> None:
        super().__init__(key_func, indexers)
        self._push = push

    def add(self, obj: Any) -> None:
        """Add an object, or replace the one with the same key."""
        super().add(obj)
        self._push(self.list())

    def delete(self, obj: Any) -> None:
        """Remove an object, or the one that a tombstone names."""
        super().delete(obj)
        self._push(self.list())

    def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """Replace all objects."""
        super().replace(objects, resource_version)
        self._push(self.list())
