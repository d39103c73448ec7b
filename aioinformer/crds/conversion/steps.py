"""The steps of a conversion between a version and the hub, the version that is stored. Each is declared for both ways.

The API server converts partial objects, too, and ones that it has not validated. So a step passes over what it cannot
convert: a field that is absent, a value without a place. What then is missing in the other version is kept aside; see
`kept`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from aioinformer.cache.objects.encoding import checked_json
from aioinformer.crds.conversion.places import ABSENT, around, is_path, look, members, names_within, put, remove
from aioinformer.errors import AioinformerError, OptionError, UsageError

Document = dict[str, Any]


class ConversionError(AioinformerError):
    """An object cannot be converted. The message names version and field."""


class Step(msgspec.Struct, frozen=True, eq=False):
    """A step of a conversion; `Move` and the others are such steps."""

    @property
    def here(self) -> tuple[str, ...]:
        """The fields of this version that it reads and writes."""
        return ()

    @property
    def there(self) -> tuple[str, ...]:
        """The fields of the hub that it reads and writes."""
        return ()

    @property
    def keeps_type(self) -> bool:
        """Whether the field has the same type on both sides."""
        return False

    def to_hub(self, document: Document) -> None:
        """Change an object of this version into one of the hub, in place."""
        raise NotImplementedError

    def from_hub(self, document: Document) -> None:
        """Change an object of the hub into one of this version, in place."""
        raise NotImplementedError


class Move(Step, frozen=True, eq=False):
    """A field has another path in the hub: `Move("spec.size", "spec.replicas")`.

    In members of lists and maps, both paths have the same beginning: `Move("spec.ports[].port",
    "spec.ports[].number")`, `Move("spec.pools{}.size", "spec.pools{}.replicas")`.

    Attributes:
        field: its path in this version.
        hub_field: its path in the hub.

    Raises:
        OptionError: a path is none, or leads into other members than the other one.
    """

    field: str
    hub_field: str

    def __post_init__(self) -> None:
        _check_paths("Move", self.field, self.hub_field)

    @property
    def here(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def there(self) -> tuple[str, ...]:
        return (self.hub_field,)

    @property
    def keeps_type(self) -> bool:
        return True

    def to_hub(self, document: Document) -> None:
        _replace(document, self.field, self.hub_field, _same)

    def from_hub(self, document: Document) -> None:
        _replace(document, self.hub_field, self.field, _same)


class Map(Step, frozen=True, eq=False):
    """A field has another value in the hub: `Map("spec.port", to=int, back=str)`.

    A function gets a value as JSON has it, and returns such a value. It is not called for null. If several values
    become the same one, the original is kept aside, and restored if the other version has not changed it.

    Attributes:
        field: its path in this version.
        to: returns the value for the hub.
        back: returns the value for this version.
        hub_field: its path in the hub; "" for the same one.

    Raises:
        OptionError: a path is none, or leads into other members than the other one.
    """

    field: str
    to: Callable[[Any], Any] = msgspec.field()
    back: Callable[[Any], Any] = msgspec.field()
    hub_field: str = ""

    def __post_init__(self) -> None:
        _check_paths("Map", self.field, *self.there)

    @property
    def here(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def there(self) -> tuple[str, ...]:
        return (self.hub_field or self.field,)

    def to_hub(self, document: Document) -> None:
        _replace(document, self.field, self.there[0], self.to)

    def from_hub(self, document: Document) -> None:
        _replace(document, self.there[0], self.field, self.back)


class Split(Step, frozen=True, eq=False):
    """A field is several ones in the hub: `Split("spec.address", ["spec.host", "spec.zone"], separator=":")`.

    It is not split if there are fewer parts, nor joined if one is absent.

    Attributes:
        field: its path in this version.
        hub_fields: the paths of its parts in the hub.
        separator: between parts that are texts. The last part may contain it.
        split: instead of `separator`: returns a value for each part.
        join: with `split`: returns the value of the parts, which it gets as arguments.

    Raises:
        OptionError: a path is none, or leads into other members than the others; or neither `separator` nor both
            functions are given.
    """

    field: str
    hub_fields: Sequence[str]
    separator: str = ""
    split: Callable[[Any], Sequence[Any]] | None = None
    join: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        _check_parts("Split", self)

    @property
    def here(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def there(self) -> tuple[str, ...]:
        return tuple(self.hub_fields)

    def to_hub(self, document: Document) -> None:
        _split(document, self, self.field, self.there)

    def from_hub(self, document: Document) -> None:
        _join(document, self, self.there, self.field)


class Join(Step, frozen=True, eq=False):
    """Several fields are one in the hub: the reverse of `Split`.

    Attributes:
        fields: the paths of the parts in this version.
        hub_field: the path of the whole in the hub.
        separator: as of `Split`.
        split: as of `Split`.
        join: as of `Split`.

    Raises:
        OptionError: as `Split`.
    """

    fields: Sequence[str]
    hub_field: str
    separator: str = ""
    split: Callable[[Any], Sequence[Any]] | None = None
    join: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        _check_parts("Join", self)

    @property
    def here(self) -> tuple[str, ...]:
        return tuple(self.fields)

    @property
    def there(self) -> tuple[str, ...]:
        return (self.hub_field,)

    def to_hub(self, document: Document) -> None:
        _join(document, self, self.here, self.hub_field)

    def from_hub(self, document: Document) -> None:
        _split(document, self, self.hub_field, self.here)


class Default(Step, frozen=True, eq=False):
    """A field that only the hub has, and its value in objects of this version: `Default("spec.tier", "basic")`.

    It is set where the object around it is there.

    Attributes:
        hub_field: its path.
        value: as JSON has it.

    Raises:
        OptionError: the path is none.
    """

    hub_field: str
    value: Any

    def __post_init__(self) -> None:
        _check_paths("Default", self.hub_field)

    @property
    def there(self) -> tuple[str, ...]:
        return (self.hub_field,)

    @property
    def keeps_type(self) -> bool:
        return True

    def to_hub(self, document: Document) -> None:
        *outer, last = names_within(self.hub_field)
        for member in members(document, around(self.hub_field)):
            place = look(member, outer)
            if isinstance(place, dict):
                place.setdefault(last, _copy(self.value))

    def from_hub(self, document: Document) -> None:
        names = names_within(self.hub_field)
        for member in members(document, around(self.hub_field)):
            if _is_equal(look(member, names), self.value):
                place = look(member, names[:-1])
                del place[names[-1]]


class Function(Step, frozen=True, eq=False):
    """What no other step says: functions of whole objects, as JSON has them.

    They get a copy, and return the object of the other version. They must accept objects that lack any field, and null
    for an object in them that server-side apply has emptied; `check_conversion` of `aioinformer.harness` tries. Of the
    metadata, only labels and annotations may change: other changes are ignored.

    Attributes:
        to: returns the object of the hub.
        back: returns the object of this version.
    """

    to: Callable[[Document], Document]
    back: Callable[[Document], Document]

    def to_hub(self, document: Document) -> None:
        _call(document, self.to)

    def from_hub(self, document: Document) -> None:
        _call(document, self.back)


_NOTHING: Final = (None, "")


def _check_paths(step: str, *paths: str) -> None:
    given: tuple[Any, ...] = paths
    for path in given:
        if not isinstance(path, str) or not is_path(path):
            raise OptionError(f'{step}: {path!r} is no path of a field; write "spec.size" or "spec.ports[].number"')
        if path.split(".")[0] in ("metadata", "apiVersion", "kind"):
            raise OptionError(f"{step}: {path}: a conversion cannot change it; only a Function may change labels")
        if around(path) != around(paths[0]):
            raise OptionError(
                f"{step}: {paths[0]} and {path} are not in the same members; a Function can convert whole objects"
            )


def _check_parts(step: str, given: Split | Join) -> None:
    parts = given.hub_fields if isinstance(given, Split) else given.fields
    if isinstance(parts, str) or len(parts) < 2:
        raise OptionError(f"{step}: name at least two parts, as a list of paths, not {parts!r}")
    _check_paths(step, *given.here, *given.there)
    if bool(given.separator) == (given.split is not None and given.join is not None):
        raise OptionError(f"{step}: give a separator, or both split and join")


def _same(value: Any) -> Any:
    return value


def _replace(document: Document, old: str, new: str, converted: Callable[[Any], Any]) -> None:
    """Move a field, and convert its value; where there is no place for it, it stays."""
    before = names_within(old)
    after = names_within(new)
    for member in members(document, around(old)):
        value = look(member, before)
        if value is ABSENT:
            continue
        remove(member, before)
        result = value if value is None or converted is _same else _called(converted, old, value)
        if not put(member, after, result):
            put(member, before, value)


def _split(document: Document, step: Split | Join, whole: str, parts: Sequence[str]) -> None:
    before = names_within(whole)
    targets = [names_within(each) for each in parts]
    for member in members(document, around(whole)):
        value = look(member, before)
        if value in _NOTHING or value is ABSENT:
            continue
        if step.split is not None:
            found = _called(step.split, whole, value)
            if not isinstance(found, list):
                raise ConversionError(
                    f"{whole}: {_function_name(step.split)} returned no list; return a value for each part"
                )
        else:
            found = value.split(step.separator, len(parts) - 1) if isinstance(value, str) else []
        if len(found) == len(parts) and all(look(member, each) is ABSENT for each in targets):
            remove(member, before)
            for names, part in zip(targets, found, strict=True):
                put(member, names, part)


def _join(document: Document, step: Split | Join, parts: Sequence[str], whole: str) -> None:
    sources = [names_within(each) for each in parts]
    after = names_within(whole)
    for member in members(document, around(whole)):
        values = [look(member, each) for each in sources]
        if any(each is ABSENT or each is None for each in values) or look(member, after) is not ABSENT:
            continue
        if step.join is not None:
            joined = _called(step.join, parts[0], *values)
        elif all(isinstance(each, str) for each in values):
            joined = step.separator.join(values)
        else:
            continue
        for names in sources:
            remove(member, names)
        put(member, after, joined)


def _call(document: Document, function: Callable[[Document], Document]) -> None:
    metadata = document.get("metadata")
    found = _called(function, "", _copy(document))
    if not isinstance(found, dict):
        raise ConversionError(f"a function returned {type(found).__name__}; return the object of the other version")
    changed = found.get("metadata")
    document.clear()
    document.update(found)
    if isinstance(metadata, dict):
        free = changed if isinstance(changed, dict) else {}
        kept = {name: value for name, value in metadata.items() if name not in ("labels", "annotations")}
        document["metadata"] = kept | {name: free[name] for name in ("labels", "annotations") if name in free}


def _called(function: Callable[..., Any], field: str, *values: Any) -> Any:
    """Return what a function makes of values, as JSON has it."""
    what = f"{field}: {_function_name(function)}" if field else _function_name(function)
    try:
        result = function(*values)
    except Exception as error:
        raise ConversionError(f"{what} raised {type(error).__name__}") from error
    try:
        return msgspec.json.decode(checked_json(result))
    except UsageError as error:
        raise ConversionError(f"{what} returned a value that JSON does not have: {error}") from error


def _function_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _is_equal(one: Any, other: Any) -> bool:
    # For Python, 1, 1.0 and True are equal.
    return one is not ABSENT and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
