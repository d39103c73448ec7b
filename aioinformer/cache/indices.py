"""One index of a store: which objects have which values.

All containers are dicts whose keys and values are strings, None, or dicts of the same kind: the garbage collector does
not traverse those, however many objects there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from aioinformer.cache.objects.fields import FieldIndexFunc
from aioinformer.cache.objects.record import Record
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.functions import LogError, Timed, function_name, log_each, plain_function, untimed
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func, meta_namespace_index_func

T = TypeVar("T")

IndexFunc: TypeAlias = Callable[[T], Iterable[str] | None]
#: name -> index function, or the path of a field
Indexers: TypeAlias = Mapping[str, IndexFunc[T] | str]


def index_functions(indexers: Indexers[T]) -> dict[str, IndexFunc[T]]:
    """Return the functions, with a function in place of each path.

    Raises:
        UsageError: a path does not parse, or a value is neither a path nor a function.
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
    """Return the paths among index functions: fields to declare."""
    return [function for function in indexers.values() if isinstance(function, str)]


class _Failed(tuple[str, ...]):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


#: The values of an object for which the index function raised: none.
FAILED: Final = _Failed()
#: Indices in which the change of an object has begun, with its values before and after.
Begun: TypeAlias = "list[tuple[Index[Any], tuple[str, ...], tuple[str, ...]]]"


class Index(Generic[T]):
    """Keys by value, for one index function.

    A change has two halves. `add` adds the new values of an object, and may run out of memory. `settle` removes the old
    ones, and needs no memory. With old and new exchanged, `settle` undoes `add`. So a store changes all its indices or
    none.

    Args:
        name: of the index, for logs and errors.
        function: object -> values.
        to_view: stored item -> what the function receives; None for the item itself.
        timed: wraps the function of a user, to time its calls.
        log_error: logs the errors of the function.

    Attributes:
        failing: keys of the objects whose present version made the function raise.
    """

    def __init__(
        self,
        name: str,
        function: IndexFunc[T],
        to_view: Callable[[Any], T] | None,
        timed: Timed = untimed,
        log_error: LogError = log_each,
    ) -> None:
        self.name = name
        self.function = function
        own = isinstance(function, FieldIndexFunc) or function is meta_namespace_index_func
        what = f"index function {name!r}, {function_name(function)},"
        if own:
            self._call = function
        else:
            self._call = timed(function, what, deletion_handling_meta_namespace_key_func)
        self._log_error = log_error
        # A path is followed in the item itself, where the values of declared fields are.
        self._to_view = None if isinstance(function, FieldIndexFunc) else to_view
        #: value -> keys, in the order of their arrival
        self._keys: dict[str, dict[str, None]] = {}
        #: key -> the value that the function returned, or a tuple of several; absent if it returned none
        self._values: dict[str, str | tuple[str, ...]] = {}
        self.failing: dict[str, None] = {}
        #: The namespace of a record is a part of its key, so an update never moves it in this index. Without this, an
        #: event of a flood costs 6 % more instructions.
        self.settles_records = function is meta_namespace_index_func

    def evaluate(self, key: str, item: Any, *, seen: bool = False) -> tuple[str, ...]:
        """Return the values of an object; if the function raises, log it and return `FAILED`. Call it without a lock.

        Args:
            key: for the log.
            item: as it is stored.
            seen: the item is what readers see, and not a stored item.

        Raises:
            MemoryError: a later call may succeed.
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
        except USER_ERRORS as error:
            message = "index function %r raised for %s: the object is absent from this index"
            self._log_error(f"index function {self.name!r}", error, message, self.name, key)
            return FAILED

    def has(self, key: str, item: Any, values: tuple[str, ...]) -> bool:
        """Return whether an object has these values already."""
        if self.settles_records and isinstance(item, Record):
            return key in self._keys.get(item.namespace, ())
        return self._values_of(key) == values

    def put(self, key: str, item: Any, new: tuple[str, ...]) -> None:
        """Set the values of an object."""
        begun: Begun = []
        self.add(key, item, new, begun)
        for _, old, _ in begun:
            self.settle(key, old, new)

    def add(self, key: str, item: Any, new: tuple[str, ...], begun: Begun) -> None:
        """Add the new values of an object to its old ones; if they differ, note the change in `begun` first."""
        if self.settles_records and isinstance(item, Record):
            if key not in self._keys.get(item.namespace, ()):
                begun.append((self, (), new))
                self._put_in(item.namespace, key)
            return
        old = self._values_of(key)
        if old == new:
            return
        begun.append((self, old, new))
        for value in new:
            if value not in old:
                self._put_in(value, key)
        if new is FAILED:
            self.failing[key] = None
        if new or new is FAILED:
            self._values[key] = new[0] if len(new) == 1 else new

    def settle(self, key: str, gone: tuple[str, ...], kept: tuple[str, ...]) -> None:
        """Remove the values that are not kept."""
        for value in gone:
            if value not in kept:
                self._take_out(value, key)
        if kept is not FAILED:
            self.failing.pop(key, None)
        if key in self._values:
            if kept or kept is FAILED:
                self._values[key] = kept[0] if len(kept) == 1 else kept
            else:
                del self._values[key]

    def remove(self, key: str, item: Any) -> None:
        """Remove an object, whose last item is given."""
        values = self._values_of(key)
        if self.settles_records and isinstance(item, Record):
            values = (item.namespace,)
        self.settle(key, values, ())

    def take_in(self, other: Index[T]) -> None:
        """Add everything from an index of the same function that has other objects.

        The values come first: if memory runs out, `remove` finds by them what has been added.
        """
        self._values.update(other._values)
        self.failing.update(other.failing)
        for value, keys in other._keys.items():
            self._keys.setdefault(value, {}).update(keys)

    @property
    def steps(self) -> tuple[str, ...] | None:
        """The indexed path; None for an index by a function."""
        return self.function.steps if isinstance(self.function, FieldIndexFunc) else None

    def parts(self) -> Iterator[Any]:
        """Yield the objects of which the index consists, for their sizes; it may change meanwhile."""
        yield from (self._keys, self._values)
        for value, keys in tuple(self._keys.items()):
            yield from (value, keys)
        for values in tuple(self._values.values()):
            if isinstance(values, tuple):
                yield values

    def size(self, value: str) -> int:
        """Return how many objects have a value."""
        return len(self._keys.get(value, ()))

    def keys(self, value: str) -> list[str]:
        """Return the keys of the objects that have a value."""
        return list(self._keys.get(value, ()))

    def values(self) -> list[str]:
        """Return all values that any object has."""
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
            if not keys:  # values come and go (nodes, versions): an empty dict for each would be a leak
                del self._keys[value]


def _plain(value: Any) -> str:
    """Return a value as a plain `str`, which compares as text even if its class does not."""
    if not isinstance(value, str):
        raise TypeError("an index function returns strings")
    return str.__str__(value)
