"""Built-in resources that two versions of the API serve from one store.

An object is kept in one form, whoever wrote it, and each version shows it in its own. Versions of custom resources
need none of this: without a webhook they differ in nothing but their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.conversions.autoscalers import autoscaler_v1, autoscaler_v2
from aioinformer.testing.admission.conversions.events import core_event, newer_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Conversion:
    """How the objects of a version are kept in the form of another one; neither way changes its argument.

    Attributes:
        kept_as: resource in the version that they are kept in, "v1/events".
        keep: makes the form that is kept.
        show: makes the form of this version.
    """

    kept_as: str
    keep: Callable[[Mapping[str, Any]], dict[str, Any]]
    show: Callable[[Mapping[str, Any]], dict[str, Any]]


CONVERSIONS: Mapping[str, Conversion] = {
    "events.k8s.io/v1/events": Conversion("v1/events", core_event, newer_event),
    "autoscaling/v1/horizontalpodautoscalers": Conversion(
        "autoscaling/v2/horizontalpodautoscalers", autoscaler_v2, autoscaler_v1
    ),
}
"""By resource in the version that is not kept."""
