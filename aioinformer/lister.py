"""Listers: how to read a cache. Plain calls on local memory, from any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from aioinformer.errors import NotFound, UsageError
from aioinformer.fields import field_filter, parse_path
from aioinformer.keys import meta_namespace_index_func
from aioinformer.logger import get_logger
from aioinformer.objects import Record, labels_of
from aioinformer.selectors import (
    FieldSelector,
    LabelSelector,
    Operator,
    nothing,
    parse_field_selector,
    parse_label_selector,
)
from aioinformer.store import NAMESPACE_INDEX, Indexer

if TYPE_CHECKING:
    import builtins

    from aioinformer.resources import Resource

T = TypeVar("T")

Selector: TypeAlias = str | LabelSelector

_NOTHING = nothing()
_log = get_logger(__name__)


class _Reader(Generic[T]):
    _namespace = ""

    def __init__(self, indexer: Indexer[T], resource: Resource[T]) -> None:
        self._indexer = indexer
        self._resource = resource

    def list(self, selector: Selector = "", *, field_selector: str | FieldSelector = "") -> builtins.list[T]:
        """All objects, or those that match.

        An index by a path (`indexers={"app": "metadata.labels.app"}`) is used where the selectors ask for a value of
        it: the list costs what has that value, not what the cache holds.

        Args:
            selector: of labels, as kubectl takes it, `"app=web,tier in (a,b)"`, or a parsed one.
            field_selector: of any field, `"spec.nodeName=a,status.phase!=Running"`; declared ones cost no decoding.

        Raises:
            SelectorError: a selector does not parse.
        """
        labels = parse_label_selector(selector) if isinstance(selector, str) else selector
        if labels == _NOTHING:  # LST-01: nothing is looked at for nothing
            return []
        fields = parse_field_selector(field_selector) if isinstance(field_selector, str) else field_selector
        found = self._candidates(labels, fields)
        if not labels.empty:
            matches = labels.matches
            found = [item for item in found if matches(labels_of(item))]
        if not fields.empty:
            passes = field_filter(fields)
            found = [item for item in found if passes(item)]
        return self._indexer.presented(found)

    def _candidates(self, labels: LabelSelector, fields: FieldSelector) -> builtins.list[Any]:
        """Items among which are all that match."""
        cells, namespace = self._indexer.cells, self._namespace
        wanted: builtins.list[tuple[tuple[str, ...], str]] = [
            (("metadata", "labels", each.key), each.values[0])
            for each in labels.requirements
            if each.operator is Operator.EQUALS
        ]
        wanted += [(parse_path(each.path), each.value) for each in fields.requirements if not each.negated]
        wanted = [(steps, value) for steps, value in wanted if value]  # what is empty is not in the index
        found = cells.indexed_by_path(wanted, namespace) if wanted or namespace else None
        if found is None:
            if namespace:  # LST-02
                _log.warning("an indexer without %r is read by namespace: every object is looked at", NAMESPACE_INDEX)
            found = cells.items()
        elif not wanted:
            return found
        return [item for item in found if self._is_mine(item)] if namespace else found

    def _is_mine(self, item: Any) -> bool:
        if isinstance(item, Record):
            return item.namespace == self._namespace
        return meta_namespace_index_func(item)[0] == self._namespace

    def _get(self, key: str, name: str) -> T:
        obj = self._indexer.get_by_key(key)
        if obj is None:
            raise NotFound(self._resource.group_resource, name)
        return obj


class ClusterLister(_Reader[T]):
    """Reads the cache of a cluster-scoped resource.

    Objects are immutable; lists are the caller's own and in no order.
    """

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

    def get(self, name: str) -> T:
        """The object of this name in the namespace.

        Raises:
            NotFound: the cache does not hold it.
        """
        return self._get(f"{self._namespace}/{name}", name)


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
