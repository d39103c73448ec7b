"""What can be said of one informer, wherever one is made: by itself, by a factory, by an attribute path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.indices import Indexers
    from aioinformer.object_type import BodyDecoder, Transform
    from aioinformer.options import ReflectorOptions

T = TypeVar("T")


class InformerOptions(TypedDict, Generic[T], total=False):
    """Keyword arguments of `informer()` and `informer_for()`.

    Attributes:
        indexers: index functions, or field paths, by name; in addition to the one by namespace.
        decoder: a model of the user's own for the objects: a msgspec, dataclass or pydantic class, or a function of
            JSON bytes.
        transform: sees each object before anybody else does; what it returns is cached. Instead of the factory's.
        storage: in what form objects are kept: "bytes", "stripped", "compressed", "projection", "metadata", "dict".
        fields: paths that are decoded with the metadata, such as "spec.nodeName".
        queue: what is between reflector and cache, "delta" or "in_order"; see `aioinformer.queue_choice`.
        resync_period: in seconds, 0 for never; instead of the factory's.
        metadata_only: the same as `storage="metadata"`.
        options: paging, time-outs, backoff; instead of the factory's.
    """

    indexers: Indexers[T] | None
    decoder: BodyDecoder[T] | None
    transform: Transform[T] | None
    storage: str
    fields: Iterable[str]
    queue: str
    resync_period: float | None
    metadata_only: bool
    options: ReflectorOptions | None
