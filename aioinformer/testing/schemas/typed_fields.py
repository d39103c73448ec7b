"""Values with the types of their schema: their fields, their differences, and merging.

What counts as a field depends on the type. A map is granular, with a field for each entry, unless its type is "atomic".
A list is atomic unless its type is "map" (elements are identified by keys) or "set" (elements are identified by their
values). Without a schema, such as below `x-kubernetes-preserve-unknown-fields`, maps are granular and lists atomic. An
atomic value is a single field. An empty map or list is a single field if the other side is empty, too.

`Comparison` and the rules of removal follow structured-merge-diff, the library of kube-apiserver, since conflicts
depend on these details.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path = tuple[str, ...]
FieldSet = frozenset[Path]

NO_FIELDS: FieldSet = frozenset()
_MEMBER = "."
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_MAP_TYPE = "x-kubernetes-map-type"
_REF = "#/components/schemas/"
_MISSING: Final = object()
_OTHERS: Final = object()
_ELEMENTS: Final = object()
_NESTED: Final = (dict, list)


def field_step(name: str) -> str:
    """Return the step to a field or map key."""
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    """Return the step to the list element with these keys."""
    return f"k:{_encode(keys)}"


def value_step(value: Any) -> str:
    """Return the step to a value of a set."""
    return f"v:{_encode(value)}"


def encode_fields(fields: FieldSet) -> dict[str, Any]:
    """Encode a field set as FieldsV1."""
    tree: dict[str, Any] = {}
    # In sorted order a parent precedes its children, so an empty node that is met again is a member.
    for path in sorted(fields):
        node = tree
        new = True
        for step in path:
            inner = node.get(step)
            if inner is not None:
                node = inner
                new = False
                continue
            if not node and not new:
                node[_MEMBER] = {}
            inner = {}
            node[step] = inner
            node = inner
            new = True
    return tree


def decode_fields(tree: Mapping[str, Any]) -> FieldSet:
    """Decode FieldsV1 into a field set.

    Raises:
        ValueError: a step is invalid; the message names it.
    """
    found: list[Path] = []
    _find_members(tree, (), found)
    return frozenset(found)


def prefixes(fields: Iterable[Path]) -> FieldSet:
    """Return all fields and their parents."""
    return frozenset(path[:length] for path in fields for length in range(1, len(path) + 1))


def fields_below(fields: FieldSet, places: FieldSet) -> FieldSet:
    """Return the fields that are, or are within, one of the places."""
    lengths = {len(place) for place in places}
    return frozenset(path for length in lengths for path in fields if path[:length] in places)


def path_text(path: Path) -> str:
    """Return a path as messages show it: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


def _find_members(tree: Mapping[str, Any], path: Path, found: list[Path]) -> None:
    for step, node in tree.items():
        if step == _MEMBER:
            found.append(path)
        elif step[:2] not in ("f:", "k:", "v:", "i:") or not isinstance(node, dict):
            raise ValueError(f"{step!r} is not a valid FieldsV1 step")
        elif node:
            _find_members(node, (*path, step), found)
        else:
            found.append((*path, step))


