"""Who owns which fields of an object: `metadata.managedFields`, kept as kube-apiserver keeps it.

Each entry belongs to one manager, one way of writing (Update or Apply), one version of the API, and one subresource.

* A write that is no apply takes over what it adds or changes, from everybody; what it removes belongs to nobody.
* An apply owns what it says, no more and no less. To change a field of another manager is a conflict, unless forced;
  then the field changes hands. To say the same value as another is to share it. What an applier said the last time and
  does not say any more is removed from the object, unless somebody else owns it.
* An object without entries is not tracked until somebody applies to it; then what was there before belongs to
  "before-first-apply".
* Of more than ten updaters the oldest become one, "ancient-changes".

The time of an entry changes when its manager changes the object, so that a write that changes nothing is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.schemas.field_paths import (
    NO_FIELDS,
    FieldSet,
    Path,
    below,
    decode_fields,
    encode_fields,
    shown,
)
from aioinformer.testing.schemas.typed_fields import compare, fields_of, merge, remove, with_named_parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.schemas.typed_fields import FieldType

_MOST_UPDATERS = 10
LONGEST_MANAGER = 128
"""Bytes in the name of a manager."""
_METADATA_OF_THE_SERVER = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
_NOBODYS: FieldSet = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _METADATA_OF_THE_SERVER),
    }
)


class Manager(NamedTuple):
    """Whom an entry belongs to.

    Attributes:
        name: as the client called itself.
        operation: "Update" or "Apply".
        api_version: of the object that was sent.
        subresource: "" for the object itself.
    """

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        version = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{where}{version}'


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns.

    Attributes:
        fields: the set of them.
        time: when that last changed, as the API writes it; "" where nobody knows.
    """

    fields: FieldSet
    time: str = ""


Owners = dict[Manager, Owned]


class Conflict(NamedTuple):
    """A field that an apply would take from its owner."""

    owner: Manager
    path: Path

    def __str__(self) -> str:
        return f"conflict with {self.owner}"


class ConflictError(Exception):
    """An apply met fields of other managers.

    Attributes:
        conflicts: all of them, in the order in which the API names them.
    """

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        super().__init__(_told(conflicts))


def manager_name(asked: str, user_agent: str) -> str:
    """How a client is called that did not say it, or did: by the first word of its user agent."""
    name = asked or "".join(filter(str.isprintable, user_agent.partition("/")[0]))[:LONGEST_MANAGER]
    return name or "unknown"


def read_owners(metadata: Mapping[str, Any]) -> Owners | None:
    """The entries of an object; None if they cannot be understood, or if there are none."""
    owners: Owners = {}
    try:
        for entry in metadata.get("managedFields") or ():
            if entry["operation"] not in ("Update", "Apply") or entry["fieldsType"] != "FieldsV1":
                return None
            manager = Manager(
                str(entry.get("manager", "")),
                entry["operation"],
                str(entry.get("apiVersion", "")),
                str(entry.get("subresource", "")),
            )
            owners[manager] = Owned(decode_fields(entry.get("fieldsV1") or {}), str(entry.get("time") or ""))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return owners or None


def write_owners(metadata: dict[str, Any], owners: Owners) -> None:
    """Puts the entries into an object, in the API's order."""
    metadata.pop("managedFields", None)
    entries = []
    for manager, owned in sorted(owners.items(), key=_order):
        entry = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": encode_fields(owned.fields),
            "subresource": manager.subresource,
        }
        entries.append({name: value for name, value in entry.items() if value or name == "fieldsV1"})
    if entries:
        metadata["managedFields"] = entries


def after_update(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    type_: FieldType,
    owners: Owners | None,
    manager: Manager,
    now: str,
    ignored: FieldSet = NO_FIELDS,
) -> Owners:
    """The owners after a write that is no apply.

    Args:
        old: the object as it was; what is there before anybody said anything, if it is created.
        new: as it will be stored.
        type_: of the object.
        owners: those before the write; None if it is not tracked.
        manager: who writes.
        now: for the manager's entry, as the API writes times.
        ignored: fields that this kind of write cannot change.
    """
    if owners is None:
        return {}
    comparison = compare(old, new, type_)
    taken = frozenset(comparison.modified | comparison.added)
    removed = frozenset(comparison.removed)
    after = _without(owners, taken | removed)
    own = taken - removed - _NOBODYS
    own -= below(own, ignored)
    if own:
        former = after.get(manager, Owned(NO_FIELDS)).fields
        after[manager] = Owned(former | own, now)
    return _capped(after)


