"""Random JSON bodies of a model, generated from the client library's own description of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubernetes_asyncio.client import models as library

from aioinformer.cache.objects.models.shapes import attributes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

DEEPEST = 5


def body(random: Random, kind: str, *, nulls: bool, depth: int = 0) -> Any:
    """Return random plain data for one of the client library's types.

    Args:
        random: where chance comes from.
        kind: as in `openapi_types`.
        nulls: whether null may stand for any value.
        depth: how many models this one is in; the deeper, the fewer attributes.
    """
    if nulls and depth and random.random() < 0.05:
        return None
    if kind.startswith("list["):
        return [body(random, kind[5:-1], nulls=nulls, depth=depth) for _ in range(random.randrange(3))]
    if kind.startswith("dict("):
        inner = kind.removeprefix("dict(str, ")[:-1]
        return {text(random): body(random, inner, nulls=nulls, depth=depth) for _ in range(random.randrange(3))}
    scalar = _SCALARS.get(kind)
    return scalar(random) if scalar else _model(random, getattr(library, kind), nulls, depth)


def _model(random: Random, model: Any, nulls: bool, depth: int) -> dict[str, Any]:
    chosen = {}
    required = {each.name for each in attributes_of(model.__name__) if each.never_none}
    for attribute, kind in model.openapi_types.items():
        if attribute in required:  # else the client library has None, and ours an empty one
            chosen[model.attribute_map[attribute]] = _collection(random, kind, nulls, depth)
            continue
        simple = kind in _SCALARS
        if random.random() < (0.9 if depth < 2 else 0.4) and (simple or depth < DEEPEST):
            chosen[model.attribute_map[attribute]] = body(random, kind, nulls=nulls, depth=depth + 1)
    return chosen


def _collection(random: Random, kind: str, nulls: bool, depth: int) -> Any:
    empty: Any = [] if kind.startswith("list[") else {}
    return (body(random, kind, nulls=nulls, depth=depth + 1) if depth < DEEPEST else None) or empty


def text(random: Random) -> str:
    """Return a word, sometimes with characters that are escaped or take several bytes."""
    return "".join(random.choices('abcxyz0189-./ "\\\n\u00e4\u20ac\U0001f600', k=random.randrange(1, 9)))


def _moment(random: Random) -> str:
    second = datetime.fromtimestamp(random.randrange(2**31), UTC)
    return second.replace(microsecond=random.choice([0, 1, 123456])).isoformat()


def _anything(random: Random, depth: int = 0) -> Any:
    makers: list[Callable[[Random], Any]] = [
        text,
        lambda r: r.randrange(2**40),
        lambda r: r.choice([True, False]),
        lambda r: r.random(),
    ]
    if depth < 3:
        makers.append(lambda r: [_anything(r, depth + 1) for _ in range(r.randrange(3))])
        makers.append(lambda r: {text(r): _anything(r, depth + 1) for _ in range(r.randrange(3))})
    return random.choice(makers)(random)


_SCALARS: dict[str, Any] = {
    "str": text,
    "int": lambda random: random.randrange(-(2**40), 2**40),
    "float": lambda random: random.uniform(-10, 10),
    "bool": lambda random: random.choice([True, False]),
    "datetime": _moment,
    "object": _anything,
}
