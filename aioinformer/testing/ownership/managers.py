"""The owners of an object's fields: `metadata.managedFields`, maintained as kube-apiserver does.

Each entry belongs to one manager, one operation (Update or Apply), one API version, and one subresource.

* An update takes ownership of the fields that it adds or changes, from all managers. No manager owns what it removes.
* An apply owns exactly the fields of its configuration. To change a field of another manager is a conflict, unless it
  is forced; then the ownership moves. Managers that set the same value share the field. Fields that a manager applied
  before and does not apply any more are removed from the object, unless another manager owns them.
* An object without entries is not tracked until the first apply; then the existing fields belong to
  "before-first-apply".
* If there are more than ten updaters, the oldest become one, "ancient-changes".
* Without a webhook that converts them, the versions of a group differ in their names only, so the entries of all
  versions are compared with one form. With one, the entries of each version are compared with the object in that
  version; entries of a version that the definition does not have any more are dropped.

The time of an entry changes when its manager changes the object, so a write that changes nothing stores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from aioinformer.resources.catalog.go_structs import go_json
from aioinformer.testing.patches.json_patches import same, same_in_go
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.typed_fields import (
    NO_FIELDS,
    Comparison,
    FieldSet,
    FieldType,
    Path,
    compare,
    decode_fields,
    encode_fields,
    fields_below,
    fields_of,
    merge,
    path_text,
    remove,
    with_named_parents,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.api.conversions import WebhookConversion
    from aioinformer.testing.api.served import Served

_MOST_UPDATERS = 10
LONGEST_MANAGER = 128
"""The maximum length of a manager's name, in bytes."""
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
_UNOWNED: FieldSet = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _METADATA_OF_THE_SERVER),
    }
)
NO_TYPE = FieldType({}, {})


class Forms(Protocol):
    """The versions of an object that a webhook converts."""

    def has(self, api_version: str) -> bool:
        """Return whether there is such a version."""

    def form(self, obj: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """Return an object in a version."""

    def type(self, api_version: str) -> FieldType:
        """Return the fields of a version."""


_RESET: list[dict[str, Any]] = [{}]


class Manager(NamedTuple):
    """The manager of an entry.

    Attributes:
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
        name = self.name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"{where}{version}'


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of a manager.

    Attributes:
        time: of their last change, as the API writes it; "" if unknown.
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
    """An apply conflicts with other managers.

    Attributes:
        conflicts: all conflicts, in the order of the API's message.
    """

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        super().__init__(_message(conflicts))


def manager_name(asked: str, user_agent: str) -> str:
    """Return the field manager of a client: the requested name, or the first word of its user agent."""
    name = asked or "".join(filter(str.isprintable, user_agent.partition("/")[0]))[:LONGEST_MANAGER]
    return name or "unknown"


def read_owners(metadata: Mapping[str, Any]) -> Owners | None:
    """Return the entries of an object; None if there are none, or if they are malformed."""
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
    """Set the entries of an object, in the API's order."""
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
    forms: Forms | None = None,
) -> Owners:
    """Return the owners after an update.

    Args:
        old: the object before; for a new object the fields that exist without a writer.
        owners: before the write; None if the object is not tracked.
        ignored: fields that this kind of write cannot change.
        forms: the other versions of the object; None if all have the same fields.
    """
    if owners is None:
        return {}
    compared = _Compared(old, new, type_, manager.api_version, forms)
    changes = compared.own
    after = _without(owners, compared)
    own = frozenset(changes.modified | changes.added) - changes.removed - _UNOWNED
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
    forms: Forms | None = None,
) -> tuple[dict[str, Any], Owners]:
    """Apply a configuration.

    Args:
        live: the current object; empty if there is none.
        owners: before the apply; None if the object is not tracked.
        ignored: fields that this kind of write cannot change.
        forms: the other versions of the object; None if all have the same fields.

    Returns:
        The object after the apply, and its owners.

    Raises:
        ConflictError: fields of other managers would change, and `force` is False.
    """
    if owners is None:
        first = Manager("before-first-apply", "Update", manager.api_version)
        owners = after_update({}, live, type_, {}, first, now, forms=forms) if live else {}
    named = fields_of(config, type_)
    named -= fields_below(named, ignored)
    # An applier is the same manager in every version.
    earlier = next((each for each in owners if each._replace(api_version=manager.api_version) == manager), manager)
    owners = {each: owned for each, owned in owners.items() if forms is None or forms.has(each.api_version)}
    former = owners.pop(earlier, Owned(NO_FIELDS))
    # Fields of the server count here, too: an object must not lose its name with its last label.
    after = {**owners, manager: Owned(named)}
    if forms is None:
        merged = _pruned(merge(live, config, type_), after, former.fields, type_)
    else:
        merged = _pruned_by_version(
            merge(live, config, type_), after, former.fields, earlier.api_version, manager.api_version, forms
        )
    compared = _Compared(live, merged, type_, manager.api_version, forms)
    changes = compared.own
    taken = changes.modified | changes.added
    own = named - _UNOWNED
    others = {each: owned for each, owned in after.items() if each != manager}
    conflicts = [
        Conflict(each, path)
        for each, owned in sorted(others.items())
        for path in sorted(owned.fields & compared.taken(each.api_version))
    ]
    if conflicts and not force:
        raise ConflictError(conflicts)
    result = _without(others, compared)
    # An apply that only shares fields keeps the times: the object has not changed.
    changed = bool(taken or changes.removed)
    if own:
        result[manager] = Owned(own, now if changed else former.time)
    return merged, _capped(result)


