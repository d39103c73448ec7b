"""Listers: how to read a cache. Plain calls on local memory, from any thread."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from aioinformer.errors import IndexNotFound, NotFound, UsageError
from aioinformer.objects import labels_of
from aioinformer.selectors import LabelSelector, nothing, parse_label_selector
from aioinformer.store import NAMESPACE_INDEX, Indexer

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable

    from aioinformer.resources import Resource

T = TypeVar("T")

Selector: TypeAlias = str | LabelSelector

_NOTHING = nothing()
_log = logging.getLogger(__name__)


class _Reader(Generic[T]):
    def __init__(self, indexer: Indexer[T], resource: Resource[T]) -> None:
        self._indexer = indexer
        self._resource = resource

    def _select(self, items: Callable[[], list[Any]], selector: Selector) -> builtins.list[T]:
        selector = parse_label_selector(selector) if isinstance(selector, str) else selector
        if selector == _NOTHING:  # LST-01: nothing is looked at for nothing
            return []
        found = items()
        if not selector.empty:
            matches = selector.matches
            found = [item for item in found if matches(labels_of(item))]
        return self._indexer.presented(found)

    def _get(self, key: str, name: str) -> T:
        obj = self._indexer.get_by_key(key)
        if obj is None:
            raise NotFound(self._resource.group_resource, name)
        return obj


class ClusterLister(_Reader[T]):
    """Reads the cache of a cluster-scoped resource.

    Objects are immutable; lists are the caller's own and in no order.
    """

    def list(self, selector: Selector = "") -> builtins.list[T]:
        """All objects, or those whose labels match.

        Args:
            selector: as kubectl takes it, `"app=web,tier in (a,b)"`, or a parsed one.

        Raises:
            SelectorError: the selector does not parse.
        """
        return self._select(self._indexer.cells.items, selector)

    def get(self, name: str) -> T:
        """The object of this name.

        Raises:
            NotFound: the cache does not hold it.
        """
        return self._get(name, name)


class NamespaceLister(_Reader[T]):
    """Reads one namespace of a cache; costs what the namespace holds, not what the cache holds."""

    def __init__(self, indexer: Indexer[T], resource: Resource[T], namespace: str) -> None:
        super().__init__(indexer, resource)
        self._namespace = namespace

    def list(self, selector: Selector = "") -> builtins.list[T]:
        """All objects of the namespace, or those whose labels match.

        Raises:
            SelectorError: the selector does not parse.
        """
        return self._select(self._items, selector)

    def get(self, name: str) -> T:
        """The object of this name in the namespace.

        Raises:
            NotFound: the cache does not hold it.
        """
        return self._get(f"{self._namespace}/{name}", name)

    def _items(self) -> builtins.list[Any]:
        cells = self._indexer.cells
        try:
            return cells.indexed(NAMESPACE_INDEX, self._namespace)
        except IndexNotFound:  # LST-02
            _log.warning(
                "an indexer without the index %r is read by namespace: every object is looked at", NAMESPACE_INDEX
            )
            prefix = f"{self._namespace}/"
            return [item for key, item in cells.snapshot() if key.startswith(prefix)]


class Lister(ClusterLister[T]):
    """Reads the cache of a namespaced resource, all of it or a namespace at a time."""

    def get(self, key: str) -> T:
        """The object under a key, `namespace/name`.

        Raises:
            NotFound: the cache does not hold it.
        """
        return self._get(key, key)

    def namespaced(self, namespace: str) -> NamespaceLister[T]:
        """The lister of one namespace.

        Raises:
            UsageError: no namespace is given.
        """
        if not namespace:
            raise UsageError('namespaced("") means nothing: name a namespace, or use the lister itself for all of them')
        return NamespaceLister(self._indexer, self._resource, namespace)
