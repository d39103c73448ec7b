"""A store that tells a function of everything in it after each change: client-go's UndeltaStore (UND-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.cache.store import Indexer
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

    from aioinformer.cache.indices import Indexers

T = TypeVar("T")


class UndeltaStore(Indexer[T]):
    """An indexer for those who want the whole and not the changes: a configuration to be written anew each time, say.

    The function is called within each write, after it, with all objects; what it raises reaches whoever wrote. Reads
    call nothing.

    Args:
        push: takes all objects.
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
        """Puts an object in; one with the same key is replaced."""
        super().add(obj)
        self._push(self.list())

    def delete(self, obj: Any) -> None:
        """Takes an object out, by its key; a tombstone will do."""
        super().delete(obj)
        self._push(self.list())

    def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """These are all objects there are."""
        super().replace(objects, resource_version)
        self._push(self.list())
