"""What a controller says of a blocked event loop: with real calls that block, and on a core that is busy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.objects.models import decoding
from aioinformer.controller import Controller, Manager, Request
from aioinformer.models import core_v1

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing import ApiServer


def sleep() -> None:
    time.sleep(0.3)


def receive() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0.3)
        with suppress(TimeoutError):
            one.recv(1)


@pytest.mark.behaviour("C-58")
@pytest.mark.parametrize("call", [sleep, receive])
async def test_blocking_call_is_named(
    api_server: ApiServer, call: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create("configmaps", {"metadata": {"name": "a"}})
    ran = asyncio.Event()

    async def maps(request: Request[Any]) -> None:
        call()
        ran.set()

    async with Manager("it", [Controller("maps", core_v1.CONFIG_MAPS, maps)], client=api_server.url):
        await ran.wait()
        await asyncio.sleep(0)
    [seconds] = re.findall(r"maps at \S+ blocked the event loop for ([\d.]+) s with default/a", caplog.text)
    assert float(seconds) >= 0.25


@pytest.mark.behaviour("C-58")
@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="the kernel does not say what waits")
def test_busy_machine_is_no_block() -> None:
    command = [sys.executable, "-m", "tests.system.controller.busy_core"]
    root = Path(__file__).parents[3]
    for _ in range(3):
        ended = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)
        found = json.loads(ended.stdout)
        if found["longest"] > 0.1 and found["busiest"] < 0.05:
            assert found["reported"] == []
            return
    pytest.skip(f"the machine has shared its core otherwise: {found}")


async def test_first_run_builds_no_decoder(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        api_server.create("configmaps", {"metadata": {"name": name, "ownerReferences": []}})
    monkeypatch.setattr(decoding, "_decoders", {})
    decoding.decoder_for.cache_clear()
    built: asyncio.Queue[set[str]] = asyncio.Queue()

    async def maps(request: Request[Any]) -> None:
        built.put_nowait(set(decoding._decoders))

    controller = Controller("maps", core_v1.CONFIG_MAPS, maps, owns=[core_v1.PODS])
    async with Manager("it", [controller], client=api_server.url):
        first = await built.get()
    assert {"V1ConfigMap", "V1Pod"} <= first
