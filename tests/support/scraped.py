"""Metrics as Prometheus scrapes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from aioinformer.prometheus import PrometheusMetrics

if TYPE_CHECKING:
    from collections.abc import Callable


class Scraped:
    """A registry, and the samples in it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = PrometheusMetrics(self.registry)

    def __call__(self, name: str, /, **labels: str) -> float | None:
        """Return the value of the first sample with these labels, and others maybe."""
        samples = (sample for family in self.registry.collect() for sample in family.samples)
        found = (each.value for each in samples if each.name == name and labels.items() <= each.labels.items())
        return next(found, None)

    async def reaches(self, value: float, name: str, /, **labels: str) -> None:
        """Wait until a sample has a value."""
        await self.until(lambda: self(name, **labels) == value)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(50):
            while not condition():  # noqa: ASYNC110 - statistics change without an event
                await asyncio.sleep(0.01)
