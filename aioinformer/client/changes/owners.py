"""Finalizers and owner references. Each function returns a changed copy, or the object itself if nothing changes."""

from __future__ import annotations

from typing import Any, TypeVar

from aioinformer.cache.objects.changes import evolve
from aioinformer.client.changes.patches import check_whole, document_of
from aioinformer.errors import AlreadyOwned, FormerOwner, UsageError
from aioinformer.resources.references import ObjectReference, get_reference

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
    """Return the object without a finalizer; the object itself if it does not have it."""
    check_whole(obj, "remove_finalizer")
    finalizers = _finalizers(obj)
    if name not in finalizers:
        return obj
    return evolve(obj, {"metadata": {"finalizers": [each for each in finalizers if each != name] or None}})


def controller_of(obj: Any) -> ObjectReference | None:
    """Return the reference to the controller of an object, by its owner references; None if it has none.

    It has no namespace: the owner is in the namespace of the object, or cluster-scoped.
    """
    for reference in _metadata(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            return ObjectReference(
                reference.get("apiVersion") or "",
                reference.get("kind") or "",
                reference.get("name") or "",
                uid=reference.get("uid") or "",
            )
    return None


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
    """
    check_whole(obj, "set_controller_reference")
    metadata = _metadata(obj)
    reference = get_reference(owner)
    where = f"{reference.kind} {reference.name}"
    if not reference.uid:
        raise UsageError(f"set_controller_reference: the owner, {where}, has no uid; pass it as the server returned it")
    namespace = metadata.get("namespace") or ""
    if reference.namespace and reference.namespace != namespace:
        place = f"in namespace {namespace}" if namespace else "in no namespace: set metadata.namespace"
        raise UsageError(
            f"set_controller_reference: the owner, {where}, is in namespace {reference.namespace}, and the object is "
            f"{place}"
        )
    known = controller_of(obj)
    if known is not None and known.uid != reference.uid:
        error = FormerOwner if is_former(known, reference) else AlreadyOwned
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        raise error(name, known.kind, known.name, known.uid)
    wanted = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
        "controller": True,
        "blockOwnerDeletion": block_owner_deletion,
    }
    references = list(metadata.get("ownerReferences") or ())
    index = next((at for at, each in enumerate(references) if each.get("uid") == reference.uid), len(references))
    if references[index : index + 1] == [wanted]:
        return obj
    references[index : index + 1] = [wanted]
    return evolve(obj, {"metadata": {"ownerReferences": references}})


def _metadata(obj: Any) -> dict[str, Any]:
    metadata = document_of(obj).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _finalizers(obj: Any) -> list[str]:
    return list(_metadata(obj).get("finalizers") or ())