def _step_text(step: str) -> str:
    kind = step[0]
    text = step[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_encode(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


class FieldTypeError(ValueError):
    """A value does not fit its type. The message names the field."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a place in an object, from an OpenAPI v3 document or a structural schema.

    Attributes:
        schemas: the named schemas that the node may refer to.
        node: the schema of this place, with references resolved; empty if unknown.
    """

    schemas: Mapping[str, Any]
    node: Mapping[str, Any]
    # Cache of the types below, by the name of a declared field or by a marker.
    _cache: dict[object, FieldType] = field(default_factory=dict, init=False, repr=False, compare=False)

    def at(self, node: Mapping[str, Any]) -> FieldType:
        """Return the type for a schema node below this place."""
        target: Mapping[str, Any] = node
        while reference := (target.get("allOf") or [target])[0].get("$ref"):
            target = self.schemas[reference.removeprefix(_REF)]
        if _MAP_TYPE in node and node is not target:
            target = {**target, _MAP_TYPE: node[_MAP_TYPE]}
        return FieldType(self.schemas, target)

    def field(self, name: str) -> FieldType:
        """Return the type of a field, or of the values of a map."""
        found = self._cache.get(name)
        if found is not None:
            return found
        declared = self.node.get("properties") or {}
        if name in declared:
            return self._cached(name, declared[name])
        return self._cached(_OTHERS, self.node.get("additionalProperties"))

    def declares(self, name: str) -> bool:
        """Return whether the type declares the field."""
        return name in (self.node.get("properties") or {})

    @property
    def closed(self) -> bool:
        """Return whether undeclared fields are errors."""
        node = self.node
        return (
            "properties" in node
            and not node.get("additionalProperties")
            and not node.get("x-kubernetes-preserve-unknown-fields")
        )

    @property
    def element(self) -> FieldType:
        """Return the type of the elements of a list."""
        return self._cached(_ELEMENTS, self.node.get("items"))

    @property
    def is_atomic_map(self) -> bool:
        # An object without properties is arbitrary JSON.
        return self.node.get(_MAP_TYPE) == "atomic" or self.node.keys() - {"description"} == {"type"}

    def step(self, element: Any) -> str | None:
        """Return the step to an element of a list; None for atomic lists.

        Raises:
            FieldTypeError: the element lacks one of the keys.
        """
        match self.node.get("x-kubernetes-list-type"):
            case "set":
                return value_step(element)
            case "map":
                if not isinstance(element, dict):
                    raise FieldTypeError("associative list with keys may not have non-map elements")
                return key_step({key: self._key(element, key) for key in self.node["x-kubernetes-list-map-keys"]})
        return None

    def steps(self, elements: list[Any]) -> dict[str, Any] | None:
        """Return the elements of a list by their steps; None if the list is atomic or has duplicates."""
        if self.node.get("x-kubernetes-list-type") not in ("set", "map"):
            return None
        try:
            by_step = {str(self.step(element)): element for element in elements}
        except FieldTypeError:
            return None
        return by_step if len(by_step) == len(elements) else None

    def _cached(self, key: object, node: object) -> FieldType:
        found = self._cache.get(key)
        if found is None:
            found = self.at(node) if isinstance(node, dict) else FieldType(self.schemas, {})
            self._cache[key] = found
        return found

    def _key(self, element: Mapping[str, Any], key: str) -> Any:
        value = element.get(key, self.element.field(key).node.get("default", _MISSING))
        if value is _MISSING:
            keys = self.node["x-kubernetes-list-map-keys"]
            omitted = f'associative list with keys has an element that omits key field "{key}"'
            raise FieldTypeError(omitted + ("" if len(keys) == 1 else " (and doesn't have default value)"))
        return value


def fields_of(value: Any, type_: FieldType) -> FieldSet:
    """Return the fields that a manager sets by applying this value."""
    found: set[Path] = set()
    _collect_fields(value, type_, (), found)
    return frozenset(found)


@dataclass(slots=True)
class Comparison:
    """The difference between two values.

    Attributes:
        added: fields that only the new value has.
        modified: fields that both have, with different values.
        removed: fields that only the old value has.
    """

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def compare(old: Any, new: Any, type_: FieldType) -> Comparison:
    """Compare two values field by field."""
    comparison = Comparison()
    _compare(old, new, type_, (), comparison)
    return comparison


def merge(old: Any, new: Any, type_: FieldType) -> Any:
    """Merge the new value into the old one. Fields that the new value does not have are kept."""
    if isinstance(old, dict) and isinstance(new, dict) and not type_.is_atomic_map:
        merged = dict(old)
        for name, value in new.items():
            merged[name] = merge(old[name], value, type_.field(name)) if name in old else value
        return merged
    if isinstance(old, list) and isinstance(new, list):
        left = type_.steps(old)
        right = type_.steps(new)
        if left is not None and right is not None:
            return _merge_elements(left, right, type_.element)
    return new


def remove(value: Any, removed: FieldSet, type_: FieldType) -> Any:
    """Return the value without these fields and all fields in them. Containers that become empty are null."""
    kept = _remove(value, removed, prefixes(removed), type_, ())
    return {} if kept is None else kept


def with_named_parents(fields: FieldSet, type_: FieldType) -> FieldSet:
    """Return the fields and all declared fields that contain them."""
    found = set(fields)
    for path in fields:
        place = type_
        for length, step in enumerate(path, 1):
            if not step.startswith("f:"):
                place = place.element
            else:
                if place.declares(step[2:]):
                    found.add(path[:length])
                place = place.field(step[2:])
    return frozenset(found)


def _collect_fields(value: Any, type_: FieldType, path: Path, found: set[Path]) -> None:
    if isinstance(value, dict) and not type_.is_atomic_map:
        for name, below in value.items():
            inner = (*path, field_step(name))
            if below is None or below == {} or not type_.declares(name):
                found.add(inner)
            _collect_fields(below, type_.field(name), inner, found)
    elif isinstance(value, list) and (elements := type_.steps(value)) is not None:
        for step, element in elements.items():
            found.add((*path, step))
            _collect_fields(element, type_.element, (*path, step), found)
    elif path:
        found.add(path)


def _compare(old: Any, new: Any, type_: FieldType, path: Path, found: Comparison) -> None:
    pairs = _pairs(old, new, type_)
    if pairs is None:
        if not same(old, new):
            found.modified.add(path)
        return
    for step, (before, after, below) in pairs.items():
        inner = (*path, step)
        if before is _MISSING:
            _add_all(after, below, inner, found.added)
        elif after is _MISSING:
            _add_all(before, below, inner, found.removed)
        elif not _unchanged(before, after):
            _compare(before, after, below, inner, found)


def _pairs(old: Any, new: Any, type_: FieldType) -> dict[str, tuple[Any, Any, FieldType]] | None:
    """Return the pairs to compare by step; None if the values are compared as one field."""
    if not old and not new:
        return None
    if isinstance(old, dict | None) and isinstance(new, dict | None) and not type_.is_atomic_map:
        left = old or {}
        right = new or {}
        return {
            field_step(name): (left.get(name, _MISSING), right.get(name, _MISSING), type_.field(name))
            for name in left | right
        }
    if isinstance(old, list | None) and isinstance(new, list | None):
        before = type_.steps(old or [])
        after = type_.steps(new or [])
        if before is not None and after is not None:
            element = type_.element
            return {step: (before.get(step, _MISSING), after.get(step, _MISSING), element) for step in before | after}
    return None


def _add_all(value: Any, type_: FieldType, path: Path, found: set[Path]) -> None:
    """Add a field and all fields in it."""
    found.add(path)
    if not value:
        return
    if isinstance(value, dict):
        if type_.is_atomic_map:
            return
        for name, below in value.items():
            inner = (*path, field_step(name))
            if below and isinstance(below, _NESTED):
                _add_all(below, type_.field(name), inner, found)
            else:
                found.add(inner)
    elif isinstance(value, list) and (elements := type_.steps(value)) is not None:
        for step, element in elements.items():
            _add_all(element, type_.element, (*path, step), found)


def _unchanged(before: Any, after: Any) -> bool:
    """Return whether two values encode to the same JSON. Equality alone would not tell 1, 1.0 and true apart."""
    return bool(before == after) and encode_plain(before) == encode_plain(after)


def _merge_elements(left: dict[str, Any], right: dict[str, Any], element: FieldType) -> list[Any]:
    """Merge two lists: shared elements in the new order, each preceded by old elements that come before it."""
    merged: list[Any] = []
    olds = list(left)
    news = list(right)
    while olds or news:
        if olds and olds[0] not in right:
            merged.append(left[olds.pop(0)])
            continue
        if olds and olds[0] not in news:
            olds.pop(0)
            continue
        step = news.pop(0)
        merged.append(merge(left[step], right[step], element) if step in left else right[step])
    return merged


def _remove(value: Any, removed: FieldSet, parents: FieldSet, type_: FieldType, path: Path) -> Any:
    if isinstance(value, dict) and not type_.is_atomic_map:
        parts = {name: (field_step(name), type_.field(name)) for name in value}
        kept = {
            name: below
            for name, (step, inner) in parts.items()
            if (below := _kept(value[name], removed, parents, inner, (*path, step))) is not _MISSING
        }
        return kept or None
    if isinstance(value, list) and (elements := type_.steps(value)) is not None:
        left = (_kept(each, removed, parents, type_.element, (*path, step)) for step, each in elements.items())
        return [each for each in left if each is not _MISSING] or None
    return value


def _kept(value: Any, removed: FieldSet, parents: FieldSet, type_: FieldType, path: Path) -> Any:
    if path in removed:
        return _MISSING
    return _remove(value, removed, parents, type_, path) if path in parents else value
