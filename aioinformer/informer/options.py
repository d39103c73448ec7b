"""The options of one informer: their types, checks, and the comparison with those of an existing informer."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar

import msgspec
from msgspec.structs import replace

from aioinformer.cache.objects.fields import FieldIndexFunc
from aioinformer.cache.objects.storage import Storage, StorageTier
from aioinformer.errors import OptionError, UnknownOption, UsageError, did_you_mean
from aioinformer.handlers.resync import checked_period
from aioinformer.informer.pipeline import QueueKind, QueueName
from aioinformer.reflector.options import check_indexers, check_options, check_share, checked_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.cache.indices import Indexers
    from aioinformer.cache.objects.codec import BodyDecoder, Transform
    from aioinformer.cache.store import Indexer
    from aioinformer.metrics import InformerNameAndResource, MetricsProvider
    from aioinformer.reflector.options import ReflectorOptions
    from aioinformer.reflector.reflector import WatchErrorHandler
    from aioinformer.resources.field_selectors import FieldSelector
    from aioinformer.resources.label_selectors import LabelSelector

T = TypeVar("T")


class CommonOptions(TypedDict, Generic[T], total=False):
    """The options of an informer that do not decide of which type its objects are; see `InformerOptions`."""

    namespace: str
    label_selector: str | LabelSelector | Mapping[str, str]
    field_selector: str | FieldSelector | Mapping[str, str]
    indexers: Indexers[T] | None
    transform: Transform[T] | None
    fields: Iterable[str]
    queue: QueueName
    resync_period: float | None
    metadata_only: bool
    max_undecodable: float | None
    options: ReflectorOptions | None


class InformerOptions(CommonOptions[T], total=False):
    """Keyword arguments of `informer()`, `lister()` and `informer_for()`.

    The first three select the informer: each scope of a resource has its own. Their defaults are the factory's. The
    others configure the informer. An option that is omitted or None defaults to the factory's, or to that of the
    existing informer.

    Attributes:
        namespace: "" for all namespaces.
        label_selector: applied by the server: text, a mapping of labels, or a parsed selector.
        field_selector: applied by the server: text, a mapping of fields, or a parsed selector.
        indexers: index functions or field paths, by name; added to the index by namespace and to existing indices.
        decoder: your own model for the objects: a msgspec, dataclass or pydantic class, or a function of JSON bytes.
        transform: called with each object before it is cached and delivered; its result is cached. Replaces the
            factory's.
        storage: the storage tier: "bytes", "stripped", "compressed", "projection", "metadata", "dict".
        fields: paths to decode with the metadata, such as "spec.nodeName".
        queue: the queue between reflector and cache, "delta" or "in_order"; see `aioinformer.informer.pipeline`.
        resync_period: in seconds, 0 for never; replaces the factory's.
        metadata_only: the same as `storage="metadata"`.
        max_undecodable: the share of objects that may fail to decode, from 0 to 1, before the informer is not ready;
            replaces the factory's.
        options: paging, timeouts, backoff; replaces the factory's.
    """

    decoder: BodyDecoder[T] | None
    storage: StorageTier


class OwnOptions(TypedDict, Generic[T], total=False):
    """The options of one informer without a factory that do not decide of which type its objects are.

    They are those of `SharedIndexInformer`.
    """

    indexers: Indexers[T] | None
    transform: Transform[T] | None
    fields: Iterable[str]
    queue: QueueName
    options: ReflectorOptions | None
    max_undecodable: float | None
    shutdown_grace: float
    watch_error_handler: WatchErrorHandler | None
    name: str
    identifier: InformerNameAndResource | None
    metrics: MetricsProvider | None


KNOWN: Final = tuple(InformerOptions.__annotations__)
#: For these, None means that the option is omitted.
_OPTIONAL: Final = frozenset({"indexers", "decoder", "transform", "resync_period", "max_undecodable", "options"})


class Making(msgspec.Struct, frozen=True):
    """The configuration of one informer, without its indices.

    Attributes:
        decoder, transform, storage, queue, resync_period, max_undecodable, options: as in `InformerOptions`.
        fields: as in `InformerOptions`, unordered.
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
        """Return this configuration with the given options replaced.

        Args:
            options: from `named_options`.
        """
        return replace(self, **{name: options[name] for name in _MADE_OF if name in options})

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `SharedIndexInformer`."""
        return {name: getattr(self, name) for name in _MADE_OF}

    def differences(self, options: Mapping[str, Any]) -> list[str]:
        """Describe where options differ from this configuration: "storage is 'bytes', not 'dict'".

        Args:
            options: from `named_options`.
        """
        found = []
        for name in _MADE_OF:
            if name not in options:
                continue
            mine, requested = getattr(self, name), options[name]
            if name in ("decoder", "transform") and same_function(mine, requested):
                continue
            if mine != requested:
                found += _contrast(name, mine, requested)
        if options.get("metadata_only") is False and self.storage == Storage.METADATA:
            found.append("metadata_only is True, not False")
        return found


_MADE_OF: Final = Making.__struct_fields__


def named_options(options: Mapping[str, Any], caller: str) -> dict[str, Any]:
    """Check options; return those that are not omitted, each in one canonical form.

    Args:
        options: keyword arguments.
        caller: the function that got them, for errors.

    Raises:
        UnknownOption: there is no such option.
        OptionError: a value is invalid.
        UsageError: two options contradict each other.
    """
    for name in options:
        if name not in KNOWN:
            hint = did_you_mean(name, KNOWN)
            raise UnknownOption(
                f"{caller} has no option {name!r}{hint and f' ({hint})'}; the options are {', '.join(KNOWN)}"
            )
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


def merge_indexers(indexer: Indexer[T], requested: Indexers[T]) -> Indexers[T]:
    """Return the index functions that the cache does not have yet.

    Args:
        indexer: the cache.
        requested: index functions or field paths, by name.

    Raises:
        UsageError: the cache has another function under one of the names.
    """
    known = indexer.get_indexers()
    taken = sorted(name for name in requested if name in known and not _same_index(known[name], requested[name]))
    if taken:
        raise UsageError(
            f"index {', '.join(taken)} exists already, with another function; choose another name or the same function"
        )
    return {name: function for name, function in requested.items() if name not in known}


def same_function(one: Any, other: Any) -> bool:
    """Return whether two functions or classes are the same, or closures of the same code over the same values."""
    if one == other:
        return True
    if not isinstance(one, FunctionType) or not isinstance(other, FunctionType) or one.__code__ is not other.__code__:
        return False
    try:
        held = [[cell.cell_contents for cell in function.__closure__ or ()] for function in (one, other)]
    except ValueError:  # a variable of the enclosing function has no value yet
        return False
    return (
        all(mine is theirs for mine, theirs in zip(*held, strict=True))
        and (one.__defaults__, one.__kwdefaults__) == (other.__defaults__, other.__kwdefaults__)
        and one.__globals__ is other.__globals__
    )


def _same_index(known: Any, requested: Any) -> bool:
    if isinstance(known, FieldIndexFunc):
        return known.steps == FieldIndexFunc(requested).steps if isinstance(requested, str) else known is requested
    return same_function(known, requested)


def _contrast(name: str, mine: Any, requested: Any) -> list[str]:
    if name == "options" and mine is not None:
        pairs = [(field, getattr(mine, field), getattr(requested, field)) for field in mine.__struct_fields__]
        return [f"options.{part} is {old!r}, not {new!r}" for part, old, new in pairs if old != new]
    return [f"{name} is {_shown(mine)}, not {_shown(requested)}"]


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, partial):
        value = value.func
    if isinstance(value, str):
        return repr(str(value))
    return getattr(value, "__qualname__", None) or repr(value)
