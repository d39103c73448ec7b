"""Values that cannot be changed, in depth: what a reader of a cache gets where JSON has objects and arrays.

A cached object is handed to every handler and every lister, so a write by one would be seen by all. Mappings become
`FrozenDict`, which refuses writes and is a `dict` to everything that only reads; sequences become tuples. Whoever wants
to change something takes a copy, and a copy of a `FrozenDict`, by whatever means, is a plain `dict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_PRIVATE = ("data", "stringData")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_REDACTED = "<redacted>"


class _Open(dict[Any, Any]):
    """A `FrozenDict` before it is closed: `dict` fills it in C, then its class is exchanged."""

    __slots__ = ()


class _WithoutInit(type):
    if not TYPE_CHECKING:  # else instances would be of no known type

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return cls.__new__(cls, *args, **kwargs)


class FrozenDict(dict[K, V], metaclass=_WithoutInit):
    """A `dict` that refuses every write with a `TypeError`. What `freeze` makes is frozen in depth.

    It is accepted wherever a `dict` is read, `json.dumps` and kubernetes_asyncio's `ApiClient` included. Copies are the
    caller's own: `copy()`, `copy.copy()` and `|` give a plain `dict` with the same values, `to_dict()` and
    `copy.deepcopy()` one that is plain and mutable in depth. Pickling keeps the type.

    The text of one that is a Secret (see `FrozenSecret`) or has its kind names what it holds and does not show it:
    objects get into logs. Neither is kubectl's copy of what was applied shown, in whatever object.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> FrozenDict[K, V]:
        made = super().__new__(cls)
        dict.update(made, *args, **kwargs)
        return made

    def to_dict(self) -> dict[K, Any]:
        """A plain, mutable copy in depth."""
        copied: dict[K, Any] = thaw(self)
        return copied

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping belongs to a cached object and cannot be changed; change a copy, from to_dict()")

    __init__ = _refuse  # `__new__` fills it: to initialise it again would be a write
    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __repr__(self) -> str:
        if _APPLIED in self:  # the annotations of some object
            shown: dict[Any, Any] = {**self, _APPLIED: _REDACTED}
            return repr(shown)
        return repr(_redacted(self)) if _is_secret(self) else super().__repr__()

    def __copy__(self) -> dict[K, V]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[K, Any]:
        return self.to_dict()

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def __reduce_ex__(self, _: Any) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return self.__reduce__()


class FrozenSecret(FrozenDict[K, V]):
    """An object of the resource `secrets`, whatever kind it says it is of: its text never shows what it holds."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(_redacted(self))


def as_secret(value: FrozenDict[K, V]) -> FrozenSecret[K, V]:
    """Return the same object, from now on with the text of a Secret."""
    made: Any = value
    made.__class__ = FrozenSecret
    return made  # type: ignore[no-any-return]


def _is_secret(value: Mapping[Any, Any]) -> bool:
    kind = value.get("kind")
    if kind is None:  # as in lists; of what has metadata and data, only Secrets have a type
        return "metadata" in value and "type" in value
    return kind in ("Secret", "SecretList")


def _redacted(secret: Mapping[Any, Any]) -> dict[Any, Any]:
    shown = dict(secret)
    for name in _PRIVATE:
        if held := shown.get(name):
            shown[name] = dict.fromkeys(held, _REDACTED) if isinstance(held, Mapping) else _REDACTED
    if isinstance(items := shown.get("items"), (list, tuple)):
        shown["items"] = [_redacted(item) if isinstance(item, Mapping) else item for item in items]
    return shown


_EMPTY: FrozenDict[Any, Any] = FrozenDict()


def closed(value: Mapping[K, V]) -> FrozenDict[K, V]:
    """Return a `FrozenDict` of a dict, as fast as `dict` makes a copy."""
    made: Any = _Open(value)
    made.__class__ = FrozenDict
    return made  # type: ignore[no-any-return]


def freeze(value: Any) -> Any:
    """An immutable equivalent of a JSON value: `FrozenDict` for `dict`, tuple for list, in depth.

    Nothing is shared with the argument but what cannot change anyway. Values of other types are kept as they are.
    """
    if isinstance(value, dict):
        return FrozenDict((key, freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    return value


def freeze_decoded(value: Any) -> Any:
    """`freeze` for what a JSON decoder has just made and nobody else holds: faster, as it uses the parts up."""
    kind = type(value)
    if kind is dict:
        if not value:
            return _EMPTY
        for key, item in value.items():
            # The leaves of managed fields are empty objects by the dozen: not worth a call each.
            if type(item) is dict:
                value[key] = freeze_decoded(item) if item else _EMPTY
            elif type(item) is list:
                value[key] = freeze_decoded(item)
        made: Any = _Open(value)  # what `closed` does, without the call
        made.__class__ = FrozenDict
        return made
    if kind is list:
        return tuple([freeze_decoded(item) for item in value])
    return value


def thaw(value: Any) -> Any:
    """A plain, mutable copy of a frozen value: `dict` for mappings, list for sequences, in depth.

    Values that have a `to_dict()` of their own, as decoded models do, become what that gives; others are kept.
    """
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    to_dict = getattr(value, "to_dict", None)
    return value if to_dict is None else to_dict()
