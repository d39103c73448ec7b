"""Start and end the faults of a server by name; all of them end with the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from aioinformer.testing.http.faults.kinds import Fault, FaultScope
    from aioinformer.testing.server.api_server import ApiServer


class FaultController:
    """Start faults, and end the remaining ones on exit. An async context manager.

    `async with faults("outage"):` starts a fault for the block. `await faults.start("throttle")` starts one until it is
    ended. Names and parameters are those of `ApiServer.fault`.

    Args:
        server: the server whose faults are started.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._scopes: list[FaultScope] = []

    def __call__(self, name: str, /, **params: Any) -> FaultScope:
        """Return a fault for an `async with` block.

        Raises:
            UsageError: unknown fault or parameter.
        """
        scope = self._server.fault(name, **params)
        self._scopes.append(scope)
        return scope

    async def start(self, name: str, /, **params: Any) -> Fault:
        """Start a fault; it lasts until it is ended, or as long as its parameters say.

        Raises:
            UsageError: unknown fault or parameter.
        """
        return await self(name, **params)

    async def end(self, name: str | None = None) -> list[Fault]:
        """End the active faults of that name, or all of them, and return those that ended."""
        ended = [scope for scope in self._scopes if scope.fault.active and name in (None, scope.fault.name)]
        for scope in ended:
            await scope.end()
        self._scopes = [scope for scope in self._scopes if scope.fault.active]
        return [scope.fault for scope in ended]

    @property
    def active(self) -> list[Fault]:
        """The active faults, oldest first."""
        return [scope.fault for scope in self._scopes if scope.fault.active]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
