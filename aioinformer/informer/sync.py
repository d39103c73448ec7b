"""Waiting until several caches are filled, or handlers told: all at once, and without asking again and again."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Protocol

from aioinformer.concurrency import collapsed
from aioinformer.errors import UsageError
from aioinformer.logs import get_logger
from aioinformer.reflector.options import check_seconds

_log = get_logger("aioinformer.informer")


class Syncing(Protocol):
    """What can be waited for: informers, registrations of handlers, trackers."""

    @property
    def name(self) -> str:
        """Identifies this one in results and messages."""
        ...

    def has_synced(self) -> bool:
        """Return whether it has synced."""
        ...

    async def wait_for_sync(self) -> None:
        """Wait until it has synced."""
        ...


class SyncResult(Mapping[str, bool]):
    """What came of a wait: whether each has synced, by its name. True only if all have (WAIT-04).

    It equals a dict of the same content. In an `if` it is not what a dict would be: `if not result:` means that
    something is pending.

    Args:
        synced: name -> whether it has synced.
        reasons: name -> why it has not, as far as that is known.
    """

    __slots__ = ("_each", "_reasons")

    def __init__(self, synced: Mapping[str, bool], reasons: Mapping[str, str] = MappingProxyType({})) -> None:
        self._each = dict(synced)
        self._reasons = dict(reasons)

    @property
    def synced(self) -> tuple[str, ...]:
        """The names of those that have synced, sorted."""
        return tuple(sorted(name for name, synced in self._each.items() if synced))

    @property
    def pending(self) -> tuple[str, ...]:
        """The names of those that have not synced, sorted."""
        return tuple(sorted(name for name, synced in self._each.items() if not synced))

    def __getitem__(self, name: str) -> bool:
        return self._each[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    def __bool__(self) -> bool:
        return all(self._each.values())

    def check(self) -> None:
        """Raises an error if not all have synced.

        Raises:
            TimeoutError: naming those that have not, and why.
        """
        if self.pending:
            raise TimeoutError(f"not synced in time: {self.describe_pending()}")

    def describe_pending(self) -> str:
        """Return the names of those that have not synced, each with the reason if that is known."""
        return ", ".join(f"{name} ({self._reasons[name]})" if name in self._reasons else name for name in self.pending)

    def __repr__(self) -> str:
        return f"SyncResult({self._each!r})"


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

    Returns:
        Whether all have synced, and whether each has, by its name; of several with the same name, the second is
        "name (2)".

    Raises:
        InformerStopped: one of them stopped before it had synced.
        Exception: what an informer crashed with.
        UsageError: one of them cannot be waited for, or the time-out is no number.
    """
    named: dict[str, Syncing] = {}
    for each in waited_for:
        _check(each)
        unique = each.name
        for number in count(2):
            if unique not in named:
                break
            unique = f"{each.name} ({number})"
        named[unique] = each
    return await all_synced(named, name=name, timeout=timeout)


def _check(given: Any) -> None:
    if all(hasattr(given, name) for name in ("name", "has_synced", "wait_for_sync")):
        return
    if hasattr(given, "wait_for_cache_sync"):
        remedy = "call its own wait_for_cache_sync()"
    elif isinstance(given, bool) or inspect.ismethod(given):
        remedy = "give the informer itself, not its has_synced"
    else:
        remedy = "give what informer() or add_event_handler() returns"
    raise UsageError(
        f"wait_for_cache_sync: expected informers, registrations or trackers, not {type(given).__name__}; {remedy}"
    )


async def all_synced(
    waited_for: Mapping[str, Syncing],
    *,
    name: str = "",
    timeout: float | None = None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
) -> SyncResult:
    """The same for what has names of its own.

    Args:
        waited_for: by name.
        name: as for `wait_for_cache_sync`.
        timeout: as for `wait_for_cache_sync`.
    """
    if timeout is not None:
        check_seconds(timeout, "timeout")
    waited_for = dict(waited_for)
    who = name or "waiting for caches"
    try:
        async with asyncio.timeout(timeout), asyncio.TaskGroup() as tasks:
            for each_name, each in waited_for.items():
                if not each.has_synced():
                    tasks.create_task(_wait(each, each_name, name), name=f"{who}: {each_name}")
                elif name:
                    _log.info("%s: %s has synced", name, each_name)
    except TimeoutError:
        pass
    except BaseExceptionGroup as group:
        error = collapsed(group.exceptions[0])  # the first that failed; the others were cancelled, or say the same
        raise error from error.__cause__
    states = {each_name: getattr(each, "state", None) for each_name, each in waited_for.items()}
    result = SyncResult(
        {each_name: each.has_synced() for each_name, each in waited_for.items()},
        {each_name: str(state) for each_name, state in states.items() if getattr(state, "reason", "")},
    )
    if not result:
        _log.warning("%s: not synced within %g s: %s", who, timeout, result.describe_pending())
    return result


async def _wait(each: Syncing, each_name: str, name: str) -> None:
    await each.wait_for_sync()
    if name:
        _log.info("%s: %s has synced", name, each_name)
