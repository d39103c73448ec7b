"""What can be said of one informer, wherever one is made: by itself, by a factory, by an attribute path."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar

from aioinformer.cache.objects.fields import FieldIndexFunc
from aioinformer.cache.objects.storage import Storage
from aioinformer.errors import OptionError, UnknownOption, UsageError
from aioinformer.handlers.resync import checked_period
from aioinformer.informer.pipeline import QueueKind
from aioinformer.reflector.options import check_indexers, check_options, check_share, checked_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.cache.indices import Indexers
    from aioinformer.cache.objects.codec import BodyDecoder, Transform
    from aioinformer.cache.store import Indexer
    from aioinformer.reflector.options import ReflectorOptions
    from aioinformer.resources.field_selectors import FieldSelector
    from aioinformer.resources.label_selectors import LabelSelector

T = TypeVar("T")


class InformerOptions(TypedDict, Generic[T], total=False):
    """Keyword arguments of `informer()`, `lister()` and `informer_for()`.

    The first three say which informer is meant: each scope of a resource has one of its own. What they do not name is
    as the factory has it. The others say what an informer is made of; None, and an option that is left out, leave it to
    the factory, or to the informer that exists.

    Attributes:
        namespace: "" for all namespaces.
        label_selector: applied by the server: text, a mapping of labels, or a parsed one.
        field_selector: applied by the server: text, a mapping of fields, or a parsed one.
        indexers: index functions, or field paths, by name; in addition to the one by namespace, and to those that the
            informer has.
        decoder: a model of the user's own for the objects: a msgspec, dataclass or pydantic class, or a function of
            JSON bytes.
        transform: sees each object before anybody else does; what it returns is cached. Instead of the factory's.
        storage: in what form objects are kept: "bytes", "stripped", "compressed", "projection", "metadata", "dict".
        fields: paths that are decoded with the metadata, such as "spec.nodeName".
        queue: what is between reflector and cache, "delta" or "in_order"; see `aioinformer.informer.pipeline`.
        resync_period: in seconds, 0 for never; instead of the factory's.
        metadata_only: the same as `storage="metadata"`.
        max_undecodable: the share of objects, from 0 to 1, above which the informer is not ready; instead of the
            factory's.
        options: paging, time-outs, backoff; instead of the factory's.
    """

    namespace: str
    label_selector: str | LabelSelector | Mapping[str, str]
    field_selector: str | FieldSelector | Mapping[str, str]
    indexers: Indexers[T] | None
    decoder: BodyDecoder[T] | None
    transform: Transform[T] | None
    storage: str
    fields: Iterable[str]
    queue: str
    resync_period: float | None
    metadata_only: bool
    max_undecodable: float | None
    options: ReflectorOptions | None


KNOWN: Final = tuple(InformerOptions.__annotations__)
#: Of these, None means that the option is not named.
_OPTIONAL: Final = frozenset({"indexers", "decoder", "transform", "resync_period", "max_undecodable", "options"})


@dataclass(frozen=True, slots=True)
class Making:
    """What one informer is made of, its indexes apart.

    Attributes:
        decoder, transform, storage, queue, resync_period, max_undecodable, options: as in `InformerOptions`.
        fields: the same, in no order.
    """

    decoder: Any = None
    transform: Any = None
    storage: str = Storage.BYTES
    fields: frozenset[str] = frozenset()
    queue: str = QueueKind.DELTA
    resync_period: float = 0.0
    max_undecodable: float | None = None
    options: ReflectorOptions | None = None

    def with_options(self, options: Mapping[str, Any]) -> Making:
        """Return the same with the options that are named.

        Args:
            options: from `named_options`.
        """
        return replace(self, **{name: options[name] for name in _MADE_OF if name in options})

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `SharedIndexInformer`."""
        return {name: getattr(self, name) for name in _MADE_OF}

    def differences(self, options: Mapping[str, Any]) -> list[str]:
        """Name what options ask for, and this is not: "storage is 'bytes', not 'dict'".

        Args:
            options: from `named_options`.
        """
        found = []
        for name in _MADE_OF:
            if name not in options:
                continue
            mine, asked = getattr(self, name), options[name]
            if name in ("decoder", "transform") and same_function(mine, asked):
                continue
            if mine != asked:
                found += _contrast(name, mine, asked)
        if options.get("metadata_only") is False and self.storage == Storage.METADATA:
            found.append("metadata_only is True, not False")
        return found