def _pruned(merged: dict[str, Any], owners: Owners, former: FieldSet, type_: FieldType) -> dict[str, Any]:
    """Remove the fields that the manager applied before and that no manager owns now."""
    if not former:
        return merged
    former = with_named_parents(former, type_)
    present = with_named_parents(fields_of(merged, type_), type_)
    owned = with_named_parents(NO_FIELDS.union(*(each.fields for each in owners.values())), type_)
    left = with_named_parents(fields_of(remove(merged, former, type_), type_), type_)
    pruned = remove(merged, present - left - owned, type_)
    left = with_named_parents(fields_of(pruned, type_), type_)
    return dict(remove(merged, (present - left) & former, type_))


def _pruned_by_version(
    merged: dict[str, Any], owners: Owners, former: FieldSet, applied_in: str, version: str, forms: Forms
) -> dict[str, Any]:
    """Do the same as `_pruned` for an object that others manage in other versions.

    Args:
        applied_in: the version in which the manager applied before.
        version: in which it applies now, and of the result.
    """
    if not former:
        return merged
    there = dict(forms.form(merged, applied_in))
    type_ = forms.type(applied_in)
    pruned = remove(there, with_named_parents(former, type_), type_)
    # Begin with the own version: a field that is removed too early may be needed for a conversion.
    for each in sorted({owner.api_version for owner in owners}, key=lambda name: (name != applied_in, name)):
        type_ = forms.type(each)
        there = dict(forms.form(there, each))
        pruned = dict(forms.form(pruned, each))
        owned = NO_FIELDS.union(*(kept.fields for owner, kept in owners.items() if owner.api_version == each))
        gone = _present(there, type_) - _present(pruned, type_) - with_named_parents(owned, type_)
        pruned = remove(there, gone, type_)
    type_ = forms.type(applied_in)
    there = dict(forms.form(merged, applied_in))
    pruned = dict(forms.form(pruned, applied_in))
    dangling = _present(there, type_) - _present(pruned, type_)
    left = remove(there, dangling & with_named_parents(former, type_), type_)
    return dict(forms.form(left, version))


def _present(obj: Mapping[str, Any], type_: FieldType) -> FieldSet:
    return with_named_parents(fields_of(obj, type_), type_)


class _Compared:
    """What a write changes, in each version.

    Attributes:
        own: in the version of the write.
    """

    def __init__(
        self, old: Mapping[str, Any], new: Mapping[str, Any], type_: FieldType, version: str, forms: Forms | None
    ) -> None:
        self._old = old
        self._new = new
        self._forms = forms
        self.own = compare(old, new, type_)
        self._by_version = {version: self.own}

    def has(self, version: str) -> bool:
        """Return whether there is such a version."""
        return self._forms is None or self._forms.has(version)

    def at(self, version: str) -> Comparison:
        """Return what changes in a version."""
        if self._forms is None:
            return self.own
        found = self._by_version.get(version)
        if found is None:
            before = self._forms.form(self._old, version) if self._old else {}
            found = compare(before, self._forms.form(self._new, version), self._forms.type(version))
            self._by_version[version] = found
        return found

    def taken(self, version: str) -> FieldSet:
        """Return the fields that are added or modified in a version."""
        changes = self.at(version)
        return frozenset(changes.modified | changes.added)


