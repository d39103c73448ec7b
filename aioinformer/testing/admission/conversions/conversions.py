"""The converters of built-in resources whose versions share one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.conversions.autoscalers import autoscaler_v1, autoscaler_v2
from aioinformer.testing.admission.conversions.events import core_event, newer_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    _Convert = Callable[[Mapping[str, Any]], dict[str, Any]]

CONVERTERS: Mapping[str, tuple[_Convert, _Convert]] = {
    "events.k8s.io/v1/events": (core_event, newer_event),
    "autoscaling/v1/horizontalpodautoscalers": (autoscaler_v2, autoscaler_v1),
}
"""By resource in the version that is not stored: the functions to the stored version, and from it."""
