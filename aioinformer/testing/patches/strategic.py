"""Strategic merge patch: a merge patch that knows types.

A merge patch replaces lists. A strategic merge patch uses the schema: elements of some lists have an identity
(`patchMergeKey`, such as a container's `name`), and of some maps only one branch may be set (`retainKeys`). The rules
for a map, in order:

1. `$patch: replace` makes the rest of the patch the new map; `$patch: delete` leaves an empty map. Any other value is
   an error.
2. `$retainKeys: [...]` drops every key of the current map that it does not name; the patch itself may only have keys
   that it names.
3. `$setElementOrder/list` gives the order of the elements of `list`. The patch of that list must agree with it.
   Elements of the patch come in its order, the others keep their relative order, and the two are interleaved as they
   were before, as far as possible.
4. `$deleteFromPrimitiveList/list` removes values from a list of scalars.
5. For other keys: null removes the key; a new key, or one whose JSON type changes, gets the value of the patch without
   nulls and directives; maps are merged by these rules; lists are merged by element if the field's strategy says so,
   and else replaced; scalars are replaced.

In a merged list of maps, the merge key identifies elements. An element with `$patch: delete` removes all elements with
its key; one with `$patch: replace` makes the patch the whole list.

In values that replace others, directives and nulls have no effect and stay in the result: decoders then see unknown
fields and unset values.

Only five errors are answered with 400; the server answers the others with 500 without a reason, and so does this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import json_type, quote
from aioinformer.testing.patches.json_patches import PatchError, json_copy, same, without_nulls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ELEMENT_ORDER = "$setElementOrder"
_DELETE_SCALARS = "$deleteFromPrimitiveList"


@dataclass(frozen=True, slots=True)
class PatchSchema:
    """The schema of a place in an OpenAPI v3 document, as strategic merge patches need it.

    Attributes:
        node: the schema of this place, with its reference resolved.
        name: the name of the type, for messages ("PodSpec").
    """

    schemas: Mapping[str, Any]
    node: Mapping[str, Any]
    name: str

    @classmethod
    def of(cls, schemas: Mapping[str, Any], node: Mapping[str, Any], name: str = "") -> PatchSchema:
        """Make the schema of a node and resolve its reference."""
        node = (node.get("allOf") or [node])[0]
        reference = node.get("$ref", "")
        if reference:
            target = reference.removeprefix("#/components/schemas/")
            return cls(schemas, schemas[target], target.rpartition(".")[2])
        return cls(schemas, node, name)

    def at(self, node: Mapping[str, Any]) -> PatchSchema:
        """Return the schema of a node below this one."""
        return PatchSchema.of(self.schemas, node)

    def field(self, key: str) -> tuple[PatchSchema, str, str]:
        """Return the schema of a field (for a list: of its elements), its merge key and its merge strategy.

        Raises:
            PatchError: the type has no such field.
        """
        properties = self.node.get("properties")
        if properties is None:
            raise PatchError("merging an object in json but data type is not struct, instead is: map")
        if key not in properties:
            raise PatchError(f'unable to find api field in struct {self.name} for the json field "{key}"')
        node = properties[key]
        strategies = str(node.get("x-kubernetes-patch-strategy", "")).split(",")
        strategy = next((name for name in strategies if name != "retainKeys"), "")
        below = self.at(node.get("items", node))
        return below, str(node.get("x-kubernetes-patch-merge-key", "")), strategy


def strategic_merge_patch(current: Mapping[str, Any], patch: Mapping[str, Any], schema: PatchSchema) -> dict[str, Any]:
    """Apply a strategic merge patch. The arguments are not changed.

    Raises:
        PatchError: the patch is malformed or contradicts the schema.
    """
    return _merge_maps(json_copy(dict(current)), json_copy(dict(patch)), schema)


def _merge_maps(current: dict[str, Any], patch: dict[str, Any], schema: PatchSchema) -> dict[str, Any]:
    if _DIRECTIVE in patch:
        match patch.pop(_DIRECTIVE):
            case "replace":
                return patch
            case "delete":
                return {}
            case unknown:
                patch[_DIRECTIVE] = unknown
                raise PatchError(f"unknown patch type: {quote(unknown)} in map: {quote(patch)}")
    _retain_keys(current, patch)
    for directive in [key for key in patch if key.startswith(_ELEMENT_ORDER)]:
        _merge_ordered(current, patch, directive, schema)
    # Deletions from a list sort before the list, so that they do not remove what the patch adds.
    for key, value in sorted(patch.items()):
        deletes = key.startswith(_DELETE_SCALARS)
        if deletes:
            key = _name_after(key, "invalid patch format of primitive list")
        if value is None:
            current.pop(key, None)
        elif key not in current or type(current[key]) is not type(value):
            if not deletes:
                _set_value(current, key, value)
        elif isinstance(value, dict):
            below, _, strategy = schema.field(key)
            current[key] = value if strategy == "replace" else _merge_maps(current[key], value, below)
        elif isinstance(value, list):
            below, merge_key, strategy = schema.field(key)
            if deletes or strategy == "merge":
                current[key] = _merge_lists(current[key], value, below, merge_key, deletes)
            else:
                current[key] = value
        else:
            current[key] = value
    return current


def _retain_keys(current: dict[str, Any], patch: dict[str, Any]) -> None:
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    touched = (key for key, value in patch.items() if value is not None and not _is_parallel_list(key))
    if not isinstance(retained, list) or not all(key in retained for key in touched):
        raise PatchError("invalid patch format of retainKeys", status=400, reason="BadRequest")
    for key in current.keys() - set(retained):
        del current[key]


def _is_parallel_list(key: str) -> bool:
    return key.startswith((f"{_DELETE_SCALARS}/", f"{_ELEMENT_ORDER}/"))


def _name_after(directive: str, message: str) -> str:
    _, slash, name = directive.partition("/")
    if not slash:
        raise PatchError(message, status=400, reason="BadRequest")
    return name


def _merge_ordered(current: dict[str, Any], patch: dict[str, Any], directive: str, schema: PatchSchema) -> None:
    order = _as_list(patch.pop(directive))
    name = _name_after(directive, "invalid patch format of setElementOrder list")
    old = _as_list(current[name]) if name in current else None
    new = _as_list(patch.pop(name)) if name in patch else None
    below, merge_key, strategy = schema.field(name)
    _check_order(new or [], order, merge_key)
    if old is None and new is None:
        return
    if old is None:
        merged = _without_directives(new or [])
    elif new is None:
        merged = old
    else:
        merged = _merge_lists(old, new, below, merge_key, False) if strategy == "merge" else new
    _element_kind(old or [], new or [], strict=True)
    current[name] = _interleave(merged, order, old or [], merge_key)


def _check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    if not order or not patch:
        return
    remaining: Iterator[Any] = iter(order)
    for element in patch:
        if merge_key and isinstance(_as_map(element), dict) and _DIRECTIVE in element:
            continue
        wanted = _identity(element, merge_key)
        if not any(same(wanted, _identity(candidate, merge_key)) for candidate in remaining):
            raise PatchError(f"the order in the patch {quote(patch)} does not match {_ELEMENT_ORDER} {quote(order)}")


def _merge_lists(old: list[Any], new: list[Any], schema: PatchSchema, merge_key: str, deletes: bool) -> list[Any]:
    if not old and not new:
        return old
    if _element_kind(old, new) is not dict:
        if deletes:
            return [value for value in old if not _contains(new, value)]
        merged: list[Any] = []
        for value in [*old, *new]:
            if not _contains(merged, value):
                merged.append(value)
        return _interleave(merged, new, old, "")
    if not merge_key:
        raise PatchError(f"cannot merge lists without merge key for {schema.name}")
    kept = list(old)
    plain = []
    replaced = False
    for element in new:
        match element.get(_DIRECTIVE):
            case None if _DIRECTIVE not in element:
                plain.append(element)
            case "delete":
                wanted = _identity(element, merge_key)
                kept = [other for other in kept if merge_key not in other or not same(other[merge_key], wanted)]
            case "replace":
                replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case unknown:
                raise PatchError(f"unknown patch type: {quote(unknown)} in map: {quote(element)}")
    if replaced:
        return _interleave(plain, [], plain, merge_key)
    merged = list(kept)
    for element in plain:
        wanted = _identity(element, merge_key)
        for index, other in enumerate(merged):
            if merge_key in other and same(other[merge_key], wanted):
                merged[index] = _merge_maps(other, element, schema)
                break
        else:
            merged.append(element)
    return _interleave(merged, plain, kept, merge_key)


def _interleave(merged: list[Any], order: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """Sort patched elements by the given order and the others as before, then interleave the two as before."""
    patched = {id(item): position for item in merged if (position := _position(order, item, merge_key)) >= 0}
    left = sorted((item for item in merged if id(item) not in patched), key=lambda i: _position(before, i, merge_key))
    right = sorted((item for item in merged if id(item) in patched), key=lambda item: patched[id(item)])
    interleaved: list[Any] = []
    while left and right:
        first = _position(before, left[0], merge_key)
        second = _position(before, right[0], merge_key)
        interleaved.append(left.pop(0) if 0 <= first < second else right.pop(0))
    return interleaved + left + right


def _position(items: list[Any], wanted: Any, merge_key: str) -> int:
    identity = _identity(wanted, merge_key)
    return next((i for i, item in enumerate(items) if same(_identity(item, merge_key), identity)), -1)


def _identity(element: Any, merge_key: str) -> Any:
    if not merge_key:
        return element
    fields = _as_map(element)
    if merge_key not in fields:
        raise PatchError(f"map: {quote(element)} does not contain declared merge key: {merge_key}")
    return fields[merge_key]


def _set_value(target: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, dict) and _DIRECTIVE in value:
        target.pop(key, None)
    else:
        target[key] = _without_directives(without_nulls(value))


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not _has_directive(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _contains(items: list[Any], value: Any) -> bool:
    return any(same(item, value) for item in items)


def _element_kind(*lists: list[Any], strict: bool = False) -> type | None:
    kinds = {type(item) for items in lists for item in items}
    if len(kinds) > 1:
        raise PatchError(f"list element types are not identical: {quote(list(lists))}")
    if kinds == {list}:
        raise PatchError("lists of lists are not supported", status=422, reason="Invalid")
    if not kinds and strict:
        raise PatchError("no elements in any of the given slices")
    return kinds.pop() if kinds else None


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PatchError(f"expected a list, but received {json_type(value)}")
    return value


def _as_map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PatchError(f"expected an object, but received {json_type(value)}")
    return value
