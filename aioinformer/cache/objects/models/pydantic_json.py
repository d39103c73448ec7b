"""The JSON of an object of a pydantic model, as the API needs it.

It is what `model_dump_json(by_alias=True)` returns, but for two things. A field that is None is left out if that is its
default, which null in the API means, too; otherwise, null is its value. And secrets have their values, where pydantic
writes asterisks: a server would store these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec


def json_of_model(obj: Any) -> bytes:
    """Return the JSON of an object of a pydantic model."""
    # The json of the standard library reads and writes what pydantic does: NaN, and integers of any size.
    made = json.loads(obj.model_dump_json(by_alias=True))
    return json.dumps(_completed(obj, made), ensure_ascii=False, separators=(",", ":")).encode()


def _completed(value: Any, made: Any) -> Any:
    """Return what pydantic has made of a value, with its secrets, and without what is None by default."""
    if hasattr(value, "get_secret_value") and not hasattr(value, "model_dump_json"):
        secret = value.get_secret_value()
        if isinstance(secret, bytes):
            return secret.decode()
        return msgspec.to_builtins(secret, enc_hook=str)
    if hasattr(value, "model_dump_json"):
        if type(value).__pydantic_root_model__:
            return _completed(value.root, made)
        if isinstance(made, dict):
            return _of_fields(value, made, type(value).model_fields)
        return made
    if isinstance(value, Mapping):
        if isinstance(made, dict) and len(made) == len(value):
            return {name: _completed(each, made[name]) for each, name in zip(value.values(), made, strict=True)}
    elif isinstance(value, (list, tuple, set, frozenset)):
        if isinstance(made, list) and len(made) == len(value):
            return list(map(_completed, value, made))
    elif isinstance(made, dict) and (fields := getattr(type(value), "__dataclass_fields__", None)):
        return _of_fields(value, made, fields)
    return made


def _of_fields(value: Any, made: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    completed = dict(made)
    for name, field in fields.items():
        known = getattr(value, name, None)
        wire = getattr(field, "serialization_alias", None) or getattr(field, "alias", None) or name
        if wire not in made:  # excluded, or written by a serializer of the model
            continue
        if known is None and made[wire] is None and field.default is None:
            del completed[wire]
        else:
            completed[wire] = _completed(known, made[wire])
    more = getattr(value, "__pydantic_extra__", None) or {}
    for name, known in more.items():
        if name in made:
            completed[name] = _completed(known, made[name])
    computed = getattr(type(value), "model_computed_fields", {})
    return {name: each for name, each in completed.items() if each is not None or name not in {*more, *computed}}
