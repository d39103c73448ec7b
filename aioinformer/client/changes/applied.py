"""Prove that a server-side apply would change nothing, from the managed fields of a cached object.

An applied configuration has a set of fields, which the server records for the field manager. It is a function of the
configuration and the schema. If the recorded set is exactly that of the new configuration, and the object has equal
values in all of these fields, the server would change neither the object nor the record.

There is no schema here, so the recorded set is compared with the configuration: it shows which lists are merged by key,
and by which. Each doubt counts as a change: values that the server writes in another form (`1000m` as `1`), defaults
inside lists that are replaced as a whole, another order of elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from aioinformer.client.changes.patches import document_of, is_same

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_SELF: Final = "."


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


def difference(desired: bytes, cached: Any, manager: str, namespace: str = "", subresource: str = "") -> str:
    """Return why applying a configuration may change an object; "" if it is certain that it does not.

    Args:
        desired: the JSON of the configuration, with `apiVersion` and `kind`.
        cached: the object; None if it is not known.
        manager: the field manager.
        namespace: of the object, "" for a cluster-scoped one.
        subresource: the subresource that is applied, "" for the object itself.
    """
    if cached is None:
        return "the object is not in the cache"
    live, wanted = document_of(cached), msgspec.json.decode(desired)
    metadata, own_metadata = live.get("metadata"), wanted.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(own_metadata, dict):
        return "metadata is missing"
    for name in ("apiVersion", "kind"):
        if wanted.pop(name, None) != live.get(name):
            return f"{name} differs"
    if own_metadata.pop("name", None) != metadata.get("name"):
        return "metadata.name differs"
    if (own_metadata.pop("namespace", None) or namespace) != (metadata.get("namespace") or ""):
        return "metadata.namespace differs"
    if not own_metadata:
        del wanted["metadata"]
    fields = _recorded(metadata, manager, subresource, live["apiVersion"])
    return fields if isinstance(fields, str) else _compare(fields, wanted, live, "")


def _recorded(metadata: Mapping[str, Any], manager: str, subresource: str, api_version: str) -> dict[str, Any] | str:
    """Return the fields that the server has recorded for a manager; or why they are unknown."""
    entries = [
        entry
        for entry in metadata.get("managedFields") or ()
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply")
        and (entry.get("subresource") or "") == subresource
    ]
    if len(entries) != 1:
        return f"the cached object has no managed fields of {manager}"
    fields = entries[0].get("fieldsV1")
    if entries[0].get("apiVersion") != api_version or entries[0].get("fieldsType") != "FieldsV1":
        return "the managed fields are of another version"
    return fields if isinstance(fields, dict) else "the managed fields are of another form"


def _compare(fields: Any, wanted: Any, live: Any, path: str) -> str:
    """Return the first difference below a path, "" for none.

    Args:
        fields: the recorded fields.
        wanted: the value in the configuration.
        live: the value in the object.
        path: of the value, for the result.
    """
    if not isinstance(fields, dict):
        return f"{path} is recorded in another form"
    names = [name for name in fields if name != _SELF]
    if not names:
        return "" if is_same(wanted, live) else f"{path or 'the object'} differs"
    if isinstance(wanted, dict) and isinstance(live, dict):
        return _compare_members(fields, names, wanted, live, path)
    if isinstance(wanted, list) and isinstance(live, list):
        if all(name.startswith("k:") for name in names):
            return _compare_by_key(fields, names, wanted, live, path)
        if all(name.startswith("v:") for name in names):
            return _compare_sets(names, wanted, live, path)
    return f"{path or 'the object'} differs"


def _compare_members(
    fields: Mapping[str, Any], names: list[str], wanted: dict[str, Any], live: dict[str, Any], path: str
) -> str:
    if missing := {f"f:{name}" for name in wanted} ^ set(names):
        name = min(missing).removeprefix("f:")
        return f"{path}.{name} is not among the recorded fields" if name in wanted else f"{path}.{name} is left out"
    for name, value in wanted.items():
        if name not in live:
            return f"{path}.{name} is not in the object"
        if found := _compare(fields[f"f:{name}"], value, live[name], f"{path}.{name}"):
            return found
    return ""


def _compare_by_key(fields: Mapping[str, Any], names: list[str], wanted: list[Any], live: list[Any], path: str) -> str:
    keys = {name: _decoded(name) for name in names}
    positions = []
    if len(wanted) != len(keys):
        return f"{path} has other elements"
    for at, item in enumerate(wanted):
        matching = [name for name, key in keys.items() if _has_key(item, key, fields[name])]
        if len(matching) != 1:
            return f"{path}[{at}] is not among the recorded elements"
        key = keys.pop(matching[0])
        found = [place for place, each in enumerate(live) if _is_part(key, each)]
        if len(found) != 1:
            return f"{path}[{at}] is not in the object"
        positions += found
        if difference := _compare(fields[matching[0]], item, live[found[0]], f"{path}[{at}]"):
            return difference
    return "" if positions == sorted(positions) else f"{path} has another order"


def _has_key(item: Any, key: Any, fields: Any) -> bool:
    """Return whether an element of the configuration is the recorded one with this key.

    A part of the key that neither the configuration nor the record has is a default of the schema.
    """
    if not isinstance(item, dict) or not isinstance(key, dict) or not isinstance(fields, dict):
        return False
    return all(is_same(item[name], value) if name in item else f"f:{name}" not in fields for name, value in key.items())


def _is_part(key: Mapping[str, Any], item: Any) -> bool:
    return isinstance(item, dict) and all(name in item and is_same(item[name], value) for name, value in key.items())


def _compare_sets(names: list[str], wanted: list[Any], live: list[Any], path: str) -> str:
    values = [_decoded(name) for name in names]
    if len(wanted) != len(values) or not all(any(is_same(item, value) for value in values) for item in wanted):
        return f"{path} has other elements"
    positions = [place for item in wanted for place, each in enumerate(live) if is_same(item, each)]
    if len(positions) != len(wanted) or positions != sorted(set(positions)):
        return f"{path} has another order"
    return ""


def _decoded(name: str) -> Any:
    try:
        return msgspec.json.decode(name[2:])
    except msgspec.DecodeError:
        return None
