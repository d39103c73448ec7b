"""Edits: read, change, and write the difference, again after a conflict."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from random import uniform
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from aioinformer.cache.objects.views import View, is_part
from aioinformer.client.changes.carrying import carried
from aioinformer.client.changes.patches import changed_members, document_of, is_same, merge_patch
from aioinformer.errors import Conflict, OptionError, TransportError, UsageError
from aioinformer.resources.keys import metadata_field, metadata_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.resources.resource import Resource

T = TypeVar("T")

#: The longest pause after the second conflict, in seconds. It doubles with each further one.
_PAUSE: Final = 0.01
#: The timeout of a write after a read that took all the time, in seconds.
_LEAST: Final = 0.001
_IDENTITY: Final = ("name", "namespace", "uid")


class Live(NamedTuple, Generic[T]):
    """An object as the server has it now. Its class may lack what the server has sent, also the uid and the version.

    Attributes:
        object: as its class has it.
        uid: of the object.
        version: of the object.
        raw: the object as the server has sent it.
    """

    object: T
    uid: str | None
    version: str | None
    raw: bytes


class StatusNotStored(UsageError):
    """The server has ignored the status in an edit of an object. It has stored what else the function changed.

    Attributes:
        stored: the object.
    """

    def __init__(self, resource: Resource[Any], stored: Any) -> None:
        super().__init__(
            f"edit: the server has stored nothing of the changed status of {resource.gvr}: if it is a subresource, use "
            "status.edit(); otherwise, the schema lacks the members"
        )
        self.stored = stored


async def edit(
    target: T | str,
    change: Callable[[T], Any],
    *,
    read: Callable[[T | str, float | None], Awaitable[Live[T]]],
    write: Callable[[T, dict[str, Any], float | None], Awaitable[T]],
    check: Callable[[dict[str, Any]], None],
    attempts: int,
    timeout: float | None,  # noqa: ASYNC109 - the last conflict is raised after it
) -> T:
    """Write what a function changes of an object, again from the live object after a conflict.

    The arguments are those of `Verbs.edit`. `read` and `write` get the seconds that are left; `write` gets a merge
    patch, and `check` raises if that contains what `write` does not store. The live object is read before the first
    patch if the target is a name or a part of an object, or if the patch of anything but a view replaces a list: a
    class or a mapping may have left out elements, or members of them. Of a live object, what the class lacks is carried
    over into the lists that are written.

    Raises:
        OptionError: `attempts` is not a number of attempts.
        UsageError: `change` is no function, or the object has no version.
        Conflict: the last attempt met a conflict, or another object has the name.
    """
    if type(attempts) is not int or attempts < 1:
        raise OptionError(f"attempts must be a whole number, at least 1, not {attempts!r}")
    if not callable(change):
        raise UsageError(f"edit: expected a function that returns the new state, not {type(change).__name__}")
    if not isinstance(target, str) and not _field(target, "resource_version", "resourceVersion"):
        raise UsageError("edit: the object has no metadata.resourceVersion; pass what a lister or the client returned")
    clock = asyncio.get_running_loop().time
    end = None if timeout is None else clock() + timeout
    current: Any = target
    left = timeout
    version = None
    raw = b""
    uid = None if isinstance(target, str) else str(_field(target, "uid", "uid") or "")

    async def read_live(seconds: float | None, conflict: Conflict | None = None) -> None:
        nonlocal current, left, uid, version, raw
        known = uid
        current, uid, version, raw = await read(current, seconds)
        left = None if end is None else max(end - clock(), _LEAST)
        if known and known != uid:
            raise conflict or Conflict(409, "Conflict", "another object has the name now")

    if isinstance(target, str) or _may_be_a_part(target):
        await read_live(timeout)
    for attempt in range(attempts):
        patch = await _patch_of(current, version, raw, change)
        if not raw and not isinstance(current, View) and _replaces_list(patch, document_of(current)):
            await read_live(left)
            patch = await _patch_of(current, version, raw, change)
        if not patch:
            unchanged: T = current
            return unchanged
        check(patch)
        try:
            return await write(current, patch, left)
        except Conflict as conflict:
            # The first one may only mean that the cache was behind.
            pause = uniform(0, _PAUSE * 2**attempt) if attempt else 0.0
            left = None if end is None else end - clock() - pause
            if attempt + 1 == attempts or (left is not None and left <= 0):
                raise
            await asyncio.sleep(pause)
            try:
                await read_live(left, conflict)
            except TransportError:
                if end is None or clock() < end:
                    raise
            if end is not None and clock() >= end:
                raise
    raise AssertionError("the last attempt returns or raises")


def _may_be_a_part(obj: Any) -> bool:
    """Return whether an object of a cache may lack members that the server has.

    A list that such an object lacks, or has only in part, must not be written: it would replace the whole one.
    """
    if isinstance(obj, View) or not isinstance(obj, Mapping):
        return is_part(obj)
    metadata = obj.get("metadata") or {}
    return not metadata.get("creationTimestamp") or obj.keys() <= {"apiVersion", "kind", "metadata"}


def _replaces_list(patch: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether a patch sets or removes a list, in depth."""
    for name, value in patch.items():
        known = old.get(name)
        if isinstance(value, list) or isinstance(known, list):
            return True
        if isinstance(value, dict) and _replaces_list(value, known if isinstance(known, dict) else {}):
            return True
    return False


