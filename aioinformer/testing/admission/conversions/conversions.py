"""Built-in resources that two versions of the API serve from one store: how each version shows what is kept."""

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
"""By resource in the version that is not kept: what makes the form that is kept, and the form of this version."""
