"""Finalizers and owner references. Each function returns a changed copy, or the object itself if nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from aioinformer.cache.objects.changes import evolve
from aioinformer.cache.objects.encoding import checked_json
from aioinformer.cache.objects.views import View, view_record
from aioinformer.client.changes.patches import check_whole
from aioinformer.errors import AlreadyOwned, FormerOwner, UsageError
from aioinformer.resources.references import ObjectReference, get_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")


def has_finalizer(obj: Any, name: str) -> bool:
    """Return whether an object has a finalizer."""
    return name in _finalizers(obj)


def add_finalizer(obj: T, name: str) -> T:
    """Return the object with a finalizer; the object itself if it has it already.

    Args:
        obj: see `evolve`.
        name: of the finalizer, such as "example.com/cleanup".

    Raises:
        UsageError: the name is empty, the class of the object has no finalizers, or a cache has a part of it only.
    """
    if not name:
        raise UsageError('add_finalizer: the name must not be empty; it is like "example.com/cleanup"')
    check_whole(obj, "add_finalizer")
    finalizers = _finalizers(obj)
    return obj if name in finalizers else evolve(obj, {"metadata": {"finalizers": [*finalizers, name]}})


def remove_finalizer(obj: T, name: str) -> T:
    """Return the object without a finalizer; the object itself if it does not have it.

    Raises:
        UsageError: a cache has only a part of the object, or the object has no JSON form.
    """
    check_whole(obj, "remove_finalizer")
    finalizers = _finalizers(obj)
    if name not in finalizers:
        return obj
    return evolve(obj, {"metadata": {"finalizers": [each for each in finalizers if each != name] or None}})


def controller_of(obj: Any) -> ObjectReference | None:
    """Return the reference to the controller of an object, by its owner references; None if it has none.

    It has no namespace: the owner is in the namespace of the object, or cluster-scoped.

    Raises:
        UsageError: the object has no JSON form.
    """
    return _controller_in(stated_metadata(obj).owner_references or ())


def is_former(known: ObjectReference, owner: ObjectReference) -> bool:
    """Return whether the first of two references is to an earlier object of the other's kind and name."""
    one, other = ((each.api_version.rpartition("/")[0], each.kind, each.name) for each in (known, owner))
    return one == other and known.uid != owner.uid


def set_controller_reference(obj: T, owner: Any, *, block_owner_deletion: bool = True) -> T:
    """Return the object with an owner reference that makes `owner` its controller.

    The garbage collector deletes the object after its owner. If the owner is the controller already, its reference is
    brought up to date, or the object itself is returned.

    Args:
        obj: see `evolve`. It need not exist on the server yet.
        owner: an object that exists on the server, or an `ObjectReference` to one.
        block_owner_deletion: whether deleting the owner in the foreground waits for the object.

    Raises:
        AlreadyOwned: the object has another controller. An owner of the same name with another uid is another one, the
            former one (FormerOwner).
        UsageError: the owner has no uid; or it is in a namespace, and the object is in another one or in none. The
            garbage collector would delete such an object. Or a cache has only a part of `obj`.
        KeyFuncError: the owner has no name.
    """
    check_whole(obj, "set_controller_reference")
    references = references_with(stated_metadata(obj), get_reference(owner), block_owner_deletion=block_owner_deletion)
    return obj if references is None else evolve(obj, {"metadata": {"ownerReferences": references}})


def references_with(
    metadata: StatedMetadata, owner: ObjectReference, *, block_owner_deletion: bool = True
) -> list[dict[str, Any]] | None:
    """Return the owner references with one that makes an owner the controller; None if it is there already.

    Raises:
        AlreadyOwned, UsageError: see `set_controller_reference`.
    """
    where = f"{owner.kind} {owner.name}"
    if not owner.uid:
        raise UsageError(f"set_controller_reference: the owner, {where}, has no uid; pass it as the server returned it")
    namespace = metadata.namespace or ""
    if owner.namespace and owner.namespace != namespace:
        place = f"in namespace {namespace}" if namespace else "in no namespace: set metadata.namespace"
        raise UsageError(
            f"set_controller_reference: the owner, {where}, is in namespace {owner.namespace}, and the object is "
            f"{place}"
        )
    references = list(metadata.owner_references or ())
    known = _controller_in(references)
    if known is not None and known.uid != owner.uid:
        error = FormerOwner if is_former(known, owner) else AlreadyOwned
        raise error(str(metadata.name or metadata.generate_name or ""), known.kind, known.name, known.uid)
    wanted = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": block_owner_deletion,
    }
    index = next((at for at, each in enumerate(references) if each.get("uid") == owner.uid), len(references))
    if references[index : index + 1] == [wanted]:
        return None
    references[index : index + 1] = [wanted]
    return references


def _controller_in(references: Iterable[Mapping[str, Any]]) -> ObjectReference | None:
    for reference in references:
        if reference.get("controller"):
            return ObjectReference(
                reference.get("apiVersion") or "",
                reference.get("kind") or "",
                reference.get("name") or "",
                uid=reference.get("uid") or "",
            )
    return None


class StatedMetadata(msgspec.Struct, gc=False, rename="camel"):
    """A part of the metadata. Decoding it alone takes a fraction of the time of the whole, with its managed fields."""

    name: Any = None
    generate_name: Any = None
    namespace: Any = None
    uid: Any = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None
    finalizers: Any = None
    owner_references: Any = None


class _Object(msgspec.Struct, gc=False):
    metadata: StatedMetadata | None = None


_decode: Final = msgspec.json.Decoder(_Object).decode


def stated_metadata(obj: Any) -> StatedMetadata:
    """Return the metadata of an object of any form.

    Raises:
        UsageError: it has no JSON form.
    """
    if isinstance(obj, dict) and isinstance(metadata := obj.get("metadata"), dict):
        found = msgspec.convert(metadata, StatedMetadata)
        if all(isinstance(each, dict) for each in found.owner_references or ()):  # not models
            return found
    try:
        raw = view_record(obj).json if isinstance(obj, View) else checked_json(obj)
        return _decode(raw).metadata or StatedMetadata()
    except msgspec.ValidationError:  # it is no object
        return StatedMetadata()


def _finalizers(obj: Any) -> list[str]:
    return list(stated_metadata(obj).finalizers or ())
