"""Listers read a cache: synchronous calls that access local memory only, from any thread."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from aioinformer.cache.objects.fields import field_filter, parse_path
from aioinformer.cache.objects.record import Record, labels_of
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.errors import NotFound, UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.resource import Resource
from aioinformer.resources.selectors import (
    FieldSelector,
    LabelSelector,
    Operator,
    field_selector_of,
    label_selector_of,
    nothing,
)

T = TypeVar("T")

Selector: TypeAlias = str | LabelSelector | Mapping[str, str]

_NOTHING = nothing()
_log = get_logger("aioinformer.cache")


class CacheOwner(Protocol):
    """The part of an informer that the listers of its cache need."""

    def check_readable(self) -> None:
        """Raise UsageError if the informer was never started."""

    def check_absent(self, key: str) -> None:
        """Raise DecodeError if the object exists but does not decode, and so is not in the cache."""

    def undecodable(self) -> dict[str, str]:
        """Return the objects whose last version does not decode: key -> why."""

    def check_fresh(self, within: float) -> None:
        """Raise Stale if the cache has not followed the server within the last `within` seconds."""

    async def wait_for(self, written: Any, /, *, timeout: float | None = ...) -> Any:  # noqa: ASYNC109
        """Wait until the cache shows a write."""


class _Reader(Generic[T]):
    _namespace = ""

    def __init__(self, indexer: Indexer[T], resource: Resource[T], owner: CacheOwner | None = None) -> None:
        self._indexer = indexer
        self._resource = resource
        self._owner = owner

    def __repr__(self) -> str:
        where = f" in {self._namespace}" if self._namespace else ""
        return f"<{type(self).__name__} of {self._resource.gvr}{where}, {len(self._indexer)} objects in the cache>"

    def list(
        self, selector: Selector = "", *, field_selector: str | FieldSelector | Mapping[str, str] = ""
    ) -> builtins.list[T]:
        """Return all objects, or those that match the selectors. You own the list; its order is undefined.

        If a selector requires a value of a path that has an index (`indexers={"app": "metadata.labels.app"}`), only the
        objects with this value are visited, not the whole cache.

        Objects whose last version does not decode are missing, or in the list in an earlier version; `undecodable`
        returns their keys.

        Args:
            selector: of labels: text as for kubectl, `"app=web,tier in (a,b)"`; a mapping of required labels,
                `{"app": "web"}`; or a parsed selector.
            field_selector: of any fields: `"spec.nodeName=a,status.phase!=Running"`, a mapping of paths to values, or
                a parsed selector. Declared fields need no decoding.

        Raises:
            SelectorError: a selector does not parse.
            UsageError: the informer was never started, and its cache is empty.
        """
        labels = label_selector_of(selector)
        fields = field_selector_of(field_selector)
        if self._owner is not None and not len(self._indexer):
            self._owner.check_readable()
        if labels == _NOTHING:  # selects no object: visit none
            return []
        found = self._candidates(labels, fields)
        if not labels.empty:
            matches = labels.matches
            found = [item for item in found if matches(labels_of(item))]
        if not fields.empty:
            passes = field_filter(fields)
            found = [item for item in found if passes(item)]
        return self._indexer.to_views(found)

    async def after(
        self,
        written: Any,
        *,
        timeout: float | None = 30.0,  # noqa: ASYNC109 - an outage must not block a controller for ever
    ) -> Self:
        """Return this lister once its cache shows your write: `pods = (await lister.after(pod)).list()`.

        It waits as `informer.wait_for(written)` does. A write of an object that the informer does not watch, because of
        its namespace or selectors, needs no wait.

        Args:
            written: the object that the server has returned.
            timeout: in seconds, None for no limit.

        Raises:
            TimeoutError: the cache did not receive a write in time.
            InformerStopped: the informer stopped before that.
            DecodeError: an object cannot be decoded in the version of the write.
            UsageError: an object has no version, or the lister does not belong to an informer.
        """
        if self._owner is None:
            raise UsageError("after: this lister reads a store that no informer fills")
        await self._owner.wait_for(written, timeout=timeout)
        return self

    def fresh(self, *, within: float) -> Self:
        """Return this lister if its cache is fresh: `pods = lister.fresh(within=5).list()`.

        The cache is fresh while a watch follows the server. After a failure, it is as old as the failure. A connection
        that has silently died is noticed after the informer's `idle_timeout` at the latest, so the cache may be older
        than `within` by that time.

        Args:
            within: for how many seconds the cache may not have followed the server.

        Raises:
            Stale: it has not for longer, or has not synced; the error has `age` and `cause`.
            UsageError: `within` is not a number, 0 or more; the informer was never started; or the lister does not
                belong to an informer.
        """
        if type(within) not in (int, float) or not within >= 0:
            raise UsageError(f"fresh: within must be seconds, 0 or more, not {within!r}")
        if self._owner is None:
            raise UsageError("fresh: this lister reads a store that no informer fills")
        self._owner.check_readable()
        self._owner.check_fresh(within)
        return self

    def undecodable(self) -> builtins.list[str]:
        """Return the sorted keys of the objects whose last version does not decode, and so is not in `list`.

        An object whose body is decoded on first access is included after the first failed read. Objects without a
        readable name have no key; `informer.undecodable()` counts them, and returns the reasons.

        Raises:
            UsageError: the informer was never started, and its cache is empty.
        """
        if self._owner is None:
            return []
        if not len(self._indexer):
            self._owner.check_readable()
        prefix = f"{self._namespace}/" if self._namespace else ""
        return sorted(key for key in self._owner.undecodable() if key and key.startswith(prefix))

    def _candidates(self, labels: LabelSelector, fields: FieldSelector) -> builtins.list[Any]:
        """Return a superset of the items that match."""
        store = self._indexer.store
        namespace = self._namespace
        wanted: builtins.list[tuple[tuple[str, ...], str]] = [
            (("metadata", "labels", each.key), each.values[0])
            for each in labels.requirements
            if each.operator is Operator.EQUALS
        ]
        wanted += [(parse_path(each.path), each.value) for each in fields.requirements if not each.negated]
        wanted = [(steps, value) for steps, value in wanted if value]  # empty values are not indexed
        found = store.indexed_by_path(wanted, namespace) if wanted or namespace else None
        if found is None:
            if namespace:
                _log.warning(
                    "a list of one namespace visits every object: the indexer has no index %r", NAMESPACE_INDEX
                )
            found = store.items()
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
            obj = self._missed(key)
        if obj is None:
            raise NotFound(self._resource.group_resource, name, self._hint(name))
        return obj

    def _hint(self, name: str) -> str:
        """Return what is wrong with the form of a name or key; "" if nothing is."""
        if not self._resource.namespaced:
            if "/" in name:
                return "the resource is cluster-scoped, and has names without a slash"
            return ""
        if self._namespace:
            if "/" in name:
                return f"name it without its namespace: get({name.partition('/')[2]!r})"
            return ""
        return "" if "/" in name else f"its key has a namespace, as in get('default/{name}')"

    def _missed(self, key: str) -> T | None:
        owner = self._owner
        if owner is None:
            return None
        if not len(self._indexer):
            owner.check_readable()
        owner.check_absent(key)
        # An object that decodes again may have been cached between the first read and the check.
        return self._indexer.get_by_key(key)


class ClusterLister(_Reader[T]):
    """Reads the cache of a cluster-scoped resource.

    Objects are immutable. You own the lists; their order is undefined.
    """

    def get(self, name: str) -> T:
        """Return the object with this name.

        Raises:
            NotFound: it is not in the cache.
            DecodeError: it exists and its last version does not decode; no earlier version is in the cache.
            UsageError: the informer was never started, and its cache is empty.
        """
        return self._get(name, name)


class NamespaceLister(_Reader[T]):
    """Reads one namespace of a cache, and visits only the objects of that namespace."""

    def __init__(
        self, indexer: Indexer[T], resource: Resource[T], namespace: str, owner: CacheOwner | None = None
    ) -> None:
        super().__init__(indexer, resource, owner)
        self._namespace = namespace

    def get(self, name: str) -> T:
        """Return the object with this name in the namespace.

        Raises:
            NotFound: it is not in the cache.
            DecodeError: it exists and its last version does not decode; no earlier version is in the cache.
            UsageError: the informer was never started, and its cache is empty.
        """
        return self._get(f"{self._namespace}/{name}", name)


class Lister(ClusterLister[T]):
    """Reads the cache of a namespaced resource: all of it, or one namespace."""

    def get(self, key: str) -> T:
        """Return the object with the key `namespace/name`.

        Raises:
            NotFound: it is not in the cache.
            DecodeError: it exists and its last version does not decode; no earlier version is in the cache.
            UsageError: the informer was never started, and its cache is empty.
        """
        return self._get(key, key)

    def namespaced(self, namespace: str) -> NamespaceLister[T]:
        """Return the lister of one namespace.

        Raises:
            UsageError: the namespace is empty.
        """
        if not namespace:
            raise UsageError('namespaced(""): name a namespace, or use the lister itself for all namespaces')
        return NamespaceLister(self._indexer, self._resource, namespace, self._owner)