_MADE_OF: Final = tuple(field.name for field in fields(Making))


def named_options(options: Mapping[str, Any], caller: str) -> dict[str, Any]:
    """Return the options that are named, checked and in one form each.

    Args:
        options: keyword arguments.
        caller: what they were given to, for errors.

    Raises:
        UnknownOption: there is no such option.
        OptionError: a value makes no sense.
        UsageError: two of them contradict each other.
    """
    for name in options:
        if name not in KNOWN:
            nearest = get_close_matches(name, KNOWN, n=1)
            hint = f" (did you mean {nearest[0]}?)" if nearest else ""
            raise UnknownOption(f"{caller} has no option {name!r}{hint}; the options are {', '.join(KNOWN)}")
    named = {name: value for name, value in options.items() if not (value is None and name in _OPTIONAL)}
    if "storage" in named:
        named["storage"] = Storage.of(named["storage"])
    if named.get("metadata_only", False) not in (True, False):
        raise OptionError(f"metadata_only must be True or False, not {named['metadata_only']!r}")
    if named.get("metadata_only"):
        if named.get("storage", Storage.METADATA) is not Storage.METADATA:
            raise UsageError(
                f"metadata_only=True and storage={str(named['storage'])!r} contradict each other: choose one"
            )
        named["storage"] = Storage.METADATA
    elif "metadata_only" in named and named.get("storage") is Storage.METADATA:
        raise UsageError('metadata_only=False and storage="metadata" contradict each other: choose one')
    if "fields" in named:
        named["fields"] = frozenset(checked_fields(named["fields"]))
    if "queue" in named and named["queue"] not in tuple(QueueKind):
        raise UsageError(f"queue={named['queue']!r} does not exist; choose one of {', '.join(QueueKind)}")
    if "resync_period" in named:
        named["resync_period"] = checked_period(named["resync_period"])
    check_share(named.get("max_undecodable"))
    check_options(named.get("options"))
    check_indexers(named.get("indexers"))
    return named


def merge_indexers(indexer: Indexer[T], asked: Indexers[T]) -> Indexers[T]:
    """Return the index functions that the cache does not have yet.

    Args:
        indexer: the cache.
        asked: index functions, or field paths, by name.

    Raises:
        UsageError: the cache has another function under one of the names.
    """
    known = indexer.get_indexers()
    taken = sorted(name for name in asked if name in known and not _same_index(known[name], asked[name]))
    if taken:
        raise UsageError(
            f"index {', '.join(taken)} exists already, with another function; choose another name, or give the same one"
        )
    return {name: function for name, function in asked.items() if name not in known}


def same_function(one: Any, other: Any) -> bool:
    """Whether two functions, or classes, are the same: a lambda is, each time that its line is passed."""
    if one == other:
        return True
    if not isinstance(one, FunctionType) or not isinstance(other, FunctionType) or one.__code__ is not other.__code__:
        return False
    try:
        held = [[cell.cell_contents for cell in function.__closure__ or ()] for function in (one, other)]
    except ValueError:  # a variable of the function around it that has no value yet
        return False
    return (
        all(mine is theirs for mine, theirs in zip(*held, strict=True))
        and (one.__defaults__, one.__kwdefaults__) == (other.__defaults__, other.__kwdefaults__)
        and one.__globals__ is other.__globals__
    )


def _same_index(known: Any, asked: Any) -> bool:
    if isinstance(known, FieldIndexFunc):
        return known.steps == FieldIndexFunc(asked).steps if isinstance(asked, str) else known is asked
    return same_function(known, asked)


def _contrast(name: str, mine: Any, asked: Any) -> list[str]:
    if name == "options" and mine is not None:
        pairs = [(field.name, getattr(mine, field.name), getattr(asked, field.name)) for field in fields(mine)]
        return [f"options.{part} is {old!r}, not {new!r}" for part, old, new in pairs if old != new]
    return [f"{name} is {_shown(mine)}, not {_shown(asked)}"]


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, partial):
        value = value.func
    if isinstance(value, str):
        return repr(str(value))
    return getattr(value, "__qualname__", None) or repr(value)
