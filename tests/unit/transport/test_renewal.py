"""Renewal of credentials: when it happens, which requests share it, and which requests are sent again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from aioinformer import HttpTransport
from aioinformer.errors import TransportError
from aioinformer.transport import Credential, HttpRequest
from aioinformer.transport.auth.tokens import RenewedCredentials
from tests.support.loopback import Server, body, fetch, needs_async_hooks
from tests.unit.transport.renewals import Clock, Gate, hooked

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration


class Source(RenewedCredentials):
    """Returns token-1, token-2 …, each valid for ten minutes, up to `last`; fails if `broken` is set."""

    def __init__(self, clock: Clock, last: int | None = None) -> None:
        super().__init__(now=clock, clock=clock)
        self.clock = clock
        self.last = last
        self.asked = 0
        self.broken = False
        self.life = 600.0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self.asked += 1
        await asyncio.sleep(0)
        await self.go_on.wait()
        if self.broken:
            raise TransportError("the source is broken")
        number = self.asked if self.last is None else min(self.asked, self.last)
        return Credential(authorization=f"Bearer token-{number}"), self.clock() + self.life


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_credential_is_renewed_before_it_expires(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    clock.time += 545
    assert (await source.current()).authorization == "Bearer token-2"


async def test_short_credential_is_renewed_in_the_last_quarter_of_its_life(clock: Clock) -> None:
    source = Source(clock)
    source.life = 40.0
    await source.current()
    clock.time += 29
    assert (await source.current()).authorization == "Bearer token-1"
    clock.time += 2
    assert (await source.current()).authorization == "Bearer token-2"


async def test_failed_renewal_before_the_expiry_is_ignored(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    source.broken = True
    clock.time += 545
    assert [(await source.current()).authorization for _ in range(3)] == ["Bearer token-1"] * 3
    assert source.asked == 2


async def test_failed_renewal_after_the_expiry_raises(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    source.broken = True
    clock.time += 601
    with pytest.raises(TransportError, match="broken"):
        await source.current()


async def test_failed_source_is_asked_again_after_a_pause(clock: Clock) -> None:
    source = Source(clock)
    source.broken = True
    for _ in range(3):
        with pytest.raises(TransportError, match="the source is broken"):
            await source.current()
    assert source.asked == 1
    source.broken = False
    clock.time += 1
    assert (await source.current()).authorization == "Bearer token-2"


async def test_refused_credential_returned_again_is_fetched_once(clock: Clock) -> None:
    source = Source(clock, last=1)
    refused = await source.current()
    renewed = await asyncio.gather(*(source.renew(refused) for _ in range(50)))
    assert source.asked == 2
    assert set(renewed) == {refused}
    assert await source.renew(refused) == refused
    assert source.asked == 2


async def test_pauses_between_failures_grow_to_a_minute(clock: Clock) -> None:
    source = Source(clock, last=1)
    refused = await source.current()
    start, runs = clock.time, []
    for second in range(4 * 60):
        clock.time = start + second
        asked = source.asked
        await source.renew(refused)
        if source.asked > asked:
            runs.append(second)
    assert runs == [0, 1, 3, 7, 15, 31, 63, 123, 183]


@pytest.mark.parametrize("reset", ["a success", "two quiet minutes"])
async def test_pause_begins_anew_after(clock: Clock, reset: str) -> None:
    source = Source(clock)
    source.broken = True

    async def fails() -> float:
        """Return the seconds until the source is asked again."""
        asked = source.asked
        began = clock.time
        while source.asked == asked:
            with pytest.raises(TransportError):
                await source.current()
            clock.time += 0.25
        return clock.time - began

    pauses = [await fails() for _ in range(5)]
    assert pauses[-1] > 4 * pauses[1]
    if reset == "a success":
        source.broken = False
        clock.time += 60
        await source.current()
        source.broken = True
        clock.time += 600
    else:
        clock.time += 200
    await fails()
    assert await fails() == pauses[1]


async def test_source_of_expired_credentials_is_paced(clock: Clock) -> None:
    source = Source(clock)
    source.life = -5
    tokens = [(await source.current()).authorization for _ in range(50)]
    assert source.asked == 1
    assert set(tokens) == {"Bearer token-1"}
    clock.time += 1
    await source.current()
    assert source.asked == 2


async def test_cancelled_caller_does_not_cancel_the_renewal(clock: Clock) -> None:
    source = Source(clock)
    source.go_on.clear()
    first, second = (asyncio.ensure_future(source.current()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    source.go_on.set()
    assert (await second).authorization == "Bearer token-1"
    assert source.asked == 1


def renewals() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if "renewal" in task.get_name()]


async def test_aclose_ends_a_renewal_and_another_can_start(clock: Clock) -> None:
    source = Source(clock)
    source.go_on.clear()
    waiting = asyncio.ensure_future(source.current())
    for _ in range(3):
        await asyncio.sleep(0)
    assert source.asked == 1
    await source.aclose()
    assert renewals() == []
    with pytest.raises(TransportError, match="cancelled"):
        await waiting
    source.go_on.set()
    assert (await source.current()).authorization == "Bearer token-2"


async def test_renewal_has_a_timeout(clock: Clock) -> None:
    source = Source(clock)
    source._longest = 0.01
    source.go_on.clear()
    with pytest.raises(TransportError, match=r"returned no credential within 0\.01 s"):
        await source.current()


async def test_refused_requests_share_one_renewal(clock: Clock, server: Server) -> None:
    server.answer = Gate("another")
    source = Source(clock, last=1)
    async with HttpTransport(server.url, credentials=source) as transport:
        for _ in range(3):
            responses = await asyncio.gather(*(transport.request(HttpRequest("/")) for _ in range(20)))
            assert {response.status for response in responses} == {401}
            for response in responses:
                await body(response)
    assert source.asked == 2
    assert len(server.requests) == 60


async def test_repeated_renewal_failure_is_logged_once(
    clock: Clock, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer = Gate("another")
    source = Source(clock)
    await source.current()
    source.broken = True
    async with HttpTransport(server.url, credentials=source) as transport:
        for _ in range(5):
            await body(await transport.request(HttpRequest("/")))
            clock.time += 60
    assert source.asked > 2
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "401 Unauthorized, and the credentials cannot be renewed: the source is broken"
    ]


async def test_refused_response_is_closed_before_the_renewed_request(clock: Clock, server: Server) -> None:
    closed = asyncio.Event()

    async def refuse_without_end(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer token-2":
            return web.Response(text="granted")
        response = web.StreamResponse(status=401)
        await response.prepare(request)
        await response.write(b"{")
        try:
            await asyncio.sleep(60)  # cancelled when the client closes the connection
        finally:
            closed.set()
        return response

    server.answer = refuse_without_end
    async with asyncio.timeout(20), HttpTransport(server.url, credentials=Source(clock)) as transport:
        assert await fetch(transport) == b"granted"
        await closed.wait()


async def test_refused_request_is_sent_again_after_renewal(clock: Clock, server: Server) -> None:
    server.answer = Gate("token-2")
    async with HttpTransport(server.url, credentials=Source(clock)) as transport:
        assert await fetch(transport) == b"Bearer token-2"
    assert len(server.requests) == 2


async def test_request_refused_twice_is_not_sent_again(clock: Clock, server: Server) -> None:
    server.answer = Gate("another")
    async with HttpTransport(server.url, credentials=Source(clock)) as transport:
        response = await transport.request(HttpRequest("/"))
        assert (response.status, await body(response)) == (401, b"Bearer token-2")
    assert len(server.requests) == 2


@needs_async_hooks
async def test_hook_runs_once_more_after_a_refusal(server: Server) -> None:
    server.answer = Gate("2")
    asked = 0

    async def hook(configuration: Configuration) -> None:
        nonlocal asked
        asked += 1
        configuration.api_key["BearerToken"] = f"Bearer {asked}\n"

    async with hooked(server, hook) as transport:
        assert await fetch(transport) == b"Bearer 2"


async def test_hook_runs_once_for_all_waiting_requests(server: Server) -> None:
    server.answer = Gate("another")
    asked = 0

    def hook(configuration: Configuration) -> None:
        nonlocal asked
        asked += 1
        configuration.api_key["BearerToken"] = "Bearer same"

    async with hooked(server, hook) as transport:
        for _ in range(2):
            for response in await asyncio.gather(*(transport.request(HttpRequest("/")) for _ in range(10))):
                assert response.status == 401
                await body(response)
    assert asked == 2  # before the requests, and after their refusals; then there is a pause
