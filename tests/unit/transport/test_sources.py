"""Sources of credentials that raise or return something else: each is a `TransportError`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.errors import InformerStopped, TransportError, UsageError
from aioinformer.transport import Request
from aioinformer.transport.auth.tokens import Credential, RenewedCredentials
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.kubernetes import KubernetesTransport
from tests.support.loopback import Server, bearer_only, fetch, needs_async_hooks
from tests.system.secrets.test_tracebacks import texts_of

RAISED = [
    ValueError("s3cret"),
    OverflowError("int too large to convert to float"),
    KeyError("s3cret"),
    OSError(5, "s3cret"),
    TimeoutError("s3cret"),
    RecursionError("s3cret"),
    MemoryError("s3cret"),
    AssertionError("s3cret"),
    StopAsyncIteration("s3cret"),
    UnicodeDecodeError("utf-8", b"s3cret", 0, 1, "s3cret"),
    ExceptionGroup("s3cret", [ValueError("s3cret")]),
    asyncio.CancelledError("s3cret"),
]
GIVEN: list[Any] = [
    None,
    "s3cret",
    {"token": "s3cret"},
    Credential(authorization=b"Bearer s3cret"),  # type: ignore[arg-type]
    Credential(authorization=None),  # type: ignore[arg-type]
    Credential(certificate=1, key=2),  # type: ignore[arg-type]
    Credential(authorization="Bearer s3cret\r\nX-Other: 1"),
    Credential(authorization="Bearer s3cret\n"),
]


class Source:
    """Raises an error or returns a value at each call."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def current(self) -> Credential:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        given: Credential = self.outcome
        return given

    async def renew(self, refused: Credential) -> Credential:
        return await self.current()


class Refused(Source):
    """Raises the error or returns the value after the first credential was refused."""

    async def current(self) -> Credential:
        return Credential()

    async def renew(self, refused: Credential) -> Credential:
        return await super().current()


class Renewed(RenewedCredentials):
    """Raises the error or returns the value in `fetch` of `RenewedCredentials`."""

    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.source = Source(outcome)

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        return await self.source.current(), None


class Hook(Source):
    """The hook of an ApiClient's configuration."""

    def transport(self, url: str) -> KubernetesTransport:
        async def hook(configuration: Configuration) -> None:
            await self.current()

        configuration = Configuration(host=url, api_key={"BearerToken": "unset"})
        configuration.refresh_api_key_hook = hook
        return KubernetesTransport(ApiClient(configuration))


def assert_silent(error: TransportError) -> None:
    """Check that no message, no cause and no local variable of our frames contains the secret."""
    assert [place for place, text in texts_of(error) if "s3cret" in text] == []
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.parametrize("outcome", [*RAISED, *GIVEN], ids=repr)
@pytest.mark.parametrize("kind", [Source, Renewed])
async def test_any_error_of_a_source_is_a_transport_error(server: Server, kind: Any, outcome: Any) -> None:
    async with HttpTransport(server.url, credentials=kind(outcome)) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.request(Request("/"))
    assert_silent(caught.value)
    assert server.requests == []
    if isinstance(outcome, ValueError):
        assert f"{kind.__name__} raised" in str(caught.value)
        assert "transport/test_credentials.py:" in str(caught.value)


@pytest.mark.parametrize("outcome", [*RAISED, *GIVEN], ids=repr)
async def test_failed_renewal_of_a_source_returns_the_401(server: Server, outcome: Any) -> None:
    server.answer = bearer_only
    async with HttpTransport(server.url, credentials=Refused(outcome)) as transport:
        response = await transport.request(Request("/"))
        assert response.status == 401
        await response.close()
    assert len(server.requests) == 1


@needs_async_hooks
@pytest.mark.parametrize("outcome", [each for each in RAISED if isinstance(each, Exception)], ids=repr)
async def test_failed_hook_is_a_transport_error(server: Server, outcome: Exception) -> None:
    transport = Hook(outcome).transport(server.url)
    with pytest.raises(TransportError, match=r"refresh_api_key_hook.*test_credentials\.py:") as caught:
        await transport.request(Request("/"))
    assert_silent(caught.value)
    await transport.api_client.close()
    await transport.aclose()


@pytest.mark.parametrize("outcome", [UsageError("log in again"), InformerStopped("log in again")])
async def test_own_errors_of_a_source_keep_their_message(server: Server, outcome: Exception) -> None:
    async with HttpTransport(server.url, credentials=Source(outcome)) as transport:
        with pytest.raises(TransportError, match="log in again"):
            await fetch(transport)


async def test_cancelled_request_is_not_a_failure_of_its_source(server: Server) -> None:
    class Slow(Source):
        async def current(self) -> Credential:
            await asyncio.Event().wait()
            raise AssertionError

    async with HttpTransport(server.url, credentials=Slow(None)) as transport:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await fetch(transport)
        waiting = asyncio.ensure_future(fetch(transport))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
