"""One index of a store: which objects have which values.

Everything in here is a dict from strings to strings, or to dicts of the same sort, and to None instead of sets: the
garbage collector does not walk those, however many objects there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from aioinformer.callables import Timed, function_name, untimed
from aioinformer.errors import UsageError
from aioinformer.fields import FieldIndexFunc
from aioinformer.keys import deletion_handling_meta_namespace_key_func, meta_namespace_index_func
from aioinformer.logger import get_logger
from aioinformer.notifications import plain_function
from aioinformer.objects import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

IndexFunc: TypeAlias = "Callable[[T], Iterable[str] | None]"
#: name -> index function, or the path of a field
Indexers: TypeAlias = "Mapping[str, IndexFunc[T] | str]"

_log = get_logger(__name__)


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


class Index(Generic[T]):
    """Keys by value, for one index function.

    Args:
        name: of the index, for logs and errors.
        function: object -> values.
        present: item as stored -> what the function sees; None for the item itself.
        timed: wraps a user's function, so that its calls are timed.
    """

    def __init__(
        self, name: str, function: IndexFunc[T], present: Callable[[Any], T] | None, timed: Timed = untimed
    ) -> None:
        self.name = name
        self.function = function
        own = isinstance(function, FieldIndexFunc) or function is meta_namespace_index_func
        what = f"index function {name!r}, {function_name(function)},"
        self._call = function if own else timed(function, what, deletion_handling_meta_namespace_key_func)
        # A path is followed in the item itself, where the values of declared fields are.
        self._present = None if isinstance(function, FieldIndexFunc) else present
        #: value -> keys, in the order in which they came
        self._keys: dict[str, dict[str, None]] = {}
        #: key -> the value the function gave, or values if it gave several; nothing if it gave none
        self._values: dict[str, str | tuple[str, ...]] = {}
        #: The namespace of a record is a part of its key: what is in the index stays where it is, whatever it becomes.
        self.settles_records = function is meta_namespace_index_func

    def evaluate(self, key: str, item: Any, *, seen: bool = False) -> tuple[str, ...]:
        """What the function says of an object; nothing, and a log line, if it raises. To be called outside any lock.

        Args:
            key: for the log.
            item: as it is stored.
            seen: the item is what readers see already.
        """
        if self.settles_records and isinstance(item, Record):
            return (item.namespace,)
        try:
            values = self._call(self._present(item) if self._present and not seen else item)
            if isinstance(values, str):
                raise TypeError("an index function returns a sequence of strings, not a string")
            result = tuple(values) if values is not None else ()
            for value in result:
                if not isinstance(value, str):
                    raise TypeError("an index function returns strings")
            return result if len(result) < 2 else tuple(dict.fromkeys(result))
        except Exception:
            _log.exception("index function %r raised for %s: the object is absent from this index", self.name, key)
            return ()

    def put(self, key: str, item: Any, new: tuple[str, ...]) -> None:
        """An object now has these values."""
        if self.settles_records and isinstance(item, Record):
            keys = self._keys.get(item.namespace)
            if keys is None:
                keys = self._keys[item.namespace] = {}
            keys[key] = None
            return
        old = self._values_of(key)
        if old == new:
            return
        for value in old:
            if value not in new:
                self._take_out(value, key)
        for value in new:
            if value not in old:
                self._keys.setdefault(value, {})[key] = None
        if new:
            self._values[key] = new[0] if len(new) == 1 else new
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

    def take_in(self, other: Index[T]) -> None:
        """What an index by the same function says of objects that are not in here holds here, too."""
        for value, keys in other._keys.items():
            self._keys.setdefault(value, {}).update(keys)
        self._values.update(other._values)

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

    def _take_out(self, value: str, key: str) -> None:
        keys = self._keys.get(value)
        if keys is not None:
            keys.pop(key, None)
            if not keys:  # values come and go (nodes, versions): an empty dict each would be a leak (STO-07)
                del self._keys[value]
