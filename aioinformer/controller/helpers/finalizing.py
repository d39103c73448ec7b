"""`finalizing`: the scope of a finalizer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from aioinformer.cache.objects.metadata import ObjectMeta
from aioinformer.cache.objects.views import View, is_part, view_record
from aioinformer.client.changes.owners import (
    StatedMetadata,
    add_finalizer,
    has_finalizer,
    remove_finalizer,
    stated_metadata,
)
from aioinformer.controller.helpers.objects import (
    as_mapping,
    from_document,
    is_being_deleted,
    keeps,
    whole_objects,
)
from aioinformer.controller.inputs.keys import uid_of
from aioinformer.controller.request import NothingToDo, Request
from aioinformer.errors import ApiNotFound, UsageError
from aioinformer.resources.keys import metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Ending:
    """Whether the object is being deleted, so that the block has to clean up: `if ending:`.

    Attributes:
        asked: whether the block has looked.
    """

    __slots__ = ("_is_ending", "asked")

    def __init__(self, is_ending: bool) -> None:
        self._is_ending = is_ending
        self.asked = False

    def __bool__(self) -> bool:
        self.asked = True
        return self._is_ending

    def __repr__(self) -> str:
        return "<the object is being deleted>" if self._is_ending else "<the object is not being deleted>"


@asynccontextmanager
async def finalizing(request: Request[Any], name: str) -> AsyncGenerator[Ending]:
    """Hold a finalizer of the request's object, so that the controller can clean up before the object is gone.

        async with finalizing(request, "example.com/bucket") as ending:
            if ending:
                await delete_bucket(request.key)
                return
            await create_bucket(request.key)

    The scope is the first thing in a reconciler. The state of the object decides what it does:

    - Not being deleted: the object gets the finalizer before the block begins, if it lacks it, by one patch.
      `request.object` is then the written object.
    - Being deleted, with the finalizer: `ending` is true. After the run, the manager removes the finalizer, by one
      patch, if the block has ended without an exception and the run returns None (or an empty `Result()`). Any other
      `Result` and an error, also after the block, keep the finalizer, and the next run calls the block again. So the
      cleanup may run several times. The removal is a part of the attempt: the timeout and the term of leadership apply,
      and its failure is that of the attempt.
    - Being deleted, without the finalizer, or gone: the scope raises `NothingToDo`, which ends the run without an
      error. The cleanup is done, or nothing was ever made.

    While an input is staler than `max_staleness` of the controller, no cleanup begins, and the finalizer is not
    removed: the run ends with `Stale`, and is retried.

    In a dry run, the scope logs what it would do: it adds no finalizer, and raises `NothingToDo` instead of entering
    the block for a cleanup.

    A reconciler has one finalizer. What it has to clean up belongs into one block.

    Args:
        request: of the reconciler.
        name: of the finalizer, such as "example.com/bucket". No other controller may use it.

    Raises:
        NothingToDo: see above.
        UsageError: the name has no domain; the run has another finalizer; or the object is being deleted, and the block
            ended without a look at `ending`, or with `NothingToDo`. The finalizer stays then.
        Stale: an input is too stale for the cleanup.
        ApiError: the server refused a patch.
        WriteOutcomeUnknown: the answer to a patch was lost.
        TransportError: there is no answer, and nothing was written.
    """
    if not all(name.partition("/")):
        raise UsageError(f'finalizing: a finalizer has a domain and a name, as in "example.com/cleanup", not {name!r}')
    if request.finalizer:
        raise UsageError(f"finalizing: the run has the finalizer {request.finalizer} already; clean up in its block")
    request.finalizer = name
    seen = await _with_finalizer(request, name)
    if seen is None or name not in (seen.finalizers or ()):
        raise NothingToDo(f"{request.key} is {'gone' if seen is None else f'being deleted, without {name}'}")
    is_ending = bool(seen.deletion_timestamp)
    if is_ending and request.dry_run:
        request.log.info("dry run: the object is being deleted; the cleanup for the finalizer %s is not done", name)
        raise NothingToDo(f"{request.key} is being deleted, and this is a dry run")
    if is_ending:
        request.check_fresh()
    ending = Ending(is_ending)
    try:
        yield ending
    except BaseException as error:
        # Also as a group: the key would rest, and the finalizer would stay for ever.
        if is_ending and BaseExceptionGroup("", [error]).split(NothingToDo)[1] is None:
            raise UsageError(
                f"finalizing: NothingToDo in the cleanup of {request.key} leaves the finalizer {name}; return None if "
                "the cleanup is complete, or raise another error"
            ) from error
        raise
    if not is_ending:
        return
    if not ending.asked:
        raise UsageError(
            f"finalizing: {request.key} is being deleted, and the block did not look whether it is; write "
            "`async with finalizing(…) as ending:`, and clean up in `if ending:`"
        )
    request.release = partial(_release, request, name, seen.uid or "")


async def _release(request: Request[Any], name: str, uid: str) -> None:
    def change(current: Any) -> Any:
        is_successor = uid not in ("", uid_of(current))  # nothing was cleaned up for it
        return current if is_successor or not is_being_deleted(current) else remove_finalizer(current, name)

    try:
        await _edit(request, name, change)
    except ApiNotFound as error:
        if not error.name:
            raise


async def _with_finalizer(request: Request[Any], name: str) -> StatedMetadata | None:
    """Return the metadata of the object, with the finalizer unless it is being deleted; None if it is gone."""
    if request.object is None:
        return None
    cached = request.as_stored()
    seen = stated_metadata(cached)
    is_known = _shows_deletion(request, cached, seen, name)
    is_whole = is_known and not is_part(cached)
    if (is_known and name in (seen.finalizers or ())) or (is_whole and seen.deletion_timestamp):
        return seen

    def change(current: Any) -> Any:
        return current if is_being_deleted(current) else add_finalizer(current, name)

    try:
        if request.dry_run:
            found = cached if is_whole else await whole_objects(request).get(str(request.key))
            if not is_being_deleted(found) and not has_finalizer(found, name):
                request.log.info("dry run: the finalizer %s is not added", name)
            return stated_metadata(change(found))
        written = await _edit(request, name, change)
    except ApiNotFound as error:
        if not error.name:  # the resource is not served at the moment, as during the start of a server
            raise
        return None
    request.object = from_document(request, written)
    return stated_metadata(written)


async def _edit(request: Request[Any], name: str, change: Callable[[Any], Any]) -> Any:
    """Change the object, by one patch if the cache is whole and not behind; otherwise from a read of it."""
    cached = request.as_stored()
    is_known = is_part(cached) or _shows_deletion(request, cached, stated_metadata(cached), name)
    return await whole_objects(request).edit(as_mapping(cached) if is_known else str(request.key), change)


def _shows_deletion(request: Request[Any], cached: Any, seen: StatedMetadata, name: str) -> bool:
    """Return whether the cached object shows the deletion of the object, and the finalizers at least in part.

    Fields that a projection declares are there; a transform has to keep them. `seen` is its metadata.
    """
    if not seen.creation_timestamp:
        return False  # the informer stores some fields alone, or the user's class has few
    fields = view_record(cached).fields if is_part(cached) else None
    if fields is not None and ("metadata", "creationTimestamp") in fields.places:
        return ("metadata", "deletionTimestamp") in fields.places
    if isinstance(cached, View) or isinstance(metadata_of(cached), (ObjectMeta, Mapping)):
        return True
    return keeps(request, {"metadata": {"finalizers": [name], "deletionTimestamp": "2000-01-01T00:00:00Z"}})
