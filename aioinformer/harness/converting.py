"""`check_conversion`: does each version of a resource come back from each other one, for any object of its schema?

Objects are drawn from the schema, with fields left out at random, as server-side apply sends them. They are not
validated: patterns, enumerations and ranges do not hold. Two things are proven:

* A conversion to another version and back changes nothing, and a second one neither.
* What two field managers apply in two versions, one after the other, is in the object; an equal apply changes nothing.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final

from aioinformer.crds.conversion.converter import Converter
from aioinformer.crds.conversion.steps import ConversionError
from aioinformer.crds.declaration import CustomResource
from aioinformer.errors import UsageError
from aioinformer.harness.checker import HarnessFailure
from aioinformer.harness.story import differences
from aioinformer.testing.ownership.managers import Manager, apply
from aioinformer.testing.schemas.openapi_v3 import custom_schema
from aioinformer.testing.schemas.typed_fields import FieldType, FieldTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.testing.ownership.managers import Owners

_NAMES: Final = frozenset({"apiVersion", "kind", "metadata"})
_Object = dict[str, Any]


def check_conversion(resource: CustomResource[Any], *, max_examples: int = 100) -> None:
    """Check that the conversions between the versions of a resource lose nothing, for random objects of each version.

    The same objects are drawn each time. The first difference is minimised. No server and no loop are needed. Needs the
    extra "testing".

    Args:
        resource: with its other versions, each with `conversion=`.
        max_examples: objects for each pair of versions.

    Raises:
        HarnessFailure: a value is lost, or a function fails; the message names the versions, the field and the object.
        UsageError: hypothesis is not installed; no version declares how it is converted; or a number is not positive.
    """
    try:
        from aioinformer.harness.schema_values import find_smallest, partial_objects
    except ModuleNotFoundError:
        raise UsageError('check_conversion needs hypothesis: install aioinformer with the extra "testing"') from None
    if not resource.converts:
        raise UsageError(f"check_conversion: {resource.kind}: no version of it declares conversion=[…]")
    if max_examples < 1:
        raise UsageError(f"check_conversion: max_examples must be at least 1, not {max_examples}")
    converter = Converter(resource)
    versions = {each.api_version: each for each in (resource, *resource.others)}
    objects = {name: partial_objects(each.schema()) for name, each in versions.items()}
    for source, target in itertools.permutations(versions, 2):

        def trip(content: _Object, source: str = source, target: str = target) -> str:
            return _round_trip(converter, _object(resource, source, content), target)

        found = find_smallest(objects[source], trip, max_examples)
        if found is not None:
            found = _reduced(found, trip)
            raise HarnessFailure(f"{trip(found)}; the object: {_shown(found)}")
    managed = _Managed(converter, versions)
    for first, second in itertools.permutations(versions, 2):

        def applied(contents: tuple[_Object, _Object], first: str = first, second: str = second) -> str:
            one, other = contents
            return managed.fault(_object(resource, first, one), _object(resource, second, other))

        pairs = (objects[first], objects[second])
        both = find_smallest(pairs, applied, max_examples)
        if both is not None:
            both = _reduced(both, applied)
            raise HarnessFailure(
                f"{applied(both)}; applied in {first}: {_shown(both[0])}; and in {second}: {_shown(both[1])}"
            )


def _object(resource: CustomResource[Any], api_version: str, content: Mapping[str, Any]) -> _Object:
    return {"apiVersion": api_version, "kind": resource.kind, "metadata": {"name": "a"}, **content}


def _content(document: Mapping[str, Any]) -> _Object:
    return {name: value for name, value in document.items() if name not in _NAMES}


def _shown(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False)


def _reduced(value: Any, fault: Callable[[Any], str]) -> Any:
    """Return a value without the fields and members that its fault does not need."""
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(value):
            if fault(smaller):
                value = smaller
                progress = True
                break
    return value


def _smaller(value: Any) -> Iterator[Any]:
    """Yield a value without one of its fields or members, at any depth. A pair of objects stays a pair."""
    if isinstance(value, dict):
        for name in value:
            yield {other: each for other, each in value.items() if other != name}
        for name, inner in value.items():
            for smaller in _smaller(inner):
                yield {**value, name: smaller}
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, inner in enumerate(value):
            for smaller in _smaller(inner):
                yield [*value[:index], smaller, *value[index + 1 :]]
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            for smaller in _smaller(inner):
                yield (*value[:index], smaller, *value[index + 1 :])


def _round_trip(converter: Converter, document: _Object, target: str) -> str:
    """Return what is lost there and back, "" for nothing."""
    source = document["apiVersion"]
    try:
        there = converter.convert(document, target)
        back = converter.convert(there, source)
        again = converter.convert(back, target)
    except ConversionError as error:
        return str(error)
    if lost := _differences(document, back):
        return f"{source} to {target} and back: {lost}"
    if lost := _differences(there, again):
        return f"{source} to {target}, back and there again: {lost}"
    return ""


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    # For Python, 1, 1.0 and True are equal.
    if json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True):
        return ""
    return "; ".join(differences(before, after)) or f"{_shown(before)} becomes {_shown(after)}"


class _Managed:
    """An object that two field managers apply, each in its version, without a server."""

    def __init__(self, converter: Converter, versions: Mapping[str, CustomResource[Any]]) -> None:
        self._converter = converter
        self._stored = converter.resource.api_version
        self._types: dict[str, FieldType] = {}
        for name, each in versions.items():
            schema = custom_schema(each.schema())
            self._types[name] = FieldType(schema.schemas, schema.node)

    def fault(self, first: _Object, second: _Object) -> str:
        """Return what is lost of two configurations, "" for nothing."""
        live: _Object = {}
        owners: Owners = {}
        try:
            for config, name in ((first, "one"), (second, "other"), (first, "one")):
                version = config["apiVersion"]
                live, owners = self._applied(live, owners, config, name)
                if missing := _missing(_content(config), _content(self.form(live, version))):
                    return f"applied in {version} by manager {name!r}, and read again: {missing}"
                again, _ = self._applied(live, owners, config, name)
                if changed := _differences(live, again):
                    return f"applied in {version} by manager {name!r} once more: {changed}"
        except FieldTypeError:
            return ""  # such as a list with two members of one key, which no server accepts
        except ConversionError as error:
            return str(error)
        return ""

    def _applied(self, live: _Object, owners: Owners, config: _Object, name: str) -> tuple[_Object, Owners]:
        version = config["apiVersion"]
        there = dict(self.form(live, version)) if live else {}
        by = Manager(name, "Apply", version)
        merged, after = apply(there, config, self.type(version), owners, by, "", force=True, forms=self)
        return dict(self.form(merged, self._stored)), after

    def has(self, api_version: str) -> bool:
        return api_version in self._types

    def form(self, obj: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        return self._converter.convert(obj, api_version)

    def type(self, api_version: str) -> FieldType:
        return self._types[api_version]


def _missing(wanted: Any, found: Any, path: str = "") -> str:
    """Return the first field of a configuration that an object does not have, "" for none."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if why := _missing(value, found.get(name), f"{path}.{name}"):
                return why
        return ""
    if isinstance(wanted, list) and isinstance(found, list):
        for index, value in enumerate(wanted):
            if not any(_missing(value, each) == "" for each in found):
                return f"{path.lstrip('.')}[{index}]: {_shown(value)} is missing"
        return ""
    if json.dumps(wanted, sort_keys=True) == json.dumps(found, sort_keys=True) or wanted in ({}, []):
        return ""
    return f"{path.lstrip('.')}: {_shown(wanted)} becomes {_shown(found)}"
