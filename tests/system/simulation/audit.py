"""Checks the invariants after each iteration of the loop, and at rest."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aioinformer.reflector import Phase
from tests.system.simulation.collection import identity_of, key_of, serial_of
from tests.system.simulation.history import ABSENT
from tests.system.simulation.witness import OnPurpose
from tests.system.simulation.world import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.simulation.model_server import Asked
    from tests.system.simulation.stage import Stage

#: The store is checked completely once in this number of iterations.
_EVERY = 8
#: The largest number of requests in ten seconds, without later pages.
MOST_IN_TEN_SECONDS = 24
#: The largest number of failing requests in two minutes; answers 404 are counted apart, with the same limit. With
#: `Retry-After: 1`, there are up to 18: ten until the backoff counts, too, and its delays add up to 110 s.
MOST_IN_VAIN = 20
_NOT_SERVED = 404
#: Seconds that an informer without a watch may look healthy after a refusal, which may arrive slowly.
_MOMENT_OF_HEALTH = 15.0


class Audit:
    """Checks an informer between any two iterations of the loop."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._story = stage.story
        self._turn = 0
        self._version = -1
        self._restores = 0
        self._synced = False
        self._places: dict[str, int] = {}
        self._cached: dict[str, int] = {}

    def turn(self) -> None:
        """Check after an iteration of the loop."""
        self._turn += 1
        self._check_version()
        self._check_synced()
        if self._turn % _EVERY == 0:
            self.check_cache()
            self._check_honesty()

    def places(self) -> dict[str, int]:
        """Return the place of each cached object in its history."""
        self.check_cache()
        return self._places

    def _check_version(self) -> None:
        text = self._stage.informer.last_sync_resource_version
        version = int(text) if text else -1
        if version == self._version:
            return
        if version < self._version:
            if self._restores == self._stage.server.restores:
                self._story.violate("version went back", f"from {self._version} to {version} without a restore")
            self._restores = self._stage.server.restores
        self._version = version

    def _check_synced(self) -> None:
        informer = self._stage.informer
        if not self._synced and informer.has_synced():
            self._synced = True
            history = self._stage.collection.history
            cached = {key_of(obj) for obj in informer.get_store().list()}
            first = {key for key in cached if all(history.is_decoded_at(key, moment) for moment in history.shown)}
            for witness in self._stage.witnesses:
                if witness.greeting is None:
                    witness.initial = first
        for witness in self._stage.present:
            if witness.synced or witness.registration is None or not witness.registration.has_synced():
                continue
            witness.synced = True
            if not self._synced:
                self._story.violate("synced too early", f"{witness.name} before the informer")
            missing = witness.initial - witness.seen
            if missing:
                self._story.violate("synced too early", f"{witness.name} did not receive {', '.join(sorted(missing))}")

    def _check_honesty(self) -> None:
        server, informer = self._stage.server, self._stage.informer
        # The informer cannot know of responses in transit, such as refusals.
        states = [
            reflector.state for reflector in informer.reflectors().values()
        ]  # which index functions do not decode
        if not all(state.healthy and state.phase is not Phase.POLLING for state in states) or server.open:
            return
        if (
            server.asked
            and server.asked[-1].refused
            and asyncio.get_running_loop().time() > server.refused_at + _MOMENT_OF_HEALTH
        ):
            self._story.violate("failure not shown", f"the state is {informer.state}, but the server refuses")

    def check_cache(self) -> None:
        """Check that the cache agrees with its indices, and that no object in it goes back."""
        store = self._stage.informer.get_indexer()
        objects = store.list()
        cached = {key_of(obj): serial_of(obj) for obj in objects}
        if cached != self._cached:
            self._check_moves(cached)
            self._cached = cached
        for name, function in self._stage.indexers.items():
            wanted: dict[str, set[str]] = {}
            for obj in objects:
                with suppress(OnPurpose):
                    for value in function(obj):
                        wanted.setdefault(value, set()).add(key_of(obj))
            self._check_index(name, wanted)
        spaces: dict[str, set[str]] = {}
        for key in cached:
            spaces.setdefault(key.partition("/")[0], set()).add(key)
        self._check_index("namespace", spaces)

    def _check_index(self, name: str, wanted: dict[str, set[str]]) -> None:
        store = self._stage.informer.get_indexer()
        values = set(store.list_index_func_values(name))
        if values != wanted.keys():
            self._story.violate("index", f"{name} has values {sorted(values)}, the cache {sorted(wanted)}")
        for value, keys in wanted.items():
            there = set(store.index_keys(name, value))
            if there != keys:
                self._story.violate("index", f"{name}={value} has {sorted(there)}, the cache {sorted(keys)}")

    def _check_moves(self, cached: dict[str, int]) -> None:
        history = self._stage.collection.history
        for key in cached.keys() | self._cached.keys():
            serial, before = cached.get(key, ABSENT), self._cached.get(key, ABSENT)
            if serial == before:
                continue
            place = history.find(key, self._places.get(key, -1), serial)
            if place < 0:
                self._story.violate("cache went back", f"{key} is at write {serial}, and was at {before}")
            else:
                self._places[key] = place

    # At rest.

    def differences(self, joined_by: float = math.inf) -> str:
        """Return how the cache or the notifications differ from the server; "" if they agree.

        Args:
            joined_by: handlers that joined later are not checked.
        """
        stage = self._stage
        present = [witness for witness in stage.present if witness.joined <= joined_by]
        there = {key: (obj.uid, str(obj.version), obj.serial) for key, obj in stage.collection.visible().items()}
        cached = {key_of(obj): identity_of(obj) for obj in stage.informer.get_store().list()}
        if cached != there:
            return f"the cache differs from the server: {_difference(cached, there)}"
        serials = {key: serial for key, (_, _, serial) in there.items()}
        for witness in present:
            if witness.present != serials:
                return f"what {witness.name} was told differs from the server: {_difference(witness.present, serials)}"
        state = stage.informer.state
        broken = {key_of(obj) for obj in stage.informer.get_store().list() if _fails_to_index(stage, obj)}
        if state.phase is not (Phase.DEGRADED if broken else Phase.WATCHING) or state.reason.count("raises") != bool(
            broken
        ):
            return f"the state is {state}, and index functions raise for {len(broken)} objects"
        for witness in present:
            if not witness.synced:
                return f"{witness.name} has not synced"
        return ""


