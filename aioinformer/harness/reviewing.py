"""Reviews of objects by the admission functions of a manager: without a server, TLS or an event loop that waits."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.authorization import User
from aioinformer.cache.lister import ClusterLister, Lister
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.client.bodies import decode
from aioinformer.client.changes.patches import document_of
from aioinformer.client.subresources import FORMS
from aioinformer.errors import Stale, UsageError
from aioinformer.exports import lazy_type
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.resource import Resource
from aioinformer.state import NO_STATE
from aioinformer.testing.patches.json_patches import json_patch
from aioinformer.webhooks.hooks import NULL, SentRequest

if TYPE_CHECKING:
    from aioinformer.controller import Manager
else:
    Manager = lazy_type("aioinformer.controller", "Manager")


class Reviewed(msgspec.Struct, frozen=True):
    """What became of a request.

    Attributes:
        allowed: whether no function has refused it.
        object: the object as it would be stored, after `default`; None for a delete or a refusal.
        message: of the refusal, as kubectl shows it; "" without one.
        fields: path of each refused field -> why; "" for the whole object.
        warnings: what the functions told the client.
    """

    allowed: bool
    object: Any = None
    message: str = ""
    fields: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


async def review(
    manager: Manager,
    resource: Resource[Any],
    new: Any = None,
    old: Any = None,
    *,
    subresource: str = "",
    user: User | None = None,
    dry_run: bool = False,
    reads: Mapping[Resource[Any], Iterable[Any]] | None = None,
    stale: float = 0.0,
    state: Any = NO_STATE,
) -> Reviewed:
    """Call the admission functions of a manager as for a request of a client: `default`, and then `validate`.

        answer = await review(manager, WIDGETS, {"metadata": {"name": "a"}, "spec": {"size": 3}}, old=stored)
        assert answer.fields == {"spec.size": "must not shrink"}

    The manager does not run. Selectors and match conditions are not looked at, and no schema is applied.

    Args:
        resource: of the object, as it was declared.
        new: the object that the client sends: a mapping or an object of the class; None for a delete.
        old: the stored object; None for a create.
        subresource: that the client writes.
        user: the client; by default, one with the name "test".
        reads: the objects in the caches that the functions read, by resource; none by default.
        stale: seconds for which these caches have not followed the server.
        state: what the lifespan of the manager would yield; it is not entered.

    Raises:
        UsageError: there is no function for this request.
        Exception: a function has raised it; the API server would get HTTP 500.
    """
    if new is None and old is None:
        raise UsageError("review: pass the new object, the old one for a delete, or both for an update")
    operation = "update"
    if new is None:
        operation = "delete"
    elif old is None:
        operation = "create"
    known = [each for each in manager.admission.hooks() if each.resource.gvr == resource.gvr]
    found = [each for each in known if operation in each.operations and subresource in each.subresources]
    if not found:
        what = f"{subresource} of {resource.gvr}" if subresource else resource.gvr
        raise UsageError(f"review: manager {manager.name} has no admission function for {operation} of {what}")
    given = {each.gvr: list(objects) for each, objects in (reads or {}).items()}
    sent = _request(resource, subresource, operation, new, old)
    sent.sub_resource = subresource
    sent.dry_run = dry_run
    sent.user_info = user or User(name="test")
    warnings: list[str] = []
    for hook in sorted(found, key=lambda each: each.purpose):  # "default" comes first
        caches = {gvr: _GivenCache(each, given.get(gvr, []), stale) for gvr, each in hook.reads.items()}
        answer = msgspec.json.decode(await manager.admission.decide(hook, sent, caches, state))["response"]
        warnings += answer.get("warnings", ())
        if not answer["allowed"]:
            return _refusal(answer["status"], warnings)
        if "patch" in answer:
            operations = msgspec.json.decode(base64.b64decode(answer["patch"]))
            sent.object = msgspec.Raw(msgspec.json.encode(json_patch(msgspec.json.decode(sent.object), operations)))
    stored = None if new is None else decode(bytes(sent.object), found[0].types[subresource])
    return Reviewed(True, stored, warnings=tuple(warnings))


def _refusal(status: Mapping[str, Any], warnings: list[str]) -> Reviewed:
    fields = {each["field"]: each["message"] for each in status["details"]["causes"]}
    return Reviewed(False, None, status["message"], fields, tuple(warnings))


def _request(resource: Resource[Any], subresource: str, operation: str, new: Any, old: Any) -> SentRequest:
    form = FORMS.get(subresource, resource)
    documents = [None if each is None else _document(form, each) for each in (new, old)]
    metadata = next(each for each in documents if each is not None).get("metadata") or {}
    encoded = [msgspec.Raw(NULL if each is None else msgspec.json.encode(each)) for each in documents]
    return SentRequest(
        uid=str(uuid.uuid4()),
        operation=operation.upper(),
        resource={"group": resource.group, "version": resource.version, "resource": resource.plural},
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", "") if resource.namespaced else "",
        object=encoded[0],
        old_object=encoded[1],
    )


def _document(resource: Resource[Any], obj: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **document_of(obj)}


class _GivenCache:
    """A cache with given objects. It has synced."""

    def __init__(self, resource: Resource[Any], objects: Iterable[Any], stale: float) -> None:
        types: ObjectType[Any] = ObjectType(resource)
        self._resource = resource
        self._stale = stale
        self._indexer: Indexer[Any] = Indexer(to_view=types.to_view, record_of=types.record_of)
        self._indexer.add_indexers({NAMESPACE_INDEX: meta_namespace_index_func})
        for each in objects:
            self._indexer.add(_document(resource, each))

    def lister(self) -> Lister[Any]:
        made: Any = Lister if self._resource.namespaced else ClusterLister
        found: Lister[Any] = made(self._indexer, self._resource, self)
        return found

    async def wait_for_sync(self) -> None:
        pass

    # As listers ask their informer.

    def check_readable(self) -> None:
        pass

    def check_absent(self, key: str) -> None:
        pass

    def undecodable(self) -> dict[str, str]:
        return {}

    def check_fresh(self, within: float) -> None:
        if self._stale > within:
            raise Stale(self._resource.gvr, self._stale, "as the test says")

    async def wait_for(self, written: Any, /, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - as informers
        raise UsageError("review: caches of given objects never change")
