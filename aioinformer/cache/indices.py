"""One index of a store: which objects have which values.

Everything in here is a dict from strings to strings, or to dicts of the same sort, and to None instead of sets: the
garbage collector does not walk those, however many objects there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from aioinformer.cache.objects.fields import FieldIndexFunc
from aioinformer.cache.objects.record import Record
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.functions import Timed, function_name, plain_function, untimed
from aioinformer.logs import get_logger
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func, meta_namespace_index_func

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

IndexFunc: TypeAlias = "Callable[[T], Iterable[str] | None]"
#: name -> index function, or the path of a field
Indexers: TypeAlias = "Mapping[str, IndexFunc[T] | str]"

_log = get_logger("aioinformer.cache")


def index_functions(indexers: Indexers[T]) -> dict[str, IndexFunc[T]]:
    """The functions, with paths made into functions.

    Raises:
        UsageError: a path does not parse, or something is neither path nor function.
    """
    functions: dict[str, IndexFunc[T]] = {}
    for name, function in indexers.items():
        if isinstance(function, str):
            functions[name] = FieldIndexFunc(function)
        elif callable(function):
            functions[name] = plain_function(function, f"index {name}")
        else:
            raise UsageError(
                f"index {name}: expected a function of an object or a field path, not {type(function).__name__}"
            )
    return functions


def field_paths(indexers: Indexers[T]) -> list[str]:
    """The paths among index functions: fields worth declaring."""
    return [function for function in indexers.values() if isinstance(function, str)]


class _Failed(tuple[str, ...]):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


#: The values of an object for which the index function raised: none, and that is known to be wrong.
FAILED: Final = _Failed()


class Index(Generic[T]):
    """Keys by value, for one index function.

    A change has two halves. `add` may run out of memory, and then has changed nothing; `settle`, and `revert` in its
    place, need none. So a store can change all its indices or none.

    Args:
        name: of the index, for logs and errors.
        function: object -> values.
        to_view: item as stored -> what the function sees; None for the item itself.
        timed: wraps a user's function, so that its calls are timed.

    Attributes:
        failing: keys of the objects for which the function raised in their present version.
    """

    def __init__(
        self, name: str, function: IndexFunc[T], to_view: Callable[[Any], T] | None, timed: Timed = untimed
    ) -> None:
        self.name = name
        self.function = function
        own = isinstance(function, FieldIndexFunc) or function is meta_namespace_index_func
        what = f"index function {name!r}, {function_name(function)},"
        self._call = function if own else timed(function, what, deletion_handling_meta_namespace_key_func)
        # A path is followed in the item itself, where the values of declared fields are.
        self._to_view = None if isinstance(function, FieldIndexFunc) else to_view
        #: value -> keys, in the order in which they came
        self._keys: dict[str, dict[str, None]] = {}
        #: key -> the value the function gave, or values if it gave several; nothing if it gave none
        self._values: dict[str, str | tuple[str, ...]] = {}
        self.failing: dict[str, None] = {}
        #: The namespace of a record is a part of its key: what is in the index stays where it is, whatever it becomes.
        self.settles_records = function is meta_namespace_index_func

    def evaluate(self, key: str, item: Any, *, seen: bool = False) -> tuple[str, ...]:
        """What the function says of an object; `FAILED`, and a log line, if it raises. To be called outside any lock.

        Args:
            key: for the log.
            item: as it is stored.
            seen: the item is what readers see already.

        Raises:
            MemoryError: the function may do better in a moment.
        """
        if self.settles_records and isinstance(item, Record):
            return (item.namespace,)
        try:
            values = self._call(self._to_view(item) if self._to_view and not seen else item)
            if isinstance(values, str):
                raise TypeError("an index function returns a sequence of strings, not a string")
            result = tuple(values) if values is not None else ()
            for value in result:
                if type(value) is not str:
                    result = tuple(map(_plain, result))
                    break
            return result if len(result) < 2 else tuple(dict.fromkeys(result))
        except MemoryError:
            raise
        except USER_ERRORS:
            _log.exception("index function %r raised for %s: the object is absent from this index", self.name, key)
            return FAILED

    def put(self, key: str, item: Any, new: tuple[str, ...]) -> None:
        """An object now has these values."""
        old = self.add(key, item, new)
        if old is not None:
            self.settle(key, old, new)

    def add(self, key: str, item: Any, new: tuple[str, ...]) -> tuple[str, ...] | None:
        """Find an object by these values, too. Return those it had, None if they are the same: then nothing is left."""
        if self.settles_records and isinstance(item, Record):
            self._put_in(item.namespace, key)
            return ()
        old = self._values_of(key)
        if old == new:
            return None
        try:
            for value in new:
                if value not in old:
                    self._put_in(value, key)
            if new is FAILED:
                self.failing[key] = None
            if new or new is FAILED:
                self._values[key] = new[0] if len(new) == 1 else new
        except BaseException:
            self.revert(key, old, new)
            raise
        return old

    def settle(self, key: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Complete what `add` began: find the object by its new values alone."""
        for value in old:
            if value not in new:
                self._take_out(value, key)
        if old is FAILED:
            self.failing.pop(key, None)
        if not new and new is not FAILED:
            self._values.pop(key, None)

    def revert(self, key: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Undo what `add` did: find the object by its old values alone."""
        for value in new:
            if value not in old:
                self._take_out(value, key)
        if new is FAILED:
            self.failing.pop(key, None)
        if old or old is FAILED:
            self._values[key] = old[0] if len(old) == 1 else old
        else:
            self._values.pop(key, None)

    def remove(self, key: str, item: Any) -> None:
        """An object, which was this item, is gone."""
        if self.settles_records and isinstance(item, Record):
            self._take_out(item.namespace, key)
            return
        for value in self._values_of(key):
            self._take_out(value, key)
        self._values.pop(key, None)
        self.failing.pop(key, None)

    def take_in(self, other: Index[T]) -> None:
        """What an index by the same function says of objects that are not in here holds here, too."""
        for value, keys in other._keys.items():
            self._keys.setdefault(value, {}).update(keys)
        self._values.update(other._values)
        self.failing.update(other.failing)

    @property
    def steps(self) -> tuple[str, ...] | None:
        """The path that is indexed, None for an index by a function."""
        return self.function.steps if isinstance(self.function, FieldIndexFunc) else None

    def size(self, value: str) -> int:
        """How many objects have a value."""
        return len(self._keys.get(value, ()))

    def keys(self, value: str) -> list[str]:
        """The keys of the objects that have a value."""
        return list(self._keys.get(value, ()))

    def values(self) -> list[str]:
        """All values that any object has."""
        return list(self._keys)

    def _values_of(self, key: str) -> tuple[str, ...]:
        values = self._values.get(key, ())
        return (values,) if isinstance(values, str) else values

    def _put_in(self, value: str, key: str) -> None:
        keys = self._keys.get(value)
        if keys is None:
            self._keys[value] = {key: None}
        else:
            keys[key] = None

    def _take_out(self, value: str, key: str) -> None:
        keys = self._keys.get(value)
        if keys is not None:
            keys.pop(key, None)
            if not keys:  # values come and go (nodes, versions): an empty dict each would be a leak (STO-07)
                del self._keys[value]


def _plain(value: Any) -> str:
    """The text of a value, as a key that only compares as texts do, whatever its class."""
    if not isinstance(value, str):
        raise TypeError("an index function returns strings")
    return str.__str__(value)
