"""`apply_set`: apply the objects that belong to an owner, and delete those that no longer do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.encoding import checked_json
from aioinformer.cache.objects.views import View, is_part, json_of, view_record
from aioinformer.client.bodies import decode
from aioinformer.client.changes.applied import Applied, difference
from aioinformer.client.changes.owners import controller_of, is_former, references_with, stated_metadata
from aioinformer.client.changes.ownership import has_key, owned_fields
from aioinformer.client.changes.patches import check_whole, document_of
from aioinformer.controller.helpers.objects import is_being_deleted, whole_objects
from aioinformer.controller.proofs import Proof, digest_of
from aioinformer.controller.request import Request
from aioinformer.errors import (
    AioinformerError,
    AlreadyExists,
    ApiNotFound,
    Conflict,
    FormerOwner,
    NotFound,
    OptionError,
    UsageError,
)
from aioinformer.resources.keys import ObjectName, metadata_field, metadata_of, object_name
from aioinformer.resources.resource import Resource
from aioinformer.resources.types_of_objects import type_of
from aioinformer.workqueue.parallelizer import parallelize

if TYPE_CHECKING:
    from aioinformer.cache.lister import Lister

#: How the objects of a set are known: by their controller, or by labels.
By: TypeAlias = Literal["owner"] | Mapping[str, str]
_Place: TypeAlias = tuple[Resource[Any], ObjectName]
#: How often a deletion is tried while others change the object.
_ATTEMPTS: Final = 5


class ForeignObject(AioinformerError):
    """An object of a set exists already, and belongs to another owner. It is not changed."""


class AppliedSet(NamedTuple):
    """The result of `apply_set`.

    Attributes:
        objects: what the server has stored, in the order of the set. An object that is being deleted is not applied.
        sent: how many of them were sent to the server; the others needed no write.
        leaving: the objects that were deleted or are being deleted, as resource and key. While there are any, the
            cleanup of an owner is not complete.
        kept: the objects that are not in the set, and are not deleted since they are not certain to be the
            controller's own: resource, key, and the reason.
    """

    objects: list[Any]
    sent: int
    leaving: list[tuple[Resource[Any], ObjectName]]
    kept: list[tuple[Resource[Any], ObjectName, str]]


async def apply_set(
    request: Request[Any],
    objects: Iterable[Any],
    *,
    resources: Sequence[Resource[Any]],
    by: By = "owner",
    force: bool = True,
    at_once: int = 1,
) -> AppliedSet:
    """Apply a set of objects on the server (server-side apply), and delete the rest of what the request's object has.

        children = [config_map_for(widget), deployment_for(widget)]
        await apply_set(request, children, resources=[core_v1.CONFIG_MAPS, apps_v1.DEPLOYMENTS])

    The set is complete: a cached object that belongs to the owner and is not in the set is deleted. Objects that do not
    belong to the owner are neither changed nor deleted:

    - Before the first write, each name of the set that is in the cache must belong to the owner; the object is only
      changed under its uid. Any other name is created, which the server refuses if it is taken.
    - An object is deleted only if its managed fields show that the field manager of the request's client has written
      its owner reference, or all labels of `by`, and if it has no other controller. It is deleted in exactly this
      version; if it has changed, the server is asked again. What is not deleted is in `kept`.

    Order: all checks; then the objects, one by one, in the order of the set, unless `at_once` is given; then the
    deletions, in the reverse order of `resources`. An error ends the call: nothing is deleted before all is applied. No
    write is sent for an object whose cached state has all fields of the set already; it is read from the server if the
    cache has no managed fields, or only a part of the object.

    Args:
        request: of the reconciler. Its client has the field manager.
        objects: with apiVersion, kind and name; without a namespace, they are in that of the owner.
        resources: of all objects that the set may ever have. Each is an input of the controller.
        by: "owner" for a controller reference to the request's object; or labels for all objects of the set, which no
            other objects have, such as {"example.com/tenant": request.name}. With labels, objects may be in any
            namespace. The server does not delete them with their owner: apply the empty set when it is being deleted.
        force: take over fields that other field managers own.
        at_once: how many objects are applied at the same time, at most. With more than 1, you declare that they do not
            depend on each other. After an error, writes that have begun are cancelled, and may have taken effect.

    Raises:
        ForeignObject: a name of the set is taken. Nothing was written, unless the cache did not show that.
        FormerOwner: a name of the set is taken by an object of the owner's predecessor, which had the same name. If the
            reconciler lets this error pass, its key runs again until the garbage collector has deleted the object.
        Conflict: an object was deleted, created again or changed meanwhile. The next run sees it.
        UsageError: the request has no object, an object is in the set twice or of another resource, or the owner is
            being deleted and the set is not empty; nothing was written. Or the client has no field manager.
        OptionError: `at_once` is no whole number, or less than 1.
        ApiError: the server refused a request.
        WriteOutcomeUnknown: the answer to a write was lost.
        TransportError: there is no answer.
    """
    if type(at_once) is not int or at_once < 1:
        raise OptionError(f"apply_set: at_once must be a whole number, 1 or more, not {at_once!r}")
    owner = _Owner(request, by)
    owned = {resource: {_name_of(each): each for each in owner.objects(resource)} for resource in resources}
    proofs = owner.proofs()
    children: dict[_Place, _Child] = {}
    following = iter(proofs)
    for obj in objects:
        child = owner.child(obj, next(following, None), owned)
        if children.setdefault(child.place, child) is not child:
            raise UsageError(f"apply_set: {child.resource.gvr} {child.key} is in the set twice")
    if children and owner.is_being_deleted:
        raise UsageError(f"apply_set: {request.key} is being deleted; apply the empty set, or nothing")
    different = [child for child in children.values() if child.applied is None]
    for child in different:
        child.known = await owner.find(child, owned[child.resource])

    async def apply(child: _Child) -> None:
        child.applied = await owner.apply(child, force=force)

    if at_once == 1:
        for child in different:
            await apply(child)
    else:
        try:
            await parallelize(at_once, different, apply)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
    if different or len(proofs) != len(children):
        owner.note_proofs(children.values(), owned)
    applied = [child.applied for child in children.values() if child.applied is not None]
    leaving = []
    kept = []
    for resource in reversed(resources):
        for key, obj in owned[resource].items():
            wanted = children.get((resource, key))
            if wanted is not None and wanted.is_proven:
                continue
            if is_being_deleted(obj):
                leaving.append((resource, key))
            elif wanted is None:
                reason = await owner.delete(resource, key, obj)
                if reason is None:
                    leaving.append((resource, key))
                elif reason:
                    kept.append((resource, key, reason))
    return AppliedSet([each.object for each in applied], sum(not each.skipped for each in applied), leaving, kept)


class _Child:
    """An object of the set.

    Attributes:
        form: the class in which the reconciler has stated it.
        digest: of what it has stated.
        resource, key: which object it is.
        applied: what has become of it; None before that, and if it is being deleted.
        is_proven: whether an earlier run has proven that it is as it should be.
        known: the known object; None if it is new.
        live: its JSON; {} if it is new.
    """

    __slots__ = ("_made", "applied", "digest", "form", "is_proven", "key", "known", "live", "resource")

    def __init__(
        self,
        obj: Any,
        digest: bytes,
        resource: Resource[Any],
        key: ObjectName,
        *,
        made: dict[str, Any] | None = None,
        proven: Any = None,
    ) -> None:
        self.form = type(obj)
        self.digest = digest
        self.resource = resource
        self.key = key
        self.is_proven = proven is not None
        self.applied: Applied[Any] | None = Applied(proven, True, "") if self.is_proven else None
        self.known: Any = None
        self.live: dict[str, Any] = {}
        self._made = made

    @property
    def place(self) -> _Place:
        """Which object it is."""
        return self.resource, self.key

    @property
    def made(self) -> dict[str, Any]:
        """The configuration to apply, which a proven object has not."""
        assert self._made is not None
        return self._made


class _Owner:
    """Knows which objects belong to the object of a request, by a controller reference or by labels.

    Objects are compared in whole: as the server has them, if the cache has no managed fields.
    """

    def __init__(self, request: Request[Any], by: By) -> None:
        if by == "owner" and request.object is None:
            raise UsageError(f"apply_set: {request.key} is gone; the server deletes what it owned")
        self._request = request
        self._labels = {**by} if isinstance(by, Mapping) else None
        if not self._labels and by != "owner":
            raise UsageError(f'apply_set: by must be "owner" or labels, not {by!r}')
        self._reference = request.reference
        self._uid = self._reference.uid
        self._identity: Any = self._uid if self._labels is None else (self._uid, self._labels)
        self.is_being_deleted = request.object is None or is_being_deleted(request.object)

    def child(
        self,
        obj: Any,
        proof: Proof | None,
        owned: Mapping[Resource[Any], Mapping[ObjectName, Any]],
    ) -> _Child:
        """Return an object of the set, with what the proof of an earlier run says about it."""
        check_whole(obj, "apply_set")
        digest = digest_of(checked_json(obj))
        if proof is not None and proof.states(type(obj), digest) and proof.resource in owned:
            key = proof.key
            cached = owned[proof.resource].get(key)
            if proof.proves(cached):
                return _Child(obj, digest, proof.resource, key, proven=cached)
        resource = _resource_of(obj, owned)
        made = self._mark(obj, resource)
        return _Child(obj, digest, resource, object_name(made), made=made)

    def _mark(self, obj: Any, resource: Resource[Any]) -> dict[str, Any]:
        """Return an object of the set with its namespace, and with what shows its owner."""
        made = document_of(obj)
        namespace = self._request.namespace
        metadata = made.get("metadata") or {}
        made["metadata"] = metadata
        if resource.namespaced and namespace and not metadata.get("namespace"):
            metadata["namespace"] = namespace
        if self._labels is not None:
            metadata["labels"] = {**(metadata.get("labels") or {}), **self._labels}
        elif (references := references_with(stated_metadata(made), self._reference)) is not None:
            metadata["ownerReferences"] = references
        return made

    def proofs(self) -> tuple[Proof | None, ...]:
        """Return what is proven about the last set."""
        request = self._request
        return request.context.proofs.of(request.key, request.term, self._identity)

    def note_proofs(self, children: Iterable[_Child], owned: Mapping[Resource[Any], Mapping[ObjectName, Any]]) -> None:
        """Note which objects of the cache are as they should be."""
        proofs: list[Proof | None] = []
        for child in children:
            cached = owned[child.resource].get(child.key)
            # What was compared with a live object says nothing about the cached one.
            is_equal = child.applied is not None and child.applied.skipped and child.known is cached
            if isinstance(cached, View) and (child.is_proven or is_equal):
                proofs.append(Proof(child.form, child.digest, child.resource, view_record(cached)))
            else:
                proofs.append(None)
        request = self._request
        request.context.proofs.note(request.key, request.term, self._identity, proofs)

    def _lister(self, resource: Resource[Any]) -> Lister[Any]:
        return self._request.context.lister(resource, owned=True)  # other inputs may have a part of the objects

    def objects(self, resource: Resource[Any]) -> list[Any]:
        """Return the cached objects of the owner."""
        if self._labels is None:
            return self._request.owned(resource)
        return self._lister(resource).list(self._labels)

    async def find(self, child: _Child, owned: Mapping[ObjectName, Any]) -> Any:
        """Return the known object of a name in the set, once `_check` has passed; None if the cache has none.

        Raises:
            ForeignObject: it does not belong to the owner.
            FormerOwner: it belongs to a former object of the owner's name.
            ApiError: the server refuses the request for its managed fields, which the cache does not have.
            TransportError: the server was not reached for them.
        """
        found = owned.get(child.key)
        if found is None:
            try:
                found = self._lister(child.resource).get(str(child.key))
            except NotFound:
                return None
        child.live = document_of(found)
        self._check(child.live, child)
        return found if _shows_managers(found, child.live) else await self._read(child)

    async def apply(self, child: _Child, *, force: bool) -> Applied[Any] | None:
        """Apply an object of the set to the known one, or as a new one; return None if it is being deleted."""
        resource = child.resource
        known = child.known
        if known is None:
            try:
                created = await self._request.client.resource(resource).apply_new(child.made)
                return Applied(created, False, "the object is new")
            except AlreadyExists:
                known = await self._read(child)
                if known is None:
                    raise
        if is_being_deleted(known):
            return None
        manager = self._request.client.field_manager
        if manager and not difference(child.made, child.live, manager):
            if resource.decoder is not None and isinstance(known, View):
                known = decode(json_of(known), ObjectType(resource))
            return Applied(known, True, "")
        return await self._request.client.resource(resource).apply_if_changed(child.made, known, force=force)

    async def delete(self, resource: Resource[Any], key: ObjectName, obj: Any) -> str | None:
        """Delete an object if it is certainly one of the controller's own, in the version that proves it.

        Returns:
            None: it is deleted, or is being deleted. "": another object has its name. Otherwise, why it is kept.
        """
        # A class of the user, and what a transform returns, may lack the owner references that forbid the deletion.
        is_whole = isinstance(obj, View) and _shows_managers(obj, document_of(obj))
        conflicts = 0
        while True:
            if conflicts or not is_whole:
                obj = await self._get(resource, key)
            if obj is None or is_being_deleted(obj):
                return None
            if not self._has(document_of(obj)):
                return ""
            if reason := self._reason_to_keep(obj):
                return reason
            metadata = metadata_of(obj)
            try:
                # The default of some kinds, such as Jobs, leaves their own objects behind.
                await self._request.client.resource(resource).delete(
                    str(key),
                    uid=metadata_field(metadata, "uid", "uid") or "",
                    resource_version=metadata_field(metadata, "resource_version", "resourceVersion") or "",
                    propagation="Background",
                )
            except ApiNotFound as error:
                if not error.name:  # the resource is not served at the moment
                    raise
                return None
            except Conflict:
                conflicts += 1
                if conflicts == _ATTEMPTS:
                    raise
            else:
                return None

    async def _read(self, child: _Child) -> Any:
        found = await self._get(child.resource, child.key)
        if found is not None:
            child.live = document_of(found)
            self._check(child.live, child)
        return found

    async def _get(self, resource: Resource[Any], key: ObjectName) -> Any:
        """Return what the server has, with its managed fields, which classes of users may lack; None for nothing."""
        return await whole_objects(self._request, resource).get_or_none(str(key))

    def _check(self, found: dict[str, Any], child: _Child) -> None:
        """Raise unless an object belongs to the owner. It is plain JSON.

        Raises:
            ForeignObject: it does not.
            FormerOwner: it belongs to a former object of the owner's name.
        """
        controller = controller_of(found)
        if controller is not None and controller.uid != self._uid and controller != controller_of(child.made):
            reason = f"its controller is {controller.kind} {controller.name}"
        elif not self._has(found):
            controller = None
            reason = "it is not of this set"
        else:
            return
        what = f"{child.resource.group_resource} {object_name(found)}"
        if controller is not None and is_former(controller, self._reference):
            raise FormerOwner(what, controller.kind, controller.name, controller.uid)
        raise ForeignObject(f"{what} exists, and {reason}; delete it, or choose another name")

    def _has(self, obj: dict[str, Any]) -> bool:
        metadata = metadata_of(obj)
        if self._labels is None:
            return any(each.get("uid") == self._uid for each in metadata.get("ownerReferences") or ())
        labels = metadata.get("labels") or {}
        return all(labels.get(name) == value for name, value in self._labels.items())

    def _reason_to_keep(self, obj: Any) -> str:
        """Return why an object must not be deleted; "" if it is certainly one of the controller's own."""
        controller = controller_of(obj)
        if controller is not None and controller.uid != self._uid:
            return f"its controller is {controller.kind} {controller.name} (uid {controller.uid})"
        manager = self._request.client.field_manager
        if any(self._shows_owner(each.get("f:metadata") or {}) for each in owned_fields(obj, manager)):
            shared = controller is None and self._labels is None
            return f"{self._request.key} is an owner, and not its controller" if shared else ""
        what = "its owner reference" if self._labels is None else "its labels"
        return f"no managed fields show that field manager {manager!r} has written {what}"

    def _shows_owner(self, fields: Mapping[str, Any]) -> bool:
        if self._labels is None:
            return has_key(fields.get("f:ownerReferences") or {}, {"uid": self._uid})
        return (fields.get("f:labels") or {}).keys() >= {f"f:{name}" for name in self._labels}


def _name_of(obj: Any) -> ObjectName:
    """Return namespace and name of an object of the cache."""
    if isinstance(obj, View):
        record = view_record(obj)
        return ObjectName(record.namespace, record.name)
    return object_name(obj)


def _resource_of(obj: Any, resources: Iterable[Resource[Any]]) -> Resource[Any]:
    stated = type_of(obj)
    for each in resources:
        if (each.api_version, each.kind) == stated:
            return each
    raise UsageError(
        f"apply_set: an object of apiVersion {stated[0]!r} and kind {stated[1]!r} is of none of the resources "
        f"{', '.join(each.gvr for each in resources)}"
    )


def _shows_managers(obj: Any, document: dict[str, Any]) -> bool:
    """Return whether an object has managed fields, and is no part of one, which may lack its controller."""
    return not is_part(obj) and bool(metadata_of(document).get("managedFields"))
