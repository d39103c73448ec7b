"""Prove that a server-side apply would change nothing, from the managed fields of a cached object.

An applied configuration has a set of fields, which the server records for the field manager. It is a function of the
configuration and the schema. If the recorded set is exactly that of the new configuration, and the object has equal
values in all of these fields, the server would change neither the object nor the record.

The recorded set shows which lists are merged by key, and by which. Values are compared in the form in which the server
stores them: those of built-in kinds by their Go structs (`1000m` as `1`, and `""` and `[]` as absent), those of custom
resources as they are. Each doubt counts as a change, such as another order of elements.

An apply cannot require that a name is free; a create does. But the server records a create as an update, and with the
defaults: such a set does not tell a default from a field that the next configuration leaves out. So an object to be
applied is created under a field manager of its own, which is named after the manager and a digest of the
configuration's members, without their values: `widgets:created-0123456789abcdef`. Nothing else is stored, and it
outlives the process.

- A configuration with the same digest has the same members: all further recorded fields are defaults.
- Any other configuration is a change. Before it is applied, the fields of the creation become applied ones of the
  manager. So the server removes those that are left out, and sets its defaults again.
- What the manager itself writes, with `edit` for example, is recorded apart, and no apply removes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from aioinformer.client.changes.ownership import creations_of, creator_of, decoded_key, entries_of
from aioinformer.client.changes.patches import contains, is_same
from aioinformer.resources.catalog.go_structs import Whole, is_builtin, stored_form

if TYPE_CHECKING:
    _Members: TypeAlias = Mapping[str, Any]

T = TypeVar("T")

_SELF: Final = "."
#: Members that name the object, and are no applied fields.
_TYPE: Final = ("apiVersion", "kind")
_NAME: Final = ("name", "namespace")
_encode_sorted: Final = msgspec.json.Encoder(order="deterministic").encode


class Applied(NamedTuple, Generic[T]):
    """The result of `apply_if_changed`.

    Attributes:
        object: what the server has stored; the cached object if no request was sent.
        skipped: no request was sent, since it would change nothing.
        reason: why a request was sent: the first difference that was found; "" if none was sent.
    """

    object: T
    skipped: bool
    reason: str


def difference(
    desired: Mapping[str, Any], live: Mapping[str, Any], manager: str, namespace: str = "", subresource: str = ""
) -> str:
    """Return why applying a configuration may change an object; "" if it is certain that it does not.

    Both are plain JSON, with `apiVersion` and `kind`. The namespace is that of a configuration that states none.
    """
    metadata = live.get("metadata")
    own_metadata = desired.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(own_metadata, dict):
        return "metadata is missing"
    for name in _TYPE:
        if desired.get(name) != live.get(name):
            return f"{name} differs"
    if own_metadata.get("name") != metadata.get("name"):
        return "metadata.name differs"
    if (own_metadata.get("namespace") or namespace) != (metadata.get("namespace") or ""):
        return "metadata.namespace differs"
    entries = list(entries_of(metadata, manager, "Apply", subresource=subresource))
    created = [] if subresource else creations_of(metadata, manager)
    if created and (entries or created[0].get("manager") != creation_manager(manager, desired)):
        return "the object was created with another configuration"
    fields = _fields_in(entries or created, manager, live["apiVersion"])
    if isinstance(fields, str):
        return fields
    wanted = {name: value for name, value in desired.items() if name not in _TYPE}
    wanted["metadata"] = {name: value for name, value in own_metadata.items() if name not in _NAME}
    if not wanted["metadata"]:
        del wanted["metadata"]
    # The form of the server is worked out only where the configuration as it is leaves a doubt.
    doubt = _Proof(not created, strict=True, formed=False).difference(fields, wanted, wanted, live, "")
    if not doubt:
        return ""
    whole = {**{name: desired.get(name) for name in _TYPE}, **wanted}
    formed = _Proof(not created, strict=is_builtin(whole), formed=True)
    return formed.difference(fields, wanted, stored_form(whole), live, "")


def creation_manager(manager: str, desired: Mapping[str, Any]) -> str:
    """Return the field manager that creates an object which a manager applies later; `desired` is plain JSON."""
    members = _encode_sorted(_members(desired))
    return creator_of(manager) + sha256(members).hexdigest()[:16]


def _members(value: Any) -> Any:
    """Return a value with its members and elements alone: names of managers are public, and Secrets have values."""
    if isinstance(value, dict):
        return {name: _members(each) for name, each in value.items() if each is not None}
    return [_members(each) for each in value] if isinstance(value, list) else 0


def _fields_in(entries: list[dict[str, Any]], manager: str, api_version: str) -> dict[str, Any] | str:
    """Return the fields of the only entry; or why they are unknown."""
    if len(entries) != 1:
        return f"the cached object has no managed fields of {manager}"
    fields = entries[0].get("fieldsV1")
    if entries[0].get("apiVersion") != api_version or entries[0].get("fieldsType") != "FieldsV1":
        return "the managed fields are of another version"
    return fields if isinstance(fields, dict) else "the managed fields are of another form"


class _Proof(NamedTuple):
    """Compares a configuration with the recorded fields and the values of an object.

    Attributes:
        exact: whether the fields are those of an apply. Otherwise, those that the configuration lacks are defaults.
        strict: whether values that the server replaces are `Whole`. If not, those that it merges may be proven, too,
            whose members belong to other managers.
        formed: whether `stored` is the form of the server. If not, it is the configuration itself.
    """

    exact: bool
    strict: bool
    formed: bool

    def difference(self, fields: Any, wanted: Any, stored: Any, live: Any, path: str) -> str:
        """Return the first difference below a path, "" for none. `stored` is `wanted` in the form of the server."""
        if not isinstance(fields, dict):
            return f"{path} is recorded in another form"
        names = [name for name in fields if name != _SELF]
        if names and len(names) < len(fields) and self.strict and self.exact and path and not path.endswith("]"):
            return f"{path} is recorded as written, not as applied"  # a creation whose first change was refused
        if not names:
            # Of an element that is merged with others, its key at least would be recorded.
            is_element = path.endswith("]")
            if self.strict and isinstance(stored, dict) and not isinstance(stored, Whole) and not is_element:
                # Merged, so that other managers may set members; or replaced, as a selector is: only the form of the
                # server tells the two apart.
                same = not wanted and isinstance(live, dict) and (self.formed or not live)
            else:  # a server may store it as it was sent
                same = is_same(wanted, live) or (contains(live, stored) and self._has_no_more(wanted, stored, live))
            return "" if same else f"{path or 'the object'} differs"
        if isinstance(stored, dict) and isinstance(live, dict):
            return self._of_members(fields, names, wanted, stored, live, path)
        if isinstance(stored, list) and isinstance(live, list):
            if all(name.startswith("k:") for name in names):
                return self._by_key(fields, names, wanted, stored, live, path)
            if all(name.startswith("v:") for name in names):
                return self._of_sets(names, wanted, live, path)
        return f"{path or 'the object'} differs"

    def _has_no_more(self, wanted: Any, stored: Any, live: Any) -> bool:
        """Return whether an object has nothing beside a value. After a creation, it may have defaults."""
        if self.exact:
            return contains(stored, live)
        return not _is_emptied(wanted, live)

    def _of_members(self, fields: _Members, names: list[str], wanted: Any, stored: Any, live: Any, path: str) -> str:
        # A create records nothing that is not stored.
        can_state = [name for name in wanted if self.exact or stored.get(name) is not None]
        stating = [name for name in can_state if _is_stated(name, wanted, stored)]
        stated = {f"f:{name}" for name in stating}
        recorded = set(names)
        if missing := (stated ^ recorded if self.exact else stated - recorded):
            name = min(missing).removeprefix("f:")
            return f"{path}.{name} is not among the recorded fields" if name in wanted else f"{path}.{name} is left out"
        for name, value in wanted.items():
            below = fields.get(f"f:{name}", {})
            found = ""
            if name not in stored and value in ([], {}):
                # Merged with what others have set. A create may have recorded defaults below.
                found = f"{path}.{name} differs" if below and self.exact else ""
            elif value and name not in stating and isinstance(value, dict):
                found = "" if isinstance(live.get(name), dict) else f"{path}.{name} is not in the object"
            else:
                found = self.difference(below, value, stored.get(name), live.get(name), f"{path}.{name}")
            if found:
                return found
        return ""

    def _by_key(self, fields: _Members, names: list[str], wanted: Any, stored: Any, live: Any, path: str) -> str:
        keys = {name: decoded_key(name) for name in names}
        positions = []
        if self.exact and len(wanted) != len(keys):
            return f"{path} has other elements"
        for at, item in enumerate(wanted):
            matching = [name for name, key in keys.items() if _has_key(item, key, fields[name], self.exact)]
            if len(matching) > 1:  # a default of the key, that another element states differently
                matching = [name for name in matching if not any(_is_part(keys[name], each) for each in wanted)]
            if len(matching) != 1:
                return f"{path}[{at}] is not among the recorded elements"
            key = keys.pop(matching[0])
            found = [place for place, each in enumerate(live) if _is_part(key, each)]
            if len(found) != 1:
                return f"{path}[{at}] is not in the object"
            positions += found
            if reason := self.difference(fields[matching[0]], item, stored[at], live[found[0]], f"{path}[{at}]"):
                return reason
        return "" if positions == sorted(positions) else f"{path} has another order"

    def _of_sets(self, names: list[str], wanted: list[Any], live: list[Any], path: str) -> str:
        values = [decoded_key(name) for name in names]
        known = all(any(is_same(item, value) for value in values) for item in wanted)
        if not known or (self.exact and len(wanted) != len(values)):
            return f"{path} has other elements"
        positions = [place for item in wanted for place, each in enumerate(live) if is_same(item, each)]
        if len(positions) != len(wanted) or positions != sorted(set(positions)):
            return f"{path} has another order"
        return ""


def _is_stated(name: str, wanted: _Members, stored: _Members) -> bool:
    """Return whether an apply records a member or a part of it. An empty list that is merged is not recorded."""
    value = wanted[name]
    below = stored.get(name)
    if value and isinstance(value, dict) and isinstance(below, dict) and not isinstance(below, Whole):
        return any(_is_stated(each, value, below) for each in value)
    return value != [] or name in stored


def _has_key(item: Any, key: Any, fields: Any, exact: bool) -> bool:
    """Return whether an element of the configuration is the recorded one with this key.

    A part of the key that the configuration lacks is a default of the schema, unless it is recorded as applied.
    """
    if not isinstance(item, dict) or not isinstance(key, dict) or not isinstance(fields, dict):
        return False
    return all(
        is_same(item[name], value) if name in item else not exact or f"f:{name}" not in fields
        for name, value in key.items()
    )


def _is_part(key: Mapping[str, Any], item: Any) -> bool:
    return isinstance(item, dict) and all(name in item and is_same(item[name], value) for name, value in key.items())


def _is_emptied(wanted: Any, live: Any) -> bool:
    """Return whether a configuration states an empty value where an object has another one, in depth."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and any(
            name in live and _is_emptied(value, live[name]) for name, value in wanted.items()
        )
    if wanted and isinstance(wanted, (list, tuple)):
        return isinstance(live, (list, tuple)) and any(map(_is_emptied, wanted, live))
    return wanted is not None and not wanted and bool(live)