async def _patch_of(current: T, version: str | None, raw: bytes, change: Callable[[T], Any]) -> dict[str, Any]:
    """Call the function, and return the patch, with the version of the object; {} if it changed nothing.

    With the bytes of a live object, the patch keeps what its class lacks, also in the elements of lists.

    Raises:
        UsageError: the function returned anything but a state of this object.
    """
    new = change(current)
    if inspect.isawaitable(new):
        new = await new
    if new is None:
        raise UsageError("edit: the function returned None; it must return the new state, or the object for no change")
    if new is current:
        return {}
    if not raw or isinstance(current, View):
        patch = merge_patch(current, new)
    else:
        document = msgspec.json.decode(raw)
        patch = merge_patch(document, carried(document, document_of(current), document_of(new)))
    metadata = patch.get("metadata", {})
    other = next((name for name in ("apiVersion", "kind") if name in patch), "")
    if not other:
        names = [name for name in _IDENTITY if name in metadata] if isinstance(metadata, dict) else _IDENTITY
        other = f"metadata.{names[0]}" if names else ""
    if other:
        raise UsageError(
            f"edit: the function returned a state with another {other}; return a changed copy, such as evolve() makes"
        )
    if patch and version:
        patch.setdefault("metadata", {}).setdefault("resourceVersion", version)
    return patch


def check_members(resource: Resource[Any], subresource: str, patch: dict[str, Any]) -> None:
    """Check that a write of an object or a subresource stores all that a patch contains.

    Raises:
        UsageError: it does not: the server would ignore a part of the patch.
    """
    members = set(changed_members(patch))
    if subresource == "status" and members != {"status"}:
        other = sorted(members - {"status"})[0]
        raise UsageError(
            f"edit: status.edit() writes the status alone, and the function changed {other!r}; use edit() for it"
        )
    if not subresource and "status" in members and "status" in resource.subresources:
        raise UsageError(
            f"edit: the status of {resource.gvr} is a subresource, which edit() does not write; use status.edit()"
        )


def check_stored(resource: Resource[Any], patch: dict[str, Any], old: Any, stored: Any) -> None:
    """Check that the server has not ignored the status in the patch of an object.

    Raises:
        StatusNotStored: the status is as before.
    """
    if "status" in patch and is_same(document_of(old).get("status"), document_of(stored).get("status")):
        raise StatusNotStored(resource, stored)


def _field(obj: Any, attribute: str, wire: str) -> Any:
    return metadata_field(metadata_of(obj), attribute, wire)
