"""Candidates on virtual time, and the code that they guard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term

if TYPE_CHECKING:
    from tests.support.lease_server import LeaseServer


def candidate(server: LeaseServer, identity: str = "me", **arguments: Any) -> LeaderElector:
    """Return an elector without jitter."""
    return LeaderElector(server, "it", identity=identity, random=lambda: 0.0, **arguments)


def now() -> float:
    return asyncio.get_running_loop().time()


async def led_for(elector: LeaderElector, seconds: float = 1e6) -> float:
    """Lead for at most `seconds`; return for how many seconds."""
    start = now()
    try:
        async with elector.leading():
            start = now()
            await asyncio.sleep(seconds)
    except LeadershipLost:
        pass
    return now() - start


async def work(term: Term) -> None:
    """Run until cancelled."""
    await asyncio.sleep(1e6)