def _without(owners: Owners, compared: _Compared) -> Owners:
    """Return the owners without the fields that a write has changed or removed."""
    left: Owners = {}
    for manager, owned in owners.items():
        if compared.has(manager.api_version):
            changes = compared.at(manager.api_version)
            if fields := owned.fields - changes.modified - changes.added - changes.removed:
                left[manager] = replace(owned, fields=fields)
    return left


def _capped(owners: Owners) -> Owners:
    updaters = sorted(((m, o) for m, o in owners.items() if m.operation == "Update"), key=_order)
    surplus = updaters[: max(0, len(updaters) - _MOST_UPDATERS)]
    if not surplus:
        return owners
    # The merged entry needs one place, too.
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


def _message(conflicts: Iterable[Conflict]) -> str:
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


def track(served: Served, old: Mapping[str, Any] | None, obj: dict[str, Any], by: Manager, now: str) -> None:
    """Set the owners of the fields of an object that is about to be stored.

    Args:
        obj: the object to store; its `managedFields` are those of the client.
    """
    now = noted_time(by, now)
    asked = obj["metadata"].get("managedFields")
    if asked == _RESET:
        owners = None
    else:
        sent = None if by.subresource else read_owners(obj["metadata"])
        owners = sent or (read_owners(old["metadata"]) if old is not None else None)
    type_ = kind_type(served) or NO_TYPE
    if served.custom and _is_untyped(obj, type_):
        obj["metadata"].pop("managedFields", None)
        return
    if old is None:
        owners = owners or {}
        # A new built-in object starts as the zero value of a Go type, which has some fields.
        if served.custom:
            old = {}
        else:
            old = go_json({"kind": obj["kind"], "apiVersion": obj["apiVersion"]})
    ignored = ignored_fields(served, by)
    write_owners(obj["metadata"], after_update(old, obj, type_, owners, by, now, ignored, forms_of(served)))


def _is_untyped(value: Any, type_: FieldType) -> bool:
    """Return whether there is a list in place of a text, so that kube-apiserver records no owners."""
    if isinstance(value, list):
        return type_.node.get("type") == "string" or any(_is_untyped(each, type_.element) for each in value)
    if isinstance(value, dict):
        return any(_is_untyped(each, type_.field(name)) for name, each in value.items())
    return False


class _Versions:
    """The versions of a custom resource that a webhook converts."""

    def __init__(self, webhook: WebhookConversion) -> None:
        self._webhook = webhook

    def has(self, api_version: str) -> bool:
        return api_version in self._webhook.versions

    def form(self, obj: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        return self._webhook.convert(obj, api_version)

    def type(self, api_version: str) -> FieldType:
        return kind_type(self._webhook.versions[api_version]) or NO_TYPE


def forms_of(served: Served) -> Forms | None:
    """Return the versions of a resource; None if all have the same fields."""
    return None if served.webhook is None else _Versions(served.webhook)


def keep_times(served: Served, obj: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keep the former times of the entries if nothing else of the object changes.

    Args:
        obj: the object to store, with its owners; is changed.
        old: the object that it replaces.
    """
    entries = obj["metadata"].get("managedFields")
    former = old["metadata"].get("managedFields")
    if not entries or not former or _timeless(entries) != _timeless(former):
        return
    is_equal = same if served.custom else same_in_go
    if is_equal(_unmanaged(obj), _unmanaged(old)):
        obj["metadata"]["managedFields"] = former


def _timeless(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _unmanaged(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def note_owners(obj: dict[str, Any], owners: Owners) -> None:
    """Set the owners of an object if they are known already."""
    write_owners(obj["metadata"], owners)


def noted_time(by: Manager, now: str) -> str:
    """Return the time to record for a write; "" for scales, which have no time."""
    return "" if by.subresource == "scale" else now


def ignored_fields(served: Served, by: Manager) -> FieldSet:
    """Return the fields that this kind of write cannot change."""
    if by.subresource == "status":
        return frozenset({("f:spec",)})
    return frozenset({("f:status",)}) if "status" in served.subresources else frozenset()
