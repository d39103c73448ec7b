"""Credentials that change: when they are renewed, by whom, and what a request makes of it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import Request
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.kubernetes import KubernetesTransport
from aioinformer.transport.renewal import Credential, RenewedCredentials
from aioinformer.transport.token_file import TokenFile
from tests.transport.loopback import Server, body, fetch

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class Source(RenewedCredentials):
    """Hands out token-1, token-2 …, each good for ten minutes, unless `last` holds it back or `broken` is set."""

    def __init__(self, clock: Clock, last: int | None = None) -> None:
        super().__init__(now=clock)
        self.clock = clock
        self.last = last
        self.asked = 0
        self.broken = False

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.broken:
            raise TransportError("the source is broken")
        number = self.asked if self.last is None else min(self.asked, self.last)
        return Credential(authorization=f"Bearer token-{number}"), self.clock() + 600


class Gate:
    """Lets in whoever brings the right token."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        granted = request.headers.get("Authorization") == f"Bearer {self.token}"
        return web.Response(text=request.headers.get("Authorization", ""), status=200 if granted else 401)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_credential_is_kept_while_it_is_good(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    clock.time += 500
    assert (await source.current()).authorization == "Bearer token-1"


async def test_a_credential_is_renewed_before_it_expires(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    clock.time += 545
    assert (await source.current()).authorization == "Bearer token-2"


async def test_a_source_that_fails_before_the_expiry_does_not_matter_yet(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    source.broken = True
    clock.time += 545
    assert [(await source.current()).authorization for _ in range(3)] == ["Bearer token-1"] * 3
    assert source.asked == 2


async def test_a_source_that_fails_after_the_expiry_is_an_error(clock: Clock) -> None:
    source = Source(clock)
    await source.current()
    source.broken = True
    clock.time += 601
    with pytest.raises(TransportError, match="broken"):
        await source.current()


async def test_all_who_were_refused_together_share_one_renewal(clock: Clock) -> None:
    source = Source(clock)
    refused = await source.current()
    renewed = await asyncio.gather(*(source.renew(refused) for _ in range(20)))
    assert source.asked == 2
    assert {credential.authorization for credential in renewed} == {"Bearer token-2"}


async def test_all_who_come_first_share_one_fetch(clock: Clock) -> None:
    source = Source(clock)
    await asyncio.gather(*(source.current() for _ in range(20)))
    assert source.asked == 1


async def test_all_who_wait_for_a_source_that_fails_share_the_failure(clock: Clock) -> None:
    source = Source(clock)
    source.broken = True
    results = await asyncio.gather(*(source.current() for _ in range(20)), return_exceptions=True)
    assert source.asked == 1
    assert [str(result) for result in results] == ["the source is broken"] * 20


async def test_a_source_that_failed_is_asked_again_by_the_next(clock: Clock) -> None:
    source = Source(clock)
    source.broken = True
    with pytest.raises(TransportError):
        await source.current()
    source.broken = False
    assert (await source.current()).authorization == "Bearer token-2"


async def test_a_caller_that_is_cancelled_leaves_the_renewal_to_the_next(clock: Clock) -> None:
    source = Source(clock)
    first, second = (asyncio.ensure_future(source.current()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).authorization.startswith("Bearer token-")


async def test_a_refused_request_is_sent_again_with_the_renewed_credential(clock: Clock, server: Server) -> None:
    server.answer = Gate("token-2")
    async with HttpTransport(server.url, credentials=Source(clock)) as transport:
        assert await fetch(transport) == b"Bearer token-2"
    assert len(server.requests) == 2


async def test_a_request_refused_twice_is_not_sent_a_third_time(clock: Clock, server: Server) -> None:
    server.answer = Gate("another")
    async with HttpTransport(server.url, credentials=Source(clock)) as transport:
        response = await transport.request(Request("/"))
        assert (response.status, await body(response)) == (401, b"Bearer token-2")
    assert len(server.requests) == 2


async def test_a_renewal_that_brings_nothing_new_sends_nothing(clock: Clock, server: Server) -> None:
    server.answer = Gate("another")
    async with HttpTransport(server.url, credentials=Source(clock, last=1)) as transport:
        response = await transport.request(Request("/"))
        assert (response.status, await body(response)) == (401, b"Bearer token-1")
    assert len(server.requests) == 1


async def test_a_renewal_that_fails_leaves_the_servers_answer(clock: Clock, server: Server) -> None:
    server.answer = Gate("another")
    source = Source(clock)
    await source.current()
    source.broken = True
    async with HttpTransport(server.url, credentials=source) as transport:
        response = await transport.request(Request("/"))
        assert (response.status, await body(response)) == (401, b"Bearer token-1")


async def test_the_hook_of_an_api_client_is_asked_once_more_after_a_refusal(server: Server) -> None:
    server.answer = Gate("2")
    asked = 0

    async def hook(configuration: Configuration) -> None:
        nonlocal asked
        asked += 1
        configuration.api_key["BearerToken"] = f"Bearer {asked}\n"

    configuration = Configuration(host=server.url, api_key={"BearerToken": "unset"})
    configuration.refresh_api_key_hook = hook
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        assert await fetch(transport) == b"Bearer 2"


async def test_a_hook_that_is_a_plain_function_works_too(server: Server) -> None:
    server.answer = Gate("plain")

    def hook(configuration: Configuration) -> None:
        configuration.api_key["BearerToken"] = "plain"

    configuration = Configuration(host=server.url, api_key={"BearerToken": "unset"})
    configuration.api_key_prefix["BearerToken"] = "Bearer"
    configuration.refresh_api_key_hook = hook
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        assert await fetch(transport) == b"Bearer plain"


async def test_a_hook_that_raises_is_a_transport_error_without_its_words(server: Server) -> None:
    def hook(configuration: Configuration) -> None:
        raise ValueError("the token is s3cret")

    configuration = Configuration(host=server.url, api_key={"BearerToken": "unset"})
    configuration.refresh_api_key_hook = hook
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        with pytest.raises(TransportError, match=r"refresh_api_key_hook.*ValueError") as caught:
            await fetch(transport)
    assert "s3cret" not in str(caught.value)


async def test_the_newline_at_the_end_of_a_token_file_is_not_sent(server: Server, tmp_path: Path) -> None:
    server.answer = Gate("one")
    (tmp_path / "token").write_text("one\n")
    async with HttpTransport(server.url, token_file=tmp_path / "token") as transport:
        assert await fetch(transport) == b"Bearer one"


async def test_a_rotated_token_file_is_read_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    async with HttpTransport(server.url, token_file=tmp_path / "token") as transport:
        await fetch(transport)
        (tmp_path / "next").write_text("two\n")
        os.replace(tmp_path / "next", tmp_path / "token")
        server.answer = Gate("two")
        assert await fetch(transport) == b"Bearer two"
    assert len(server.requests) == 2


async def test_a_token_file_that_seems_unchanged_is_read_again_after_a_minute(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path, now=clock)
    await file.current()
    status = path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = await file.current()
    clock.time += 61
    after = await file.current()
    assert (before.authorization, after.authorization) == ("Bearer one", "Bearer two")


async def test_a_token_file_that_is_gone_leaves_the_last_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path)
    await file.current()
    path.unlink()
    assert (await file.current()).authorization == "Bearer one"


@pytest.mark.parametrize("content", [None, "", "two words", "bell\a"])
async def test_a_token_file_without_a_token_is_named_before_the_first_request(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=f"token file {path}.*name a readable file") as caught:
        async with HttpTransport("http://127.0.0.1:1", token_file=path):
            pass
    assert not content or content not in str(caught.value)


def test_a_credential_does_not_show_what_it_holds() -> None:
    assert "s3cret" not in repr(Credential("Bearer s3cret", "s3cret", "s3cret"))
