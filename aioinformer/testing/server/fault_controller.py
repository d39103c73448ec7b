"""Faults of one server, started and ended by name, none of them forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from aioinformer.testing.http.faults.kinds import Fault
    from aioinformer.testing.http.faults.scope import FaultScope
    from aioinformer.testing.server.api_server import ApiServer


class FaultController:
    """Starts faults, and ends those that are left when it is left itself. An async context manager.

    `async with faults("outage"):` makes something go wrong for the length of the block, and
    `await faults.start("throttle")` until it is ended. Names and parameters are those of `ApiServer.fault`.

    Args:
        server: that is to fail.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._scopes: list[FaultScope] = []

    def __call__(self, name: str, /, **params: Any) -> FaultScope:
        """A fault for the length of an `async with`.

        Raises:
            UsageError: no such fault, or no such parameter.
        """
        scope = self._server.fault(name, **params)
        self._scopes.append(scope)
        return scope

    async def start(self, name: str, /, **params: Any) -> Fault:
        """Starts a fault; it lasts until it is ended, or as long as its parameters say.

        Raises:
            UsageError: no such fault, or no such parameter.
        """
        return await self(name, **params)

    async def end(self, name: str | None = None) -> list[Fault]:
        """Ends the active faults of that name, or all of them, and returns those that it ended."""
        ended = [scope for scope in self._scopes if scope.fault.active and name in (None, scope.fault.name)]
        for scope in ended:
            await scope.end()
        self._scopes = [scope for scope in self._scopes if scope.fault.active]
        return [scope.fault for scope in ended]

    @property
    def active(self) -> list[Fault]:
        """What is going wrong now, oldest first."""
        return [scope.fault for scope in self._scopes if scope.fault.active]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
