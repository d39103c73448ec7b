"""The objects of a server, for code in the same process: read and changed without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer.functions import plain_function
from aioinformer.resources.resource import Resource
from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.state.cluster import Cluster

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served


class Contents:
    """The objects of a server. Each method is a plain call, complete when it returns, that obeys the API's rules.

    One rule is relaxed: required fields may be missing, so that a test need not write complete pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._registry = cluster.store.registry

    def create(
        self, resource: str | Resource[Any], obj: Mapping[str, Any], namespace: str | None = None
    ) -> dict[str, Any]:
        """Create an object as a client would, and return it as stored.

        Args:
            resource: "pods", "deployments.apps", "apps/v1/deployments" or a `Resource`.
            obj: is not changed; kind and apiVersion may be omitted.
            namespace: the default is the namespace of the object, or "default".

        Raises:
            StatusError: the API would refuse this.
        """
        served = self._registry.resolve(resource)
        copy = _copy(obj)
        writer = self._cluster.writer
        writer.check(served, copy)
        body = writer.create(served, _namespace(served, obj, namespace), copy, whole=False)
        return _decoded(served.body(body))

    def load(self, resource: str | Resource[Any], objects: Iterable[Mapping[str, Any]]) -> None:
        """Store objects as they are, status and timestamps included, as if they had always been there.

        Raises:
            StatusError: a name is missing or malformed.
        """
        served = self._registry.resolve(resource)
        for obj in objects:
            self._cluster.load(served, _copy(obj))

    def load_manifests(self, path: str | Path) -> int:
        """Load the objects of a file or a folder, and return their number.

        Objects that `save_manifests` wrote are restored unchanged. Other objects are created or replaced as a client
        would do it, definitions and namespaces first; missing namespaces are created.

        Args:
            path: a `.yaml`, `.yml` or `.json` file, or a folder with such files.

        Raises:
            UsageError: an object cannot be read, is not served, or is refused; the message names it.
        """
        from aioinformer.testing.state.manifests import load_manifests

        return load_manifests(self._cluster, Path(path))

    def save_manifests(self, folder: str | Path) -> None:
        """Write all objects, one file for each resource. kubectl accepts the files, and `load_manifests` restores them.

        Raises:
            UsageError: the folder cannot be written to.
        """
        from aioinformer.testing.state.manifests import all_bodies, write_manifests

        write_manifests(Path(folder), all_bodies(self._cluster), self._cluster.store.storage.version)

    def get(self, resource: str | Resource[Any], name: str, namespace: str | None = None) -> dict[str, Any]:
        """Return a copy of an object.

        Raises:
            StatusError: 404.
        """
        served = self._registry.resolve(resource)
        return _decoded(served.body(self._cluster.store.get(served, _namespace(served, {}, namespace), name).body))

    def list(self, resource: str | Resource[Any], namespace: str = "") -> list[dict[str, Any]]:
        """Return copies of all objects of one namespace, or of all, in the order of a list response."""
        served = self._registry.resolve(resource)
        records = self._cluster.store.collection(served).records(namespace)
        return [_decoded(served.body(record.body)) for record in records]

    def update(
        self,
        resource: str | Resource[Any],
        obj: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> dict[str, Any]:
        """Replace an object as a client would; if it has a resourceVersion, only if that is the current one.

        Args:
            resource: as for `create`.
            obj: is not changed.
            namespace: as for `create`.
            subresource: "" or "status".

        Raises:
            StatusError: the API would refuse this.
        """
        served = self._registry.resolve(resource)
        name = str((obj.get("metadata") or {}).get("name") or "")
        where = _namespace(served, obj, namespace)
        copy = _copy(obj)
        writer = self._cluster.writer
        writer.check(served, copy)
        body = writer.update(served, where, name, copy, subresource=subresource, whole=False)
        return _decoded(served.body(body))

    def patch(
        self,
        resource: str | Resource[Any],
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
    ) -> dict[str, Any]:
        """Patch an object as a client would.

        Args:
            resource: as for `create`.
            name: of the object.
            patch: a mapping, or a list of operations for a JSON patch.
            namespace: the default is "default".
            content_type: the media type of the patch.
            subresource: "" or "status".

        Raises:
            StatusError: the API would refuse this.
        """
        from aioinformer.testing.http.writing.bodies import WriteOptions
        from aioinformer.testing.http.writing.patching import patch_object
        from aioinformer.testing.ownership.managers import Manager
        from aioinformer.testing.patches.media_types import APPLY_PATCH

        served = self._registry.resolve(resource)
        where = _namespace(served, {}, namespace)
        how = "Apply" if content_type == APPLY_PATCH else "Update"
        by = Manager("aioinformer", how, served.resource.api_version, subresource)
        body, _ = patch_object(
            self._cluster,
            served,
            where,
            name,
            encode_plain(patch),
            content_type,
            WriteOptions(by, "Warn", whole=False),
            subresource=subresource,
        )
        return _decoded(served.body(body))

    def delete(
        self, resource: str | Resource[Any], name: str, namespace: str | None = None, *, propagation_policy: str = ""
    ) -> dict[str, Any]:
        """Delete an object as a client would, or mark it for deletion if it has finalizers. Return its last state.

        Args:
            resource: as for `create`.
            name: of the object.
            namespace: the default is "default".
            propagation_policy: what happens to its dependents: "Background", "Foreground", "Orphan", or "" for the
                default of the resource.

        Raises:
            StatusError: the API would refuse this.
        """
        served = self._registry.resolve(resource)
        where = _namespace(served, {}, namespace)
        body, _ = self._cluster.delete(served, where, name, policy=propagation_policy)
        return _decoded(served.body(body))

    async def wait_for(
        self,
        resource: str | Resource[Any],
        key: str,
        predicate: Callable[[Any], Any] | None = None,
        timeout: float | None = 10.0,  # noqa: ASYNC109 - the error has the last state
    ) -> Any:
        """Wait until an object satisfies a condition, and return a copy of it; None if it does not exist then.

        A state that lasts only until the next write may be missed.

        Args:
            resource: as for `create`.
            key: `namespace/name`, or `name` in the namespace "default" or of a cluster-scoped object.
            predicate: called with a copy of the object, None if it does not exist. It is not satisfied if it raises
                because a member is missing. By default, the object must exist.
            timeout: in seconds, None for no limit.

        Raises:
            TimeoutError: the condition was not satisfied in time. The message has the last state.
            UsageError: the predicate is a coroutine function.
        """
        collection = self._cluster.store.collection(self._registry.resolve(resource))
        changed = asyncio.Event()
        collection.subscribe(changed.set)
        try:
            async with asyncio.timeout(timeout):
                while missing := self.missing(resource, key, predicate):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            raise TimeoutError(f"after {timeout:g} s, {missing}") from None
        finally:
            collection.unsubscribe(changed.set)
        return self._state(resource, key)

    def missing(self, resource: str | Resource[Any], key: str, predicate: Callable[[Any], Any] | None) -> str:
        """Return why `wait_for` would wait, with the state of the object; "" if it would not."""
        state = self._state(resource, key)
        reason = "does not satisfy the predicate"
        try:
            if (plain_function(predicate, "predicate") or bool)(state):
                return ""
        except (LookupError, TypeError, AttributeError) as error:
            reason += f", which raised {error!r}"
        if state is None:
            return f"{resource} {key} does not exist"
        state["metadata"].pop("managedFields", None)
        if self._registry.resolve(resource).resource.holds_secrets:
            state = {name: state[name] for name in ("kind", "metadata", "type") if name in state}
        return f"{resource} {key} {reason}; it is {encode_plain(state).decode()}"

    def _state(self, resource: str | Resource[Any], key: str) -> dict[str, Any] | None:
        namespace, _, name = key.rpartition("/")
        try:
            return self.get(resource, name, namespace or None)
        except StatusError:
            return None


def _namespace(served: Served, obj: Mapping[str, Any], namespace: str | None) -> str:
    if not served.resource.namespaced:
        return ""
    if namespace is None:
        namespace = (obj.get("metadata") or {}).get("namespace")
    return namespace or "default"


def _copy(obj: Mapping[str, Any]) -> dict[str, Any]:
    return _decoded(encode_plain(obj))


def _decoded(body: bytes) -> dict[str, Any]:
    obj: dict[str, Any] = decode(body)
    return obj
