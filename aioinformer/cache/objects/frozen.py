"""Deeply immutable values: readers of a cache get them for JSON objects and arrays.

All handlers and listers share a cached object, so a write by one of them would reach all. Mappings become `FrozenDict`,
which refuses writes and is a `dict` to code that only reads; sequences become tuples. To change something, change a
copy: every way to copy a `FrozenDict` returns a plain `dict`.

`freeze`, `freeze_decoded` and `closed` make immutable values, `thaw` makes mutable copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Open(dict[Any, Any]):
    """A `FrozenDict` under construction: `dict` fills it in C, then `closed` replaces its class."""

    __slots__ = ()


class _WithoutInit(type):
    if not TYPE_CHECKING:  # else instances would be of no known type

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return cls.__new__(cls, *args, **kwargs)


class FrozenDict(dict[K, V], metaclass=_WithoutInit):
    """A `dict` that raises `TypeError` on every write. `freeze` returns one that is immutable in depth.

    Code that reads a `dict` accepts it, `json.dumps` and kubernetes_asyncio's `ApiClient` included. You own its copies:
    `copy()`, `copy.copy()` and `|` return a plain `dict` with the same values; `to_dict()` and `copy.deepcopy()` return
    a `dict` that is mutable in depth. Pickling keeps the type.

    Since objects appear in logs, the repr has the keys without the values: `<FrozenDict: app, tier>`, and that of an
    object its kind, name and version. `to_dict()` shows the values.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> FrozenDict[K, V]:
        made = super().__new__(cls)
        dict.update(made, *args, **kwargs)
        return made

    def to_dict(self) -> dict[K, Any]:
        """Return a plain copy that is mutable in depth."""
        copied: dict[K, Any] = thaw(self)
        return copied

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping belongs to a cached object and cannot be changed; change a copy, from to_dict()")

    __init__ = _refuse  # `__new__` fills it; a second initialisation would be a write
    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __repr__(self) -> str:
        members: Mapping[Any, Any] = self
        metadata = members.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("name"):
            key = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
            return f"<{members.get('kind') or 'object'} {key} version {metadata.get('resourceVersion', 'unknown')}>"
        return f"<FrozenDict: {', '.join(map(_shown, self))}>" if self else "<FrozenDict>"

    def __copy__(self) -> dict[K, V]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[K, Any]:
        return self.to_dict()

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def __reduce_ex__(self, _: Any) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return self.__reduce__()


def _shown(key: Any) -> str:
    """Return a key for people. Some keys of managed fields are values: those of lists with keys, and of sets."""
    text = str(key)
    return f"{text[:2]}…" if text.startswith(("k:{", "v:")) else text


_EMPTY: FrozenDict[Any, Any] = FrozenDict()


def closed(value: Mapping[K, V]) -> FrozenDict[K, V]:
    """Return a `FrozenDict` with the items of a mapping, as fast as `dict` copies it."""
    made: Any = _Open(value)
    made.__class__ = FrozenDict
    return made  # type: ignore[no-any-return]


def freeze(value: Any) -> Any:
    """Return an immutable equivalent of a JSON value: `FrozenDict` for `dict`, tuple for list, in depth.

    The result shares only immutable values with the argument. Values of other types stay as they are.
    """
    if isinstance(value, dict):
        return FrozenDict((key, freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    return value


def freeze_decoded(value: Any) -> Any:
    """Freeze a value that a JSON decoder has just made. Faster than `freeze`, since it may change the argument."""
    kind = type(value)
    if kind is dict:
        if not value:
            return _EMPTY
        for key, item in value.items():
            # Managed fields have dozens of empty objects: avoid a call for each.
            if type(item) is dict:
                value[key] = freeze_decoded(item) if item else _EMPTY
            elif type(item) is list:
                value[key] = freeze_decoded(item)
        made: Any = _Open(value)  # `closed` inlined
        made.__class__ = FrozenDict
        return made
    if kind is list:
        return tuple([freeze_decoded(item) for item in value])
    return value


def thaw(value: Any) -> Any:
    """Return a mutable copy of a frozen value: `dict` for mappings, list for sequences, in depth.

    Values with a `to_dict()` method, such as decoded models, are replaced by its result; others stay as they are.
    """
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    to_dict = getattr(value, "to_dict", None)
    return value if to_dict is None else to_dict()
