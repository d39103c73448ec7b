"""However the server fails, an informer with the usual options asks it no more than three times in vain in 2 s.

All faults at a time, each with a server and an informer of its own: this is about real seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.resources.catalog import find
from aioinformer.testing import FAULTS, ApiServer
from aioinformer.transport.http import HttpTransport
from tests.faults.counting import CountingTransport

SECONDS = 2.0
MOST = 3

#: What makes a fault as bad as it can be.
_WORST: dict[str, dict[str, Any]] = {
    "throttle": {"retry_after": 0},
    "unavailable": {"retry_after": 0},
    "latency": {"seconds": 0.3},
    "huge_line": {"size": 100_000},
    "restart": {"downtime": 0.1},
    "restore": {"back": 5},
}
_CASES = [(name, _WORST.get(name, {})) for name in sorted(FAULTS)] + [
    ("server_error", {"text": True}),
    ("html", {"status": 502}),
    ("expired", {"as_status": True}),
    ("watch_close", {"events": 1}),
    ("cut", {"events": 1}),
    ("error_event", {"status": 410, "reason": "Expired"}),
]
#: Faults that make no request fail in the first 2 s of an informer.
_HARMLESS = {
    "black_hole",
    "clock_skew",
    "compaction",
    "latency",
    "no_bookmarks",
    "restart",
    "restore",
    "slow",
    "slow_reader",
    "stale_replica",
    "starting",
    "undecodable_object",
    "unknown_event_type",
}


async def asked_in_vain(name: str, params: dict[str, Any], *, synced: bool) -> list[tuple[float, str]]:
    """What an informer asks in vain in the first 2 s of a fault that lasts: from its start, or once it has synced."""
    resource = find("", "v1", "configmaps")
    assert resource is not None
    async with ApiServer(bookmark_interval=0.5) as server, HttpTransport(server.url) as transport:
        for number in range(20):
            server.create("configmaps", {"metadata": {"name": f"c{number}"}})
        counting = CountingTransport(transport)
        # Only lists have pages.
        options = ReflectorOptions(streaming_list=name != "half_page")
        informer = SharedIndexInformer(ListWatch(counting, resource), options=options)
        fault = server.fault(name, **params)
        if synced:
            async with informer:
                await informer.wait_for_resource_version(server.resource_version)
                counting.restart()
                async with fault:
                    if FAULTS[name].sort in ("answer", "transport"):
                        await server.fault("watch_close", times=1)  # so that there is something to be asked
                    await asyncio.sleep(SECONDS + 0.1)
        else:
            async with fault, informer:
                await asyncio.sleep(SECONDS + 0.1)
    return counting.within(SECONDS)


async def in_vain_by_fault(*, synced: bool) -> dict[str, list[tuple[float, str]]]:
    asked = await asyncio.gather(*(asked_in_vain(name, params, synced=synced) for name, params in _CASES))
    return {f"{name} {params or ''}".strip(): vain for (name, params), vain in zip(_CASES, asked, strict=True)}


async def test_request_rate_is_limited_for_faults_from_the_start() -> None:
    asked = await in_vain_by_fault(synced=False)
    assert {case: vain for case, vain in asked.items() if len(vain) > MOST} == {}
    assert {case.split()[0] for case, vain in asked.items() if not vain} == _HARMLESS


async def test_request_rate_is_limited_for_faults_after_sync() -> None:
    asked = await in_vain_by_fault(synced=True)
    assert {case: vain for case, vain in asked.items() if len(vain) > MOST} == {}
