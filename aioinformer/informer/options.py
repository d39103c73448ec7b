"""The options of one informer: their types, checks, and the comparison with those of an existing informer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec.structs import replace

from aioinformer.cache.indices import Indexers
from aioinformer.cache.objects.codec import BodyDecoder, Transform
from aioinformer.cache.objects.fields import FieldIndexFunc
from aioinformer.cache.objects.storage import Storage, StorageTier
from aioinformer.errors import OptionError, UnknownOption, UsageError, did_you_mean
from aioinformer.handlers.resync import checked_period
from aioinformer.reflector.options import ReflectorOptions, check_indexers, check_options, check_seconds, checked_fields
from aioinformer.resources.field_selectors import FieldSelector
from aioinformer.resources.label_selectors import LabelSelector

if TYPE_CHECKING:
    from aioinformer.cache.store import Indexer
    from aioinformer.metrics.names import InformerNameAndResource
    from aioinformer.metrics.provider import MetricsProvider

T = TypeVar("T")


class QueueKind(StrEnum):
    """The kinds of queues."""

    DELTA = "delta"
    IN_ORDER = "in_order"


#: The values of `RunOptions.queue`.
QueueName: TypeAlias = Literal["delta", "in_order"] | QueueKind


class RunOptions(ReflectorOptions, frozen=True):
    """How an informer runs; times in seconds. The options of its reflector are those of `ReflectorOptions`.

    Attributes:
        queue: the queue between reflector and cache: "delta" combines the queued changes of an object, "in_order" keeps
            the order between objects and replaces the cache in one step; see `aioinformer.informer.pipeline`.
        max_undecodable: the informer is not ready while a larger share of the objects, from 0 to 1, cannot be decoded;
            None for no limit.
        shutdown_grace: how long a running handler may continue after the stop, before it is cancelled. If it has not
            ended ten seconds after that, it is named in the log and abandoned.

    Raises:
        OptionError: a value is out of range.
    """

    queue: QueueName = QueueKind.DELTA
    max_undecodable: float | None = None
    shutdown_grace: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queue not in tuple(QueueKind):
            raise OptionError(f"queue={self.queue!r} does not exist; choose one of {', '.join(QueueKind)}")
        share: object = self.max_undecodable
        if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
            raise OptionError(f"max_undecodable must be a share from 0 to 1, or None for no limit, not {share!r}")
        check_seconds(self.shutdown_grace, "shutdown_grace")


class CommonOptions(TypedDict, Generic[T], total=False):
    """The options of an informer that do not decide of which type its objects are; see `InformerOptions`."""

    namespace: str
    label_selector: str | LabelSelector | Mapping[str, str]
    field_selector: str | FieldSelector | Mapping[str, str]
    indexers: Indexers[T] | None
    transform: Transform[T] | None
    fields: Iterable[str]
    resync_period: float | None
    options: RunOptions | None


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
        resync_period: in seconds, 0 for never; replaces the factory's.
        options: how the informer runs; replaces the factory's.
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
    options: RunOptions | None
    name: str
    identifier: InformerNameAndResource | None
    metrics: MetricsProvider | None


KNOWN: Final = tuple(InformerOptions.__annotations__)
#: For these, None means that the option is omitted.
_OPTIONAL: Final = frozenset({"indexers", "decoder", "transform", "resync_period", "options"})
#: Names of other options -> how to set them.
_ELSEWHERE: Final = {
    "metadata_only": 'storage="metadata"',
    **{name: f"options=RunOptions({name}=…)" for name in RunOptions.__struct_fields__},
}


class Making(msgspec.Struct, frozen=True):
    """The configuration of one informer, without its indices.

    Attributes:
        decoder, transform, storage, resync_period, options: as in `InformerOptions`.
        fields: as in `InformerOptions`, unordered.
    """

    decoder: Any = None
    transform: Any = None
    storage: str = Storage.BYTES
    fields: frozenset[str] = frozenset()
    resync_period: float = 0.0
    options: RunOptions = RunOptions()

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
            mine = getattr(self, name)
            requested = options[name]
            if name in ("decoder", "transform") and same_function(mine, requested):
                continue
            if mine != requested:
                found += _contrast(name, mine, requested)
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
        UsageError: there is no such storage tier.
    """
    for name in options:
        if name not in KNOWN:
            if name in _ELSEWHERE:
                hint = f"did you mean {_ELSEWHERE[name]}?"
            else:
                hint = did_you_mean(name, KNOWN)
            raise UnknownOption(
                f"{caller} has no option {name!r}{hint and f' ({hint})'}; the options are {', '.join(KNOWN)}"
            )
    named = {name: value for name, value in options.items() if not (value is None and name in _OPTIONAL)}
    if "storage" in named:
        named["storage"] = Storage.of(named["storage"])
    if "fields" in named:
        named["fields"] = frozenset(checked_fields(named["fields"]))
    if "resync_period" in named:
        named["resync_period"] = checked_period(named["resync_period"])
    check_options(named.get("options"), RunOptions)
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
        if isinstance(requested, str):
            return known.steps == FieldIndexFunc(requested).steps
        return known is requested
    return same_function(known, requested)


def _contrast(name: str, mine: Any, requested: Any) -> list[str]:
    if name == "options":
        pairs = [(field, getattr(mine, field), getattr(requested, field)) for field in mine.__struct_fields__]
        return [f"options.{part} is {_shown(old)}, not {_shown(new)}" for part, old, new in pairs if old != new]
    return [f"{name} is {_shown(mine)}, not {_shown(requested)}"]


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, partial):
        value = value.func
    if isinstance(value, str):
        return repr(str(value))
    return getattr(value, "__qualname__", None) or repr(value)
