"""Who owns the number of replicas after a write of a `Scale`.

To the API such a write is one of another object, which has one field: its owners are those of the number, told in the
words of a `Scale`, and they are told back afterwards. On the way an updater loses the number to an entry of his own
that has no time, even if nothing was changed. Two entries of the same manager are one when they are read again, the
later one: at the next write that changes nothing the number belongs to nobody. What nobody owns is not tracked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.ownership.managers import Owned, write_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.ownership.managers import Owners


def note_scaling(
    metadata: dict[str, Any], owners: Owners, names: list[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> bool:
    """Notes who owns what after a write of a scale that changes nothing, or whose number nobody owned.

    Args:
        metadata: of the object as it will be stored.
        owners: before the write.
        names: where the number is.
        old: the object as it was.
        new: as it will be.

    Returns:
        Whether it was such a write.
    """
    path = tuple(f"f:{name}" for name in names)
    owning = {manager: owned for manager, owned in owners.items() if path in owned.fields}
    if owning and _number(old, names) != _number(new, names):
        return False
    entries = []
    for manager, owned in owners.items():
        if manager not in owning or manager.operation == "Apply":
            entries.append((manager, owned))
            continue
        if rest := owned.fields - {path}:
            entries.append((manager, Owned(rest, owned.time)))
        entries.append((manager, Owned(frozenset({path}))))
    write_entries(metadata, entries)
    return True


def _number(obj: Mapping[str, Any], names: list[str]) -> Any:
    value: Any = obj
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value or 0