def _fails_to_index(stage: Stage, obj: Any) -> bool:
    for function in stage.indexers.values():
        try:
            function(obj)
        except OnPurpose:
            return True
    return False


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return "; ".join(f"{key}: {one.get(key)} and not {other.get(key)}" for key in keys[:5])


def check_requests(stage: Stage) -> None:
    """Check that requests are not too frequent, and that Retry-After is honored."""
    server, story = stage.server, stage.story
    asked: list[Asked] = [each for each in server.asked if each.verb != "page"]
    for first, last in zip(asked, asked[MOST_IN_TEN_SECONDS:], strict=False):
        if last.at - first.at < 10:
            what = f"more than {MOST_IN_TEN_SECONDS} requests in 10 s, from {first.at - START:.3f} s on"
            story.violate("too many requests", what)
            break
    # Two limits: a resource that is not served is requested again within ten seconds, whatever was refused before.
    _check_refusals(stage, "refusals", lambda each: each.status != _NOT_SERVED)
    _check_refusals(stage, "answers 404", lambda each: each.status == _NOT_SERVED)
    for promise in server.promises:
        for each in asked:
            if promise.at < each.at < promise.until - 1e-6:
                what = f"asked at {each.at - START:.3f} s, but Retry-After lasts until {promise.until - START:.3f} s"
                story.violate("Retry-After", what)
                return


def _check_refusals(stage: Stage, what: str, counts: Callable[[Asked], bool]) -> None:
    """Check that not too many requests in a row are refused in two minutes, of those that count."""
    vain: list[float] = []
    for each in stage.server.asked:
        if not each.refused:
            vain = []
        elif counts(each):
            vain = [*vain, each.at][-MOST_IN_VAIN - 1 :]
        if len(vain) > MOST_IN_VAIN and vain[-1] - vain[0] < 120:
            begin = f"from {vain[0] - START:.3f} s on"
            stage.story.violate("too many requests", f"more than {MOST_IN_VAIN} {what} in 120 s, {begin}")
            return
