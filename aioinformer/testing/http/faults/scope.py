"""One fault of one server: awaited, or for the length of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from aioinformer.testing.http.faults.effects import FaultEffects
    from aioinformer.testing.http.faults.kinds import Fault


class FaultScope:
    """A fault that is about to start: `await` it, or use it as an async context manager that ends it."""

    def __init__(self, effects: FaultEffects, fault: Fault) -> None:
        self._effects = effects
        self.fault = fault

    def __await__(self) -> Generator[Any, None, Fault]:
        return self._start().__await__()

    async def end(self) -> None:
        """End the fault if it has not ended by itself."""
        await self._effects.end(self.fault)

    async def _start(self) -> Fault:
        await self._effects.start(self.fault)
        return self.fault

    async def __aenter__(self) -> Fault:
        return await self._start()

    async def __aexit__(self, *_: object) -> None:
        await self.end()
