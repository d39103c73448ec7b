"""`wait_for_cache_sync`: wait until several informers, registrations or trackers have synced, without polling."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Protocol

from aioinformer.concurrency import TaskGroup
from aioinformer.errors import UsageError, collapsed
from aioinformer.logs import get_logger
from aioinformer.reflector.options import check_seconds

_log = get_logger("aioinformer.informer")


class Syncing(Protocol):
    """Anything that `wait_for_cache_sync` accepts: informers, registrations of handlers, trackers."""

    @property
    def name(self) -> str:
        """The name in results and messages."""

    def has_synced(self) -> bool:
        """Return whether it has synced."""

    async def wait_for_sync(self) -> None:
        """Wait until it has synced."""


class SyncResult(Mapping[str, bool]):
    """The result of a wait: name -> whether it has synced. It is true if all have synced.

    It equals a dict with the same items, but has another truth value: `if not result:` means that some have not synced.

    Args:
        synced: name -> whether it has synced.
        reasons: name -> why it has not synced, if that is known.
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
        """Raise an error unless all have synced.

        Raises:
            TimeoutError: some have not synced; the message has their names and the reasons.
        """
        if self.pending:
            raise TimeoutError(f"not synced in time: {self.describe_pending()}")

    def describe_pending(self) -> str:
        """Return the names of those that have not synced, with the known reasons."""
        return ", ".join(f"{name} ({self._reasons[name]})" if name in self._reasons else name for name in self.pending)

    def __repr__(self) -> str:
        return f"SyncResult({self._each!r})"


async def wait_for_cache_sync(
    *waited_for: Syncing,
    name: str = "",
    timeout: float | None = None,  # noqa: ASYNC109 - a timeout is a result here, not an exception
) -> SyncResult:
    """Wait until all have synced, or the timeout ends. Even with a timeout of 0, those that have synced count.

    An informer has synced when its cache contains the initial list; a registration, when the initial list was also
    delivered to its handler.

    Args:
        waited_for: informers, registrations, trackers; with none, the result is true.
        name: of the waiting component. If given, each sync is logged. Those that do not sync are logged in any case.
        timeout: in seconds, None for no limit.

    Returns:
        Whether each has synced, by name; if several have the same name, the second is "name (2)".

    Raises:
        InformerStopped: one of them stopped before it had synced.
        Exception: an informer crashed with it.
        UsageError: an argument is of another type, or the timeout is not a number.
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
        remedy = "pass the informer itself, not its has_synced"
    else:
        remedy = "pass the result of informer() or add_event_handler()"
    raise UsageError(
        f"wait_for_cache_sync: expected informers, registrations or trackers, not {type(given).__name__}; {remedy}"
    )


async def all_synced(
    waited_for: Mapping[str, Syncing],
    *,
    name: str = "",
    timeout: float | None = None,  # noqa: ASYNC109 - a timeout is a result here, not an exception
) -> SyncResult:
    """Do the same as `wait_for_cache_sync`, with names that the caller chooses.

    Args:
        waited_for: by name.
        name: as for `wait_for_cache_sync`.
        timeout: as for `wait_for_cache_sync`.

    Raises:
        OptionError: the timeout is no number of seconds.
    """
    if timeout is not None:
        check_seconds(timeout, "timeout")
    waited_for = dict(waited_for)
    who = name or "waiting for caches"
    try:
        async with asyncio.timeout(timeout), TaskGroup() as tasks:
            for each_name, each in waited_for.items():
                if not each.has_synced():
                    tasks.create_task(_wait(each, each_name, name), name=f"{who}: {each_name}")
                elif name:
                    _log.info("%s: %s has synced", name, each_name)
    except TimeoutError:
        pass
    except BaseExceptionGroup as group:
        error = collapsed(group.exceptions[0])  # the first failure; the others were cancelled, or are the same
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
