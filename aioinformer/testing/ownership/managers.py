"""Who owns which fields of an object: `metadata.managedFields`, kept as kube-apiserver keeps it.

Each entry belongs to one manager, one way of writing (Update or Apply), one version of the API, and one subresource.

* A write that is no apply takes over what it adds or changes, from everybody; what it removes belongs to nobody.
* An apply owns what it says, no more and no less. To change a field of another manager is a conflict, unless forced;
  then the field changes hands. To say the same value as another is to share it. What an applier said the last time and
  does not say any more is removed from the object, unless somebody else owns it.
* An object without entries is not tracked until somebody applies to it; then what was there before belongs to
  "before-first-apply".
* Of more than ten updaters the oldest become one, "ancient-changes".
* What a manager owns is told in the words of the version that it spoke. A write in another version of the group looks
  at the object as that version shows it; managers who spoke a version that the group does not have are forgotten.

The time of an entry changes when its manager changes the object, so that a write that changes nothing is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.ownership.versions import NO_VIEWS, Changes, Versions, Views
from aioinformer.testing.schemas.field_paths import (
    NO_FIELDS,
    FieldSet,
    Path,
    decode_fields,
    encode_fields,
    fields_below,
    path_text,
)
from aioinformer.testing.schemas.typed_fields import fields_of, merge, remove, with_named_parents

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
    write_entries(metadata, owners.items())


def write_entries(metadata: dict[str, Any], owners: Iterable[tuple[Manager, Owned]]) -> None:
    """The same, for managers who may have more than one entry."""
    metadata.pop("managedFields", None)
    entries = []
    for manager, owned in sorted(owners, key=_order):
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
    views: Views = NO_VIEWS,
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
        views: what the object looks like to managers of other versions.
    """
    if owners is None:
        return {}
    changes = Changes(old, new, Versions(manager.api_version, type_, views))
    after = _without(owners, changes)
    own = changes.taken(manager.api_version) - changes.removed(manager.api_version) - _NOBODYS
    own -= fields_below(own, ignored)
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
    views: Views = NO_VIEWS,
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
        views: what the object looks like to managers of other versions.

    Returns:
        The object as it becomes, and its owners.

    Raises:
        ConflictError: fields of others would change, and `force` is False.
    """
    if owners is None:
        first = Manager("before-first-apply", "Update", manager.api_version)
        owners = after_update({}, live, type_, {}, first, now) if live else {}
    named = fields_of(config, type_)
    named -= fields_below(named, ignored)
    # An applier is the same whichever version it speaks.
    earlier = next((each for each in owners if each._replace(api_version=manager.api_version) == manager), manager)
    owners = dict(owners)
    former = owners.pop(earlier, Owned(NO_FIELDS))
    # What belongs to nobody counts for this moment: an object must not lose its name with its last label.
    after = {**owners, manager: Owned(named)}
    versions = Versions(manager.api_version, type_, views)
    merged = _pruned(merge(live, config, type_), after, former.fields, earlier.api_version, versions)
    changes = Changes(live, merged, versions)
    said = named - _NOBODYS
    others = {each: owned for each, owned in after.items() if each != manager}
    conflicts = [
        Conflict(each, path)
        for each, owned in sorted(others.items())
        for path in sorted(owned.fields & changes.taken(each.api_version))
    ]
    if conflicts and not force:
        raise ConflictError(conflicts)
    result = _without(others, changes)
    # An apply that only shares what others own leaves the times alone: nothing happened to the object.
    changed = bool(changes.taken(manager.api_version) or changes.removed(manager.api_version))
    if said:
        result[manager] = Owned(said, now if changed else former.time)
    return merged, _capped(result)


def _pruned(
    merged: dict[str, Any], owners: Owners, former: FieldSet, api_version: str, versions: Versions
) -> dict[str, Any]:
    """Without what the applier said the last time, and nobody says now.

    Args:
        former: what it said.
        api_version: in which version it was said.
    """
    if not former or api_version not in versions:
        return merged
    view = versions[api_version]
    type_, shown = view.type_, view.show(merged)
    former = with_named_parents(former, type_)
    present = with_named_parents(fields_of(shown, type_), type_)
    told = ((manager.api_version, each.fields) for manager, each in owners.items())
    owned = with_named_parents(versions.fields_in(api_version, merged, told), type_)
    left = with_named_parents(fields_of(remove(shown, former, type_), type_), type_)
    pruned = remove(shown, present - left - owned, type_)
    left = with_named_parents(fields_of(pruned, type_), type_)
    return dict(view.hide(remove(shown, (present - left) & former, type_)))


def _without(owners: Owners, changes: Changes) -> Owners:
    kept = {}
    for manager, owned in owners.items():
        version = manager.api_version
        if changes.knows(version) and (fields := owned.fields - changes.taken(version) - changes.removed(version)):
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
        by_owner.setdefault(conflict.owner, []).append(path_text(conflict.path))
    count = sum(map(len, by_owner.values()))
    if count == 1:
        [(owner, [path])] = by_owner.items()
        return f"Apply failed with 1 conflict: conflict with {owner}: {path}"
    lines = [f"Apply failed with {count} conflicts:"]
    for owner, paths in by_owner.items():
        lines += [f"conflicts with {owner}:", *(f"- {path}" for path in paths)]
    return lines[0] + " " + "\n".join(lines[1:])