def apply(
    live: Mapping[str, Any],
    config: Mapping[str, Any],
    type_: FieldType,
    owners: Owners | None,
    manager: Manager,
    now: str,
    *,
    force: bool,
    ignored: FieldSet = NO_FIELDS,
) -> tuple[dict[str, Any], Owners]:
    """Applies a configuration.

    Args:
        live: the object as it is; empty if there is none.
        config: what the applier says.
        type_: of the object.
        owners: those before; None if it is not tracked.
        manager: who applies.
        now: for the manager's entry, as the API writes times.
        force: take fields of others rather than fail.
        ignored: fields that this kind of write cannot change.

    Returns:
        The object as it becomes, and its owners.

    Raises:
        ConflictError: fields of others would change, and `force` is False.
    """
    if owners is None:
        first = Manager("before-first-apply", "Update", manager.api_version)
        owners = after_update({}, live, type_, {}, first, now) if live else {}
    named = fields_of(config, type_)
    named -= below(named, ignored)
    former = owners.get(manager, Owned(NO_FIELDS))
    # What belongs to nobody counts for this moment: an object must not lose its name with its last label.
    after = {**owners, manager: Owned(named)}
    merged = _pruned(merge(live, config, type_), after, former.fields, type_)
    comparison = compare(live, merged, type_)
    taken = frozenset(comparison.modified | comparison.added)
    said = named - _NOBODYS
    others = {each: owned for each, owned in after.items() if each != manager}
    conflicts = [
        Conflict(each, path) for each, owned in sorted(others.items()) for path in sorted(owned.fields & taken)
    ]
    if conflicts and not force:
        raise ConflictError(conflicts)
    result = _without(others, taken | frozenset(comparison.removed))
    # An apply that only shares what others own leaves the times alone: nothing happened to the object.
    changed = bool(taken or comparison.removed)
    if said:
        result[manager] = Owned(said, now if changed else former.time)
    return merged, _capped(result)


def _pruned(merged: dict[str, Any], owners: Owners, former: FieldSet, type_: FieldType) -> dict[str, Any]:
    """Without what the applier said the last time, and nobody says now."""
    if not former:
        return merged
    former = with_named_parents(former, type_)
    present = with_named_parents(fields_of(merged, type_), type_)
    owned = with_named_parents(frozenset().union(*(each.fields for each in owners.values())), type_)
    left = with_named_parents(fields_of(remove(merged, former, type_), type_), type_)
    pruned = remove(merged, present - left - owned, type_)
    left = with_named_parents(fields_of(pruned, type_), type_)
    kept: dict[str, Any] = remove(merged, (present - left) & former, type_)
    return kept


def _without(owners: Owners, lost: FieldSet) -> Owners:
    kept = {}
    for manager, owned in owners.items():
        if fields := owned.fields - lost:
            kept[manager] = replace(owned, fields=fields)
    return kept


def _capped(owners: Owners) -> Owners:
    updaters = sorted(((m, o) for m, o in owners.items() if m.operation == "Update"), key=_order)
    surplus = updaters[: max(0, len(updaters) - _MOST_UPDATERS)]
    if not surplus:
        return owners
    # One place more is needed for those that become one.
    surplus = updaters[: len(updaters) - _MOST_UPDATERS + 1]
    kept = dict(owners)
    for manager, owned in surplus:
        del kept[manager]
        ancient = Manager("ancient-changes", "Update", manager.api_version)
        known = kept.get(ancient, Owned(NO_FIELDS))
        kept[ancient] = Owned(known.fields | owned.fields, max(known.time, owned.time))
    return kept


def _order(entry: tuple[Manager, Owned]) -> tuple[str, str, str, str, str]:
    manager, owned = entry
    return manager.operation, owned.time, manager.name, manager.api_version, manager.subresource


def _told(conflicts: Iterable[Conflict]) -> str:
    by_owner: dict[Manager, list[str]] = {}
    for conflict in conflicts:
        by_owner.setdefault(conflict.owner, []).append(shown(conflict.path))
    count = sum(map(len, by_owner.values()))
    if count == 1:
        [(owner, [path])] = by_owner.items()
        return f"Apply failed with 1 conflict: conflict with {owner}: {path}"
    lines = [f"Apply failed with {count} conflicts:"]
    for owner, paths in by_owner.items():
        lines += [f"conflicts with {owner}:", *(f"- {path}" for path in paths)]
    return lines[0] + " " + "\n".join(lines[1:])
