"""What readers of changes receive of an object: the view of a function or a class, or its name and version.

A class is made from the JSON of the object. A field has the value at its path, which `Annotated` names:

    class Row(msgspec.Struct):
        node: Annotated[str | None, "spec.nodeName"] = None
        phase: Annotated[str | None, "status.phase"] = None

A field without a path has the value of the member with its own name. Only these members are decoded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from aioinformer.cache.objects.fields import parse_path
from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.models.json_value import freeze_hook
from aioinformer.cache.objects.models.shapes import has_model, notation_at
from aioinformer.errors import UsageError
from aioinformer.functions import function_name, plain_function

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record
    from aioinformer.resources.resource import Resource

T = TypeVar("T")
V = TypeVar("V")

#: A function of an object, or a class: msgspec, dataclass or pydantic.
View: TypeAlias = Callable[..., V]


class ViewMaker(NamedTuple):
    """Makes the views of objects.

    Attributes:
        make: record, and the object for readers -> its view; None leaves the object out.
        name: for logs.
        paths: what a class reads; None for a function, which may read everything.
    """

    make: Callable[[Record, Any], Any]
    name: str
    paths: tuple[tuple[str, ...], ...] | None


def view_maker(view: Callable[..., Any] | None, resource: Resource[Any]) -> ViewMaker:
    """Return what makes the views of a resource's objects.

    Args:
        view: a function of the object; a msgspec, dataclass or pydantic class; None for name and version.
        resource: of the objects.

    Raises:
        UsageError: it is none of these, is a coroutine function, or names a field that the objects do not have.
    """
    if view is None:
        return ViewMaker(lambda record, obj: record.resource_version, "versions", ())
    if isinstance(view, type):
        return _class_view(view, resource)
    if not callable(view):
        raise UsageError(f"view: expected a function or a class, not {type(view).__name__}")
    function = plain_function(view, "view")
    return ViewMaker(lambda record, obj: function(obj), function_name(view), None)


@lru_cache(maxsize=64)  # each reader asks for it
def _class_view(view: type[Any], resource: Resource[Any]) -> ViewMaker:
    fields = _fields_of(view)
    _check_fields(view, fields, resource)
    decode = build_decoder(_shape_of(view.__name__, [path for _, path in fields.values()]))
    build = _constructor(view)
    members = [(name, path) for name, path in fields.values()]

    def make(record: Record, obj: Any) -> Any:
        document = decode(record.json)
        values = {name: value for name, path in members if (value := _value_at(document, path)) is not None}
        return build(values)

    return ViewMaker(make, view.__name__, tuple(path for _, path in members))


def _fields_of(view: type[Any]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the fields of a class: attribute -> the name by which a value is passed, and the path of the value."""
    try:
        hints = get_type_hints(view, include_extras=True)
    except (NameError, TypeError) as error:
        raise UsageError(f"view={view.__name__}: a type hint cannot be resolved: {error}") from None
    names: Mapping[str, str]
    if hasattr(view, "model_validate"):
        names = {name: _alias(name, field) for name, field in view.model_fields.items()}
    elif issubclass(view, msgspec.Struct):
        names = dict(zip(view.__struct_fields__, view.__struct_encode_fields__, strict=True))
    elif dataclasses.is_dataclass(view):
        names = {field.name: field.name for field in dataclasses.fields(view)}
    else:
        raise UsageError(
            f"view={view.__name__}: expected a msgspec, dataclass or pydantic class, or a function of the object"
        )
    fields = {}
    for attribute, name in names.items():
        path = next((each for each in _notes(hints.get(attribute)) if isinstance(each, str)), None)
        fields[attribute] = name, (name,) if path is None else parse_path(path)
    return fields


def _alias(name: str, field: Any) -> str:
    alias = field.validation_alias if field.validation_alias is not None else field.alias
    if alias is None or isinstance(alias, str):
        return alias or name
    raise UsageError(f"{name}: name its path as Annotated[..., 'spec.nodeName'], not as an alias of several steps")


def _notes(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _check_fields(view: type[Any], fields: Mapping[str, tuple[str, tuple[str, ...]]], resource: Resource[Any]) -> None:
    if not fields:
        raise UsageError(f"view={view.__name__}: the class has no field")
    if not has_model(resource.model):
        return
    for attribute, (_, path) in fields.items():
        if path[0] not in ("apiVersion", "kind") and not notation_at(resource.model, path[:1]):
            raise UsageError(
                f"view={view.__name__}: {resource.kind} has no member {path[0]!r}; name the path of the field as in "
                f'{attribute}: Annotated[..., "spec.{path[0]}"]'
            )


def _shape_of(name: str, paths: list[tuple[str, ...]]) -> Any:
    """Return a type with which msgspec decodes only the members at these paths."""
    if any(not path for path in paths):
        return Any
    members: dict[str, list[tuple[str, ...]]] = {}
    for step, *rest in paths:
        members.setdefault(step, []).append(tuple(rest))
    fields = []
    renamed = {}
    for number, (step, rests) in enumerate(members.items()):
        inner = _shape_of(name, rests)
        fields.append((f"m{number}", inner if inner is Any else inner | None, None))
        renamed[f"m{number}"] = step
    with BUILDING:
        return msgspec.defstruct(f"{name}Members", fields, rename=renamed, gc=False)


def _value_at(document: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(document, msgspec.Struct):
            place = document.__struct_encode_fields__.index(step)
            document = getattr(document, document.__struct_fields__[place])
        elif isinstance(document, dict):
            document = document.get(step)
        else:
            return None
    return document


def _constructor(view: type[Any]) -> Callable[[dict[str, Any]], Any]:
    if hasattr(view, "model_validate"):
        validate: Callable[[dict[str, Any]], Any] = view.model_validate
        return validate

    def convert(values: dict[str, Any]) -> Any:
        return msgspec.convert(values, view, dec_hook=freeze_hook)

    with BUILDING:
        msgspec.inspect.type_info(view)
    return convert
