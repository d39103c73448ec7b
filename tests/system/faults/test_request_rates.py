"""With each fault, an informer with default options sends at most three failing requests in 2 s.

All faults run at the same time, each with its own server and informer, because the test measures real seconds.
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
from tests.support.counting import CountingTransport

SECONDS = 2.0
MAX_FAILURES = 3

#: The parameters that make a fault as bad as possible.
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


async def failed_requests(name: str, params: dict[str, Any], *, synced: bool) -> list[tuple[float, str]]:
    """Return an informer's failing requests in the first 2 s of a fault, from its start or after its sync."""
    resource = find("", "v1", "configmaps")
    assert resource is not None
    async with ApiServer(bookmark_interval=0.5) as server, HttpTransport(server.url) as transport:
        for number in range(20):
            server.create("configmaps", {"metadata": {"name": f"c{number}"}})
        counting = CountingTransport(transport)
        # Streaming lists have no pages.
        options = ReflectorOptions(streaming_list=name != "half_page")
        informer = SharedIndexInformer(ListWatch(counting, resource), options=options)
        fault = server.fault(name, **params)
        if synced:
            async with informer:
                await informer.wait_for_resource_version(server.resource_version)
                counting.restart()
                async with fault:
                    if FAULTS[name].sort in ("answer", "transport"):
                        await server.fault("watch_close", times=1)  # makes the informer send a request
                    await asyncio.sleep(SECONDS + 0.1)
        else:
            async with fault, informer:
                await asyncio.sleep(SECONDS + 0.1)
    return counting.within(SECONDS)


async def failures_by_fault(*, synced: bool) -> dict[str, list[tuple[float, str]]]:
    measured = await asyncio.gather(*(failed_requests(name, params, synced=synced) for name, params in _CASES))
    return {
        f"{name} {params or ''}".strip(): failures for (name, params), failures in zip(_CASES, measured, strict=True)
    }


async def test_request_rate_is_limited_for_faults_from_the_start() -> None:
    failures = await failures_by_fault(synced=False)
    assert {case: each for case, each in failures.items() if len(each) > MAX_FAILURES} == {}
    assert {case.split()[0] for case, each in failures.items() if not each} == _HARMLESS


async def test_request_rate_is_limited_for_faults_after_sync() -> None:
    failures = await failures_by_fault(synced=True)
    assert {case: each for case, each in failures.items() if len(each) > MAX_FAILURES} == {}
