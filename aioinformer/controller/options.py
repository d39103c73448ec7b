"""The options of a controller as a type, so that type checkers refuse misspelt ones and editors complete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Mapping

    from aioinformer.informer.options import InformerOptions
    from aioinformer.inputs.change import Change
    from aioinformer.inputs.mapping import Owns, Watch
    from aioinformer.inputs.predicates import Predicate
    from aioinformer.inputs.sources import Every, Source
    from aioinformer.resources.resource import Resource
    from aioinformer.workqueue.requests.outcomes import QueueOptions


#: The verbs of resources. A type variable, because mypy refuses `READS | EVENTS` where a mapping is expected.
Writes = TypeVar("Writes", bound="Mapping[Resource[Any], Iterable[str]]")


class ControllerOptions(TypedDict, Generic[Writes], total=False):
    """The keyword arguments of `Controller`, which describes them."""

    owns: Iterable[Resource[Any] | Owns[Any]]
    watches: Iterable[Watch[Any]]
    sources: Iterable[Source | Every | AsyncIterable[Any]]
    when: Predicate | Callable[[Change], Any] | None
    workers: int
    timeout: float | None
    queue: QueueOptions | None
    writes: Writes | None
    elected: bool
    resync_period: float
    grace: float | None
    informer: InformerOptions[Any] | None
