"""Changes of immutable objects: `evolve` returns a changed copy, which is immutable, too.

A change is applied to the JSON of the object, and only to the members that it names: the bytes of all others are
copied. The result is decoded by the class of the object, which checks the types of the new values. Then all parts that
the change does not name are replaced by those of the object, so that both share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, overload

import msgspec

from aioinformer.cache.objects.encoding import checked_json
from aioinformer.cache.objects.fields import parse_path
from aioinformer.cache.objects.frozen import FrozenDict, freeze_decoded
from aioinformer.cache.objects.models.building import build_decoder
from aioinformer.cache.objects.models.json_value import freeze_hook
from aioinformer.cache.objects.models.shapes import attributes_of, has_model
from aioinformer.cache.objects.refusals import NotFinite, refusal
from aioinformer.errors import UsageError
from aioinformer.logs import without_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.models.shapes import Attribute

T = TypeVar("T")

_MISSING: Final = object()
_encode = msgspec.json.Encoder().encode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Value(NamedTuple):
    """A value that replaces another one of any type."""

    value: Any

    def __repr__(self) -> str:
        return without_values(self)


class _Step(NamedTuple):
    """A step of a path: a member of an object, or an element of a list."""

    name: str
    inner: Any

    def __repr__(self) -> str:
        return without_values(self)


#: A mapping merges its members; None deletes.
Change: TypeAlias = Mapping[str, Any] | _Step | _Value


@overload
def evolve(obj: T, changes: Mapping[str, Any], /) -> T: ...


@overload
def evolve(obj: T, path: str, value: Any, /) -> T: ...


def evolve(obj: Any, changes: Any, value: Any = _MISSING, /) -> Any:
    """Return a changed copy of an object. It is immutable, and shares with the object what the change does not name.

        evolve(deployment, {"spec": {"replicas": 3}, "metadata": {"annotations": {"old": None}}})
        evolve(deployment, "spec.template.spec.containers.0.image", "nginx:1.29")

    With a mapping, the changes are merged into the object, as a JSON merge patch is: mappings are merged in depth, None
    deletes a member, and everything else, lists included, is replaced. With a path, the value at the path is replaced
    as a whole, and None deletes it. A number in a path is the index of a list. Keys with dots are in brackets:
    `"metadata.labels['app.kubernetes.io/name']"`.

    Keys are always those of the JSON (`nodeName`). Values may be JSON values, views and their parts, and instances of
    msgspec, dataclass and pydantic classes.

    Views have this function as a method, too: `deployment.evolve({"spec": {"replicas": 3}})`.

    Args:
        obj: a view, a mapping, or an instance of a msgspec, dataclass or pydantic class.
        changes: the changes, or the path of the change.
        value: the value at the path.

    Returns:
        An object of the same class; for mappings that are not views, a `FrozenDict`.

    Raises:
        UsageError: the change does not fit the object: a model has no such field, a value is of another type, or the
            path leads through something that has no members.
    """
    change = change_of(changes, value)
    if hasattr(obj, "_record"):
        return obj.evolve(changes) if value is _MISSING else obj.evolve(changes, value)
    if isinstance(obj, Mapping):
        made: FrozenDict[str, Any] = freeze_decoded(msgspec.json.decode(changed(checked_json(obj), change)))
        return share(obj, made, change)
    kind: Any = type(obj)
    if hasattr(obj, "_owner"):
        raise UsageError('evolve: the metadata is a part of an object; change that: evolve(obj, {"metadata": …})')
    validate = getattr(kind, "model_validate_json", None)
    if validate is None and not isinstance(obj, msgspec.Struct) and not _is_dataclass(obj):
        raise UsageError(
            f"evolve: expected a view, a mapping, or a msgspec, dataclass or pydantic object, not {kind.__name__}"
        )
    raw = changed(checked_json(obj), change)
    try:
        result = (validate or _decoder_of(kind))(raw)
    except Exception as error:
        reason = refusal(error)
    else:
        return share(obj, result, change)
    raise UsageError(f"the change does not fit {kind.__name__}: {reason}")


@lru_cache(100)
def _decoder_of(kind: Any) -> Callable[[bytes], Any]:
    return build_decoder(kind, freeze_hook)


def change_of(changes: Any, value: Any = _MISSING, /) -> Change:
    """Return the change for the arguments of `evolve`.

    Raises:
        UsageError: they are not a mapping alone, or a path and a value; or the path does not parse.
    """
    if isinstance(changes, str):
        if value is _MISSING:
            raise UsageError(f"evolve: pass the value of {changes!r} as the second argument; None deletes it")
        result: Change = _Value(value)
        for name in reversed(parse_path(changes)):
            result = _Step(name, result)
        return result
    if not isinstance(changes, Mapping) or value is not _MISSING:
        raise UsageError("evolve: expected a mapping of changes, or a path and a value")
    return changes


def changed(raw: bytes, change: Change) -> bytes:
    """Return the JSON of a changed object. The bytes of everything that the change does not name stay as they are.

    Raises:
        UsageError: a path leads through something that has no members.
    """
    result = _changed(msgspec.Raw(raw.lstrip()), change)
    return b"null" if result is None else bytes(result)


def _changed(raw: msgspec.Raw, change: Any) -> msgspec.Raw | None:
    if isinstance(change, _Step):
        return _stepped(raw, change)
    if isinstance(change, _Value):
        return None if change.value is None else msgspec.Raw(checked_json(change.value))
    if change is None:
        return None
    if not isinstance(change, Mapping):
        return msgspec.Raw(checked_json(change))
    members = _members(raw) if _first(raw) == b"{" else {}
    for name, inner in change.items():
        _put(members, name, inner)
    return msgspec.Raw(_encode(members))


def _stepped(raw: msgspec.Raw, step: _Step) -> msgspec.Raw:
    first = _first(raw)
    if first == b"[" and step.name.isdecimal():
        elements = _elements(raw)
        index = int(step.name)
        if index >= len(elements):
            raise UsageError(f"evolve: a list of {len(elements)} has no element {index}; replace the list as a whole")
        element = _changed(elements[index], step.inner)
        elements[index : index + 1] = [] if element is None else [element]
        return msgspec.Raw(_encode(elements))
    if first not in (b"{", b"n", b""):
        raise UsageError(f"evolve: the path leads to {step.name!r} of something that is not an object")
    members = _members(raw) if first == b"{" else {}
    _put(members, step.name, step.inner)
    return msgspec.Raw(_encode(members))


def _first(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])


def _put(members: dict[str, msgspec.Raw], name: str, change: Any) -> None:
    try:
        member = _changed(members.get(name, msgspec.Raw()), change)
    except NotFinite as error:
        error.path = f"{name}.{error.path}".rstrip(".")
        raise
    if member is None:
        members.pop(name, None)
    else:
        members[name] = member


def share(old: Any, new: Any, change: Change | None) -> Any:
    """Return `new` with all the parts of `old` that the change does not name.

    Args:
        old: the decoded object.
        new: the decoded result of the change, of the same class.
    """
    if isinstance(change, _Step):
        steps: Mapping[str, Any] = {change.name: change.inner}
    elif isinstance(change, Mapping):
        steps = change
    else:
        return new
    _check_fields(new, steps)
    if type(old) is not type(new):
        return new
    if isinstance(old, FrozenDict):
        return type(old)({name: _shared(old, name, value, steps) for name, value in new.items()})
    if isinstance(old, tuple) and len(old) == len(new):
        return tuple(share(old[at], new[at], steps[str(at)]) if str(at) in steps else old[at] for at in range(len(old)))
    if isinstance(old, msgspec.Struct):
        names = dict(zip(old.__struct_fields__, old.__struct_encode_fields__, strict=True))
        return msgspec.structs.replace(new, **_shared_attributes(old, new, names, steps))
    if _is_dataclass(old):
        import dataclasses  # a user's module has imported it

        names = {field.name: field.name for field in dataclasses.fields(old) if field.init}
        return dataclasses.replace(new, **_shared_attributes(old, new, names, steps))
    if hasattr(new, "model_dump_json"):
        for name, field in type(new).model_fields.items():
            if (wire := field.alias or name) in steps:
                share(getattr(old, name), getattr(new, name), steps[wire])  # checks; it shares nothing
    return new


def _check_fields(obj: Any, steps: Mapping[str, Any]) -> None:
    """Check that the class of an object has the members that a change sets: decoders ignore those that it lacks."""
    if isinstance(obj, msgspec.Struct):
        names = set(obj.__struct_encode_fields__)
    elif _is_dataclass(obj):
        names = set(type(obj).__dataclass_fields__)
    elif hasattr(obj, "model_dump_json") and type(obj).model_config.get("extra") != "allow":
        names = {field.alias or name for name, field in type(obj).model_fields.items()}
    else:
        return
    for name, value in steps.items():
        if name not in names and value is not None:
            raise UsageError(f"the change does not fit {type(obj).__name__}: it has no member {name!r}")


def _shared(old: Mapping[str, Any], name: str, value: Any, steps: Mapping[str, Any]) -> Any:
    return share(old.get(name), value, steps[name]) if name in steps else old[name]


def _shared_attributes(old: Any, new: Any, names: Mapping[str, str], steps: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: share(getattr(old, name), getattr(new, name), steps[wire]) if wire in steps else getattr(old, name)
        for name, wire in names.items()
    }


def check_names(model: str, change: Change | None, where: str = "") -> None:
    """Check that a change names fields of a model. `where` is the path of the object in the whole, for the message.

    Raises:
        UsageError: the model has no such field.
    """
    steps = {change.name: change.inner} if isinstance(change, _Step) else change
    if isinstance(steps, _Value):
        steps = steps.value
    if not isinstance(steps, Mapping):
        return
    fields = _fields_of(model)
    for name, inner in steps.items():
        path = f"{where}.{name}" if where else str(name)
        if name not in fields:
            wire = next((field.wire for field in fields.values() if field.name == name), "")
            if wire:
                hint = f"the key in JSON is {wire!r}"
            else:
                hint = "for a field of a newer server, change its to_dict()"
            raise UsageError(f"evolve: {model} has no field {path!r}; {hint}")
        _check_value(fields[name].notation, inner, path)


def _check_value(notation: str, change: Any, path: str) -> None:
    if has_model(notation):
        check_names(notation, change, path)
    elif notation[0] in "[{" and has_model(notation[1:-1]):
        value = change.value if isinstance(change, _Value) else change
        if isinstance(value, _Step):
            _check_value(notation[1:-1], value.inner, f"{path}.{value.name}")
            return
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            items = value.items()
        elif _is_list(value):
            items = enumerate(value)
        for at, item in items:
            _check_value(notation[1:-1], item, f"{path}.{at}")


@cache
def _fields_of(model: str) -> dict[str, Attribute]:
    return {attribute.wire: attribute for attribute in attributes_of(model)}


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not hasattr(value, "_fields")


def _is_dataclass(obj: Any) -> bool:
    return hasattr(type(obj), "__dataclass_fields__")


def as_whole(obj: Any) -> Any:
    """Return an object as a view or a mapping with the keys of the JSON; None if its class may lack members of it."""
    if hasattr(obj, "_record") or isinstance(obj, Mapping):
        return obj
    if hasattr(obj, "attribute_map"):
        return msgspec.json.decode(checked_json(obj))
    return None
