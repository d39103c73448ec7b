"""Build the class for a model of kubernetes_asyncio at run time, from its shape.

A class is built together with all classes that its attributes refer to, the innermost first, so that annotations are
the types themselves. Only a model that contains itself (a JSON schema) is referred to by name, in a string that msgspec
resolves when it builds the decoder. For this, and for pickling, the classes are attributes of this module.

The tree of managed fields is a quarter of a typical object, and rarely read. It stays encoded, and its attribute is a
property that decodes it.

A list or map that the API requires is never None: if the server sends null, as it does for some that are empty, it is
empty.

A quantity is text. The server sends no other in built-in kinds. In a custom resource, it may also be an integer, which
becomes text.

`struct_for` returns a class once msgspec's description of it is complete (see `building`).

Two rules about memory: classes for whole objects support weak references, by which records remember decoded bodies. The
garbage collector does not track instances of all other classes, since decoded data has no cycles.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import force_setattr

from aioinformer.cache.objects.frozen import FrozenDict, freeze_decoded
from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.models.json_value import JSONValue
from aioinformer.cache.objects.models.model import Model, refuse_write
from aioinformer.cache.objects.models.shapes import attributes_of, has_model, kind_of
from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALARS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "datetime": datetime,
    "object": JSONValue,
}
#: What required lists and maps are if the server sends none, or null.
_EMPTY: dict[str, Any] = {"[": (), "{": FrozenDict()}
#: The types of quantities, by the file's notation.
_QUANTITIES: dict[str, Any] = {"str": str | int | None, "[str]": tuple[str | int | None, ...] | None}
_LATE = {("V1ManagedFieldsEntry", "fields_v1")}

#: Complete classes.
_classes: dict[str, type[Model]] = {}
#: Classes that are being built.
_unfinished: dict[str, type[Model]] = {}
#: Models that contain themselves: msgspec looks their names up in this module.
_named: set[str] = set()


def struct_for(model: str) -> type[Model]:
    """Return the class for a model, always the same one.

    Args:
        model: kubernetes_asyncio's name of it, such as "V1Pod".

    Raises:
        LookupError: kubernetes_asyncio has no such model.
    """
    with BUILDING:
        if model not in _classes:
            if not has_model(model):
                raise LookupError(f"there is no built-in model {model!r}; names are like 'V1Pod'")
            try:
                _make(model, [])
                _complete()
            finally:
                _unfinished.clear()
        return _classes[model]


def _complete() -> None:
    """Let msgspec complete its descriptions of the new classes, then publish them."""
    for made in _unfinished.values():
        # Each class separately: classes inside maps are not part of the outer decoder, but converted later.
        build_decoder(made)
    _classes.update(_unfinished)
    globals().update(_unfinished)


def __getattr__(name: str) -> Any:
    # Pickles refer to classes as attributes of this module, and may be read before the class is built.
    try:
        return struct_for(name)
    except LookupError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def _make(model: str, outer: list[str]) -> type[Model]:
    """Build a class after those of its attributes; `outer` are the models whose classes are being built."""
    known = _classes.get(model) or _unfinished.get(model)
    if known is not None:
        return known
    attributes = attributes_of(model)
    outer.append(model)
    fields: list[tuple[str, Any, Any]] = []
    renamed = {}
    methods: dict[str, Any] = {}
    empty = {each.name: _EMPTY[each.notation[0]] for each in attributes if each.never_none}
    quantities = [each.name for each in attributes if each.quantity]
    if empty or quantities:
        methods["__post_init__"] = _amended(empty, quantities)
    for attribute in attributes:
        field = attribute.name
        if attribute.quantity:
            annotation = _QUANTITIES[attribute.notation]
        else:
            annotation = _annotation(attribute.notation, outer)
        if field.startswith("_"):  # "from" is a keyword; `_from` is its name in the client library
            field = f"{field[1:]}_"
            methods[attribute.name] = property(attrgetter(field), doc=f"The same as `{field}`.")
        if (model, field) in _LATE:
            field = f"_{field}"
            annotation = msgspec.Raw
            methods[attribute.name] = property(partial(_decode_late, field))
        fields.append((field, annotation, None))
        renamed[field] = attribute.wire
    outer.pop()
    whole = {"api_version", "kind", "metadata"} <= renamed.keys()
    made = msgspec.defstruct(
        model,
        fields,
        bases=(Model,),
        module=__name__,
        namespace={
            "__doc__": f"kubernetes_asyncio's {model}, immutable.",
            "openapi_types": {attribute.name: attribute.type for attribute in attributes},
            "attribute_map": {attribute.name: attribute.wire for attribute in attributes},
            **methods,
        },
        rename=renamed,
        frozen=True,
        kw_only=True,
        gc=whole,
        weakref=whole,
    )
    for method in ("__setattr__", "__delattr__"):
        setattr(made, method, refuse_write)
    made.__name__ = kind_of(model)
    made_model = cast("type[Model]", made)
    _unfinished[model] = made_model
    if model in _named:
        globals()[model] = made_model
    return made_model


def _amended(empty: dict[str, Any], quantities: list[str]) -> Callable[[Model], None]:
    """Return a `__post_init__` that replaces nulls by what is empty, and integers of quantities by text."""

    def amend(model: Model) -> None:
        for field, value in empty.items():
            if getattr(model, field) is None:
                force_setattr(model, field, value)
        for field in quantities:
            quantity = getattr(model, field)
            if isinstance(quantity, int):
                force_setattr(model, field, str(quantity))
            elif isinstance(quantity, tuple):
                force_setattr(model, field, tuple(None if each is None else str(each) for each in quantity))

    return amend


def _decode_late(field: str, model: Model) -> Any:
    encoded = getattr(model, field)
    try:
        return None if encoded is None else freeze_decoded(msgspec.json.decode(encoded))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DecodeError(f"not a {type(model).__name__}: not JSON, or nested too deeply, at $.{field[1:]}") from None


def _annotation(kind: str, outer: list[str]) -> Any:
    """Return the type for the shape file's notation. Everything may be null, elements of lists and maps included."""
    inner = kind.strip("[]{}")
    if inner in outer:
        _named.add(inner)
        return _source(kind)
    if kind == "{str}":
        return FrozenDict | None
    if kind[0] == "[":
        return GenericAlias(tuple, (_annotation(kind[1:-1], outer), ...)) | None
    if kind[0] == "{":
        return GenericAlias(FrozenDict, (str, _annotation(kind[1:-1], outer))) | None
    if kind in _SCALARS:
        return _SCALARS[kind] | None
    # The client library has attributes of a class that it does not generate.
    return (_make(kind, outer) if has_model(kind) else JSONValue) | None


def _source(kind: str) -> str:
    """Return the annotation as a string, for a model whose class is not built yet."""
    if kind[0] == "[":
        return f"tuple[{_source(kind[1:-1])}, ...] | None"
    if kind[0] == "{":
        return f"FrozenDict[str, {_source(kind[1:-1])}] | None"
    return f"{kind} | None"
