"""With each fault, an informer with default options sends at most three failing requests in 2 s.

All faults run at the same time, each with its own server and informer, because the test measures real seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer import HttpTransport, ListWatch, Resource, RunOptions, SharedIndexInformer
from aioinformer.models import core_v1
from aioinformer.testing import FAULTS, ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport import HttpRequest, Response, Transport


#: A watch that ends earlier than this, in seconds, counts as ended at once.
AT_ONCE = 1.0


class CountingTransport:
    """Passes requests on and counts failures.

    Attributes:
        failures: requests that were refused or failed, and responses that ended or were closed at once, each with its
            time since the first request.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = asyncio.get_running_loop().time
        self._begin: float | None = None
        self.failures: list[tuple[float, str]] = []

    async def request(self, request: HttpRequest) -> CountedResponse:
        if self._begin is None:
            self._begin = self._clock()
        try:
            response = await self._transport.request(request)
        except Exception as error:
            self.note(str(error))
            raise
        if response.status != 200:
            self.note(str(response.status))
        return CountedResponse(response, self, is_watch=("watch", "true") in request.query)

    def note(self, what: str) -> None:
        """Count a failure."""
        begin = self._begin if self._begin is not None else self._clock()
        self.failures.append((round(self._clock() - begin, 3), what))

    def restart(self) -> None:
        """Restart counting from now."""
        self._begin = self._clock()
        self.failures.clear()

    async def first_failure(self) -> tuple[float, str]:
        """Wait for a failure."""
        async with asyncio.timeout(200):
            while not self.failures:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.05)
        return self.failures[0]

    def within(self, seconds: float) -> list[tuple[float, str]]:
        """Return the failures of the first seconds."""
        return [entry for entry in self.failures if entry[0] <= seconds]


class CountedResponse:
    """A response that reports to its transport how it ended."""

    def __init__(self, response: Response, transport: CountingTransport, *, is_watch: bool) -> None:
        self._response = response
        self._transport = transport
        self._is_watch = is_watch
        self._opened_at = asyncio.get_running_loop().time()
        self._over = response.status != 200

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.chunks():
                yield chunk
        except Exception as error:
            self._end(str(error))
            raise
        self._end("the watch ended at once" if self._is_watch and self._is_young() else "")

    async def close(self) -> None:
        self._end("closed at once" if self._is_young() else "")
        await self._response.close()

    def _is_young(self) -> bool:
        return asyncio.get_running_loop().time() - self._opened_at < AT_ONCE

    def _end(self, failure: str) -> None:
        if failure and not self._over:
            self._transport.note(failure)
        self._over = True


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
    resource: Resource[Any] = core_v1.CONFIG_MAPS
    async with ApiServer(bookmark_interval=0.5) as server, HttpTransport(server.url) as transport:
        for number in range(20):
            server.create("configmaps", {"metadata": {"name": f"c{number}"}})
        counting = CountingTransport(transport)
        # Streaming lists have no pages.
        options = RunOptions(streaming_list=name != "half_page")
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
                    return counting.within(SECONDS)
        async with fault, informer:
            await asyncio.sleep(SECONDS + 0.1)
            # Counted before the end of the informer, which closes what is open.
            found = counting.within(SECONDS)
            if found or name in _HARMLESS:
                return found
            return [await counting.first_failure()]  # the machine is busy


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
