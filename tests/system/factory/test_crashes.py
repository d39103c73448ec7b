"""A crash over HTTP: the block of a service ends, or goes on if it is asked to."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer import Phase, SharedInformerFactory
from aioinformer.testing import ApiServer


class Broken(BaseException):
    """An exception of a handler that is no `Exception`."""


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def crash(obj: Any) -> None:
    if obj.metadata.name == "bad":
        raise Broken


async def test_crash_ends_the_block_of_a_service(caplog: pytest.LogCaptureFixture) -> None:
    async with ApiServer() as server:
        factory = SharedInformerFactory(server.url)
        factory.core.v1.pods.informer().add_event_handler(on_add=crash)
        factory.core.v1.nodes.informer()

        async def serve() -> None:
            async with factory:
                await factory.wait_for_cache_sync()
                server.create("pods", pod("bad"), "default")
                await asyncio.sleep(60)

        with pytest.raises(Broken):
            await asyncio.wait_for(serve(), 30)
        assert factory.unready().keys() == {"v1/pods", "v1/nodes"}
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == ["informer of pods crashed; the informer factory stops, and its block is cancelled"]


async def test_log_lets_a_service_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async with ApiServer() as server:
        factory = SharedInformerFactory(server.url, on_crash="log")
        pods, crashed = factory.core.v1.pods.informer(), asyncio.Event()
        pods.add_event_handler(on_add=crash)
        pods.add_state_handler(lambda state: crashed.set() if state.phase is Phase.STOPPED else None)
        maps = factory.core.v1.configmaps.informer()
        async with factory:
            await factory.wait_for_cache_sync()
            server.create("pods", pod("bad"), "default")
            await asyncio.wait_for(crashed.wait(), 30)
            assert not factory.is_ready()
            await maps.wait_for(server.create("configmaps", {"metadata": {"name": "later"}}, "default"))
            assert factory.unready() == {"v1/pods": "stopped: crashed: Broken"}
    assert "informer of pods crashed; the other informers of the informer factory go on" in caplog.text
