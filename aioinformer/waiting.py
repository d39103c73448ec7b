"""Waiting until several caches are filled, or handlers told: all at once, and without asking again and again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from aioinformer.logger import get_logger
from aioinformer.owner import collapsed

_log = get_logger(__name__)


class Syncing(Protocol):
    """What can be waited for: informers, registrations of handlers, trackers."""

    @property
    def name(self) -> str: ...

    def has_synced(self) -> bool: ...

    async def wait_for_sync(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What came of a wait; true if all have synced (WAIT-04).

    Attributes:
        synced: the names of those that have, sorted.
        pending: the names of those that have not, sorted.
    """

    synced: tuple[str, ...]
    pending: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.pending

    def check(self) -> None:
        """Raises an error if not all have synced.

        Raises:
            TimeoutError: naming those that have not.
        """
        if self.pending:
            raise TimeoutError(f"not synced in time: {', '.join(self.pending)}")


async def wait_for_cache_sync(
    *waited_for: Syncing,
    name: str = "",
    timeout: float | None = None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
) -> SyncResult:
    """Returns once all have synced, or the time is over. What has synced already counts however short the time is.

    An informer has synced when its cache is filled from the first list; a registration, when its handler was called for
    all of that, too.

    Args:
        waited_for: informers, registrations, trackers; if there are none, all have synced.
        name: who is waiting; if given, each that syncs is logged. Those that do not are logged in any case.
        timeout: in seconds, None for no limit.

    Raises:
        InformerStopped: one of them stopped before it had synced.
        Exception: what an informer crashed with.
    """
    who = name or "waiting for caches"
    try:
        async with asyncio.timeout(timeout), asyncio.TaskGroup() as tasks:
            for each in waited_for:
                if not each.has_synced():
                    tasks.create_task(_wait(each, name), name=f"{who}: {each.name}")
                elif name:
                    _log.info("%s: %s has synced", name, each.name)
    except TimeoutError:
        pass
    except BaseExceptionGroup as group:
        error = collapsed(group.exceptions[0])  # the first that failed; the others were cancelled, or say the same
        raise error from error.__cause__
    result = _result(waited_for)
    if not result:
        _log.warning("%s: not synced within %g s: %s", who, timeout, ", ".join(result.pending))
    return result


async def _wait(each: Syncing, name: str) -> None:
    await each.wait_for_sync()
    if name:
        _log.info("%s: %s has synced", name, each.name)


def _result(waited_for: tuple[Syncing, ...]) -> SyncResult:
    synced = [each.name for each in waited_for if each.has_synced()]
    pending = [each.name for each in waited_for if not each.has_synced()]
    return SyncResult(tuple(sorted(synced)), tuple(sorted(pending)))
