"""Proof that the runs of a key only repeat themselves: from what they change, by digests of values. No I/O.

A rollout changes something in each of 200 runs, too, and it must not be taken for a loop. The difference is progress:

- what changes for the first time, such as the next child, is progress;
- a count may be progress: a number that changes by the same step in each run, or a text or list that becomes longer;
- what returns to a former state is none.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

#: In how many runs in a row a field changes until that is a loop; and if the field counts, as that of a rollout does.
RUNS: Final = 30
COUNTED_RUNS: Final = 300
#: The number of states that are remembered, and of fields. Of more fields, some count as new whenever they change.
_STATES: Final = 64
_FIELDS: Final = 256

#: An object, as "configmaps shop/web", and the path of a field in it. "" is the object as a whole.
Field: TypeAlias = tuple[str, str]

_encode = msgspec.json.Encoder(order="deterministic").encode


class FieldChange(NamedTuple):
    """A change of a field, without its values.

    Attributes:
        field: which changed.
        before, after: digests of the values.
        step: equal for changes of a count by the same step; None if the field does not count.
    """

    field: Field
    before: int
    after: int
    step: object = None


def change_of(field: Field, before: Any, after: Any) -> FieldChange:
    """Return the change of a field from one value to another. The values are not kept."""
    return FieldChange(field, digest_of(before), digest_of(after), _step(before, after))


def digest_of(value: Any) -> int:
    """Return a digest of a JSON value, which is salted in each process."""
    return hash(_encode(value))


class _Known(msgspec.Struct):
    """A field that has changed: its digest, and in how many runs in a row it has, up to a run; in how many it counted.

    All are runs without progress.
    """

    now: int
    run: int = -1
    runs: int = 0
    counted: int = 0
    step: object = None


class Repetition:
    """What the runs of one key have changed, and whether they repeat themselves. Nothing else may have changed.

    There are two proofs: after a run, all that has changed is as it was after an earlier run, or before the first one;
    or the same field has changed in each of `RUNS` runs, `COUNTED_RUNS` if it counts. A run that changes something for
    the first time has made progress, and is none of these.

    Attributes:
        proof: the field that shows it, and what it does, for people; None without a proof.
    """

    def __init__(self) -> None:
        self.proof: tuple[Field, str] | None = None
        self._fields: OrderedDict[Field, _Known] = OrderedDict()
        #: The digests of the fields in one number, 0 before the first run; and those after earlier runs.
        self._state = 0
        self._states: OrderedDict[int, None] = OrderedDict({0: None})

    def add(self, run: int, changes: Iterable[FieldChange]) -> bool:
        """Note all that a run has changed; return whether there is a proof.

        Args:
            run: its number: each run has the next one.
            changes: in their order, at least one.
        """
        progress = False
        changed: dict[Field, _Known] = {}
        for change in changes:
            known = self._fields.get(change.field)
            if known is None:
                progress = True
                known = _Known(change.before)
                self._fields[change.field] = known
            if change.field not in changed:
                changed[change.field] = known
                self._count(known, run, change)
            self._state ^= _part(change.field, known.now) ^ _part(change.field, change.after)
            known.now = change.after
        while len(self._fields) > _FIELDS:
            self._fields.popitem(last=False)
        if progress:
            for each in self._fields.values():
                each.runs = 0
                each.counted = 0
        elif self.proof is None:
            self.proof = self._proof(changed)
        self._states[self._state] = None
        if len(self._states) > _STATES:
            self._states.popitem(last=False)
        return self.proof is not None

    def _count(self, known: _Known, run: int, change: FieldChange) -> None:
        in_a_row = run == known.run + 1
        counts = change.step is not None and change.step == known.step
        known.runs = known.runs + 1 if in_a_row else 1
        known.counted = known.counted + 1 if in_a_row and counts else 0
        known.step = change.step
        known.run = run
        self._fields.move_to_end(change.field)

    def _proof(self, changed: dict[Field, _Known]) -> tuple[Field, str] | None:
        if self._state in self._states:
            return next(iter(changed)), "returns to a value that it had"
        for field, known in changed.items():
            counts = known.counted >= known.runs - 1
            if known.runs >= (COUNTED_RUNS if counts else RUNS):
                return field, f"has changed in each of {known.runs} runs"
        return None


def _part(field: Field, digest: int) -> int:
    return hash((field, digest))


def _step(before: Any, after: Any) -> object:
    old = _number(before)
    new = _number(after)
    if old is not None and new is not None:
        return "by", new - old
    if isinstance(before, (str, list)) and type(before) is type(after):
        if len(after) > len(before):
            return ("longer",)
        if len(after) < len(before):
            return ("shorter",)
    return None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
        return int(value)
    return value if type(value) is int else None
