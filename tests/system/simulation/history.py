"""The states of each object, in order, and the moments that lists have shown; notifications are compared with them.

Each write has a serial number, which objects have as a label. It identifies the write of an object even if a restored
server assigns the same versions again.

The notifications of an object must be states of its history, in order. A state may be skipped only if a list showed a
later one, or if it could not be decoded.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

#: The serial number of an absent object.
ABSENT = 0


class State(NamedTuple):
    """A state of an object, made by a write or a deletion at a moment, which is counted in writes."""

    moment: int
    serial: int
    readable: bool = True


class History:
    """The states of all objects that an informer may see, and the moments that lists have shown."""

    def __init__(self) -> None:
        self.moment = 0
        self.shown: list[int] = []
        #: Deletions may have had the version of the object: after a restore to that version, no client can notice it.
        self.deletions_unversioned = False
        self._undone: list[tuple[int, int]] = []
        self._of: dict[str, list[State]] = {}

    def add(self, key: str, serial: int, *, readable: bool = True) -> None:
        """Append a state of an object."""
        self.moment += 1
        self._of.setdefault(key, []).append(State(self.moment, serial, readable))

    def show(self, moment: int) -> None:
        """Record that a list has shown a moment."""
        place = bisect_left(self.shown, moment)
        if place == len(self.shown) or self.shown[place] != moment:
            self.shown.insert(place, moment)

    def undo(self, then: int) -> None:
        """Undo the changes after a moment: only clients that were connected have seen them."""
        self._undone.append((then, self.moment))

    def is_decoded_at(self, key: str, moment: int) -> bool:
        """Return whether a list of a moment shows an object that can be decoded."""
        decoded = False
        for state in self._of.get(key, ()):
            if state.moment > moment:
                break
            decoded = state.serial != ABSENT and state.readable
        return decoded

    def next(self, key: str, after: Collection[int], serial: int, *, listed: bool = False) -> list[int] | str:
        """Return the possible places in the history of a delivered state; after restores there may be several.

        Args:
            key: of the object.
            after: the possible places of the previous notification; empty if there was none.
            serial: of the delivered state.
            listed: whether only a list can have shown it.

        Returns:
            The places, or the reason why there is none.
        """
        states = self._of.get(key, [])
        befores: Collection[int | None] = after or (None,)
        begin = min(after) + 1 if after else 0
        found = [place for place in range(begin, len(states)) if states[place].serial == serial]
        possible = [
            place
            for place in found
            if self._was_shown(states, place)
            or (not listed and any(self._follows(states, before, place) for before in befores))
        ]
        if possible:
            return possible
        if found:
            return "states before it were passed over, and no list shows it"
        if any(state.serial == serial for state in states):
            return "it was so, but before what was told last"
        return "it never was so"

    def places(self, key: str, since: int, serial: int) -> list[int]:
        """Return all places of a state from one place on."""
        states = self._of.get(key, ())
        return [place for place in range(since, len(states)) if states[place].serial == serial]

    def find(self, key: str, after: int, serial: int) -> int:
        """Return the first place of a state after another place; -1 if there is none."""
        states = self._of.get(key, ())
        return next((at for at in range(after + 1, len(states)) if states[at].serial == serial), -1)

    def covers(self, key: str, place: int, serial: int) -> bool:
        """Return whether a state is at a place of the history or later; -1 is before all of them."""
        if serial == ABSENT and place < 0:
            return True
        return any(state.serial == serial for state in self._of.get(key, [])[max(place, 0) :])

    def latest(self, key: str) -> int:
        """Return the place of the last state of an object, -1 if there is none."""
        return len(self._of.get(key, ())) - 1

    def lacks_readable(self, key: str) -> bool:
        """Return whether some state of an object could not be decoded."""
        return any(not state.readable for state in self._of.get(key, ()))

    def _was_shown(self, states: list[State], place: int) -> bool:
        index = bisect_left(self.shown, states[place].moment)
        if index == len(self.shown):
            return False
        return place + 1 == len(states) or self.shown[index] < states[place + 1].moment

    def _follows(self, states: list[State], after: int | None, place: int) -> bool:
        """Return whether a watch may deliver one state directly after another."""
        if after is not None and after >= place:
            return False
        # A list with an undecodable object replaces earlier states, while the cache keeps its object.
        last = range(place - 1, -1 if after is None else after, -1)
        kept = next((at for at in last if not states[at].readable and self._was_shown(states, at)), None)
        if after is None:
            before = self._visible(states[kept or 0 : place], 0, states[place].moment)
            return not before or before[-1].serial == ABSENT
        # A restore may bring back the last delivered state; a list of it causes no notification.
        serial = states[after].serial
        again = next((at for at in last if states[at].serial == serial and self._was_shown(states, at)), after)
        between = states[max(again, kept or 0) + 1 : place]
        between = self._visible(between, states[after].moment, states[place].moment)
        return all(state.serial == serial for state in between)

    def _visible(self, states: list[State], since: int, until: int) -> list[State]:
        """Return the states that a watch delivers between two moments."""
        detours = [
            (begin, end)
            for begin, end in self._undone
            if (since <= begin or self.deletions_unversioned) and end < until
        ]
        return [
            state
            for state in states
            if state.readable and not any(begin < state.moment <= end for begin, end in detours)
        ]
