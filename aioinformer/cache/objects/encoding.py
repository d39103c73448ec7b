"""From objects of any class to JSON: of mappings, views and their parts, models, and instances of users' classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

import msgspec

from aioinformer.cache.objects.refusals import NotFinite
from aioinformer.errors import UsageError
from aioinformer.resources.quantities import Quantity


def encoded(obj: Any) -> bytes:
    """Return the JSON of an object: of a mapping, a view, a model, or an object of a class of the user.

    Raises:
        TypeError: the object, or a part of it, has no JSON form.
        ValueError: a text or a field cannot be encoded.
        RecursionError: the object contains itself, or is nested too deeply.
    """
    if hasattr(obj, "model_dump_json"):
        from aioinformer.cache.objects.models.pydantic_json import json_of_model

        return json_of_model(obj)
    try:
        raw = _encode(obj)
    except TypeError:
        raw = b""  # of a weak reference in a view, or of the user: then encoding raises again
    # Views are structs: msgspec encodes their internals. Searching for these is far cheaper than visiting each value.
    if raw and b'"_record":' not in raw and b'"_owner":' not in raw:
        return raw
    return _encode(_with_plain_views(obj))


def check_finite(obj: Any, raw: bytes) -> None:
    """Raise `NotFinite` if an object has such a number. It is searched only if its JSON, by `encoded`, has a null."""
    by_pydantic = hasattr(obj, "model_dump_json")  # which may write the names of the numbers instead of null
    if b"null" not in raw and not (by_pydantic and (b"NaN" in raw or b"Infinity" in raw)):
        return
    if by_pydantic:
        obj = obj.model_dump(by_alias=True, warnings=False)
    with suppress(TypeError):  # a view, which has no such numbers, or a part that only pydantic can encode
        obj = msgspec.to_builtins(obj, enc_hook=_plain, str_keys=True)
    _check_finite(obj)


def checked_json(value: Any) -> bytes:
    """Return the JSON of a value, as `encoded` does.

    Raises:
        NotFinite: a number is NaN or infinite.
        UsageError: it has no JSON form.
    """
    try:
        raw = encoded(value)
        check_finite(value, raw)
        return raw
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError(f"{type(value).__name__} has no JSON form: {error}") from error


def _check_finite(value: Any) -> None:
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, float) and not isfinite(value):
        raise NotFinite
    for name, item in items:
        if type(item) is not str:
            try:
                _check_finite(item)
            except NotFinite as error:
                error.path = f"{name}.{error.path}".rstrip(".")
                raise


def _with_plain_views(value: Any) -> Any:
    if hasattr(value, "_record") or hasattr(value, "_owner"):  # a view, or its metadata
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _with_plain_views(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_plain_views(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    if hasattr(value, "attribute_map"):  # a model of kubernetes_asyncio
        return _without_none(value.to_dict(serialize=True))  # as the library itself sends it
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump_json"):  # in a list of pydantic's models, for example
        return msgspec.json.decode(encoded(value))
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
