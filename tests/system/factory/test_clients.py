"""Factories in services: the clients that users pass, and crashes of informers."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api

from aioinformer import (
    Client,
    DynamicInformers,
    HttpTransport,
    LeaderElector,
    ListWatch,
    SharedIndexInformer,
    SharedInformerFactory,
    connect,
)
from aioinformer.errors import UsageError
from aioinformer.events import CoreEventSink
from aioinformer.leaderelection import LeaseCandidate
from aioinformer.reflector import Phase
from aioinformer.resources import Discovery
from aioinformer.testing import ApiServer
from aioinformer.transport import TLS, Connection, FixedCredentials
from aioinformer.transport.auth.api_client import Access
from aioinformer.transport.auth.secret import PrivateHeaders
from tests.support.cluster import Cluster, built_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


PODS = built_in("v1/pods")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


def access(url: str) -> Access:
    """Return the access to a server without authentication."""
    return Access(url, TLS(), FixedCredentials(), False, PrivateHeaders())


class Sync:
    """The client of the synchronous package `kubernetes`."""

    def call_api(self) -> None: ...


Sync.__module__ = "kubernetes.client.api_client"

NEITHER: list[tuple[Any, str]] = [
    (None, "not None"),
    (5, "not int"),
    (HttpTransport, "not the class HttpTransport; make an instance of it"),
    (SimpleNamespace(api_client=1), "not SimpleNamespace; pass its api_client"),
    (Client(HttpTransport("http://127.0.0.1:1")), "not a Client; pass its transport"),
    (Sync(), "the client of the package kubernetes is synchronous"),
]

TAKERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "factory": ("client", SharedInformerFactory),
    "dynamic": ("transport", DynamicInformers),
    "list-watch": ("transport", lambda client: ListWatch(client, PODS)),
    "elector": ("transport", lambda client: LeaderElector(client, "a")),
    "candidate": ("transport", lambda client: LeaseCandidate(client, "a", lease="b", binary_version="1.0.0")),
    "discovery": ("transport", Discovery),
    "sink": ("transport", CoreEventSink),
}


@pytest.mark.parametrize(("client", "message"), NEITHER, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("taker", TAKERS)
def test_invalid_client_raises_at_once(taker: str, client: Any, message: str) -> None:
    argument, take = TAKERS[taker]
    with pytest.raises(UsageError) as caught:
        take(client)
    assert str(caught.value).startswith(f"{argument}: expected a transport, a Connection of connect()")
    assert message in str(caught.value)


async def test_session_of_an_http_library_raises() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(UsageError, match=r"not a aiohttp ClientSession; for a session of aiohttp: HttpTransport"):
            SharedInformerFactory(session)  # type: ignore[arg-type]


def test_connect_without_await_raises() -> None:
    with pytest.raises(UsageError, match=r"client: connect\(\) was not awaited; write `await connect\(\)`"):
        SharedInformerFactory(connect())  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["localhost:8001", "~/.kube/config", "ftp://host", ""])
def test_invalid_url_raises(url: str) -> None:
    with pytest.raises(UsageError, match=r"client: a URL must begin with http:// or https://.*for a kubeconfig"):
        SharedInformerFactory(url)


@pytest.mark.parametrize("taker", sorted(TAKERS.keys() - {"factory", "dynamic"}))
async def test_objects_without_close_accept_no_url_or_api_client(taker: str) -> None:
    argument, take = TAKERS[taker]
    with pytest.raises(UsageError, match=f"{argument}: make a transport of the URL, and close it"):
        take("http://127.0.0.1:1")
    async with ApiClient(Configuration(host="http://127.0.0.1:1")) as api:
        with pytest.raises(UsageError, match=f"{argument}: make a transport of the ApiClient, and close it"):
            take(api)
        with pytest.raises(UsageError, match="pass its api_client"):
            take(CoreV1Api(api))


@pytest.mark.parametrize("taker", TAKERS)
async def test_connection_is_accepted_for_its_transport(taker: str) -> None:
    _, take = TAKERS[taker]
    async with Connection(access("http://127.0.0.1:1"), "default", "") as connection:
        take(connection)


@pytest.mark.parametrize("make", [SharedInformerFactory, DynamicInformers])
async def test_transport_made_for_a_url_is_closed(
    make: type[SharedInformerFactory] | type[DynamicInformers], server: ApiServer
) -> None:
    owner = make(server.url)
    if isinstance(owner, SharedInformerFactory):
        owner.core.v1.namespaces.informer()
    else:
        await owner.informer("v1/namespaces")
    async with owner:
        assert await owner.wait_for_cache_sync(10) == {"v1/namespaces": True}
        transport: Any = owner._builder.client.transport
        session = transport._session
        assert not session.closed
    assert session.closed


async def test_factory_does_not_close_the_users_connection(server: ApiServer) -> None:
    async with Connection(access(server.url), "default", "") as connection:
        for _ in range(2):
            async with SharedInformerFactory(connection) as factory:
                namespaces = factory.core.v1.namespaces.lister()
                assert await factory.wait_for_cache_sync(10)
                assert namespaces.get("default").metadata.name == "default"


async def test_wrapped_transport_is_used() -> None:
    class Around(Cluster):
        transport = None

    around = Around()
    async with SharedInformerFactory(around) as factory:
        factory.core.v1.pods.informer()
        await factory.wait_for_cache_sync(10)
    assert around.paths() == ["/api/v1/pods"]


@pytest.mark.parametrize(
    ("given", "kind"),
    [(None, "None"), (Cluster(), "Cluster"), ("http://host", "str"), (ListWatch, "the class ListWatch")],
)
def test_object_that_cannot_list_and_watch_raises(given: Any, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"lister_watcher: expected .* ListWatch\(transport, resource\), not {kind};"):
        SharedIndexInformer(given)


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
            await asyncio.wait_for(serve(), 50)
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
            await asyncio.wait_for(crashed.wait(), 50)
            assert not factory.is_ready()
            await maps.wait_for(server.create("configmaps", {"metadata": {"name": "later"}}, "default"))
            assert factory.unready() == {"v1/pods": "stopped: crashed: Broken"}
    assert "informer of pods crashed; the other informers of the informer factory go on" in caplog.text
