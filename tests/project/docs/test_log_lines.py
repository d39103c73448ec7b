"""Check that the quoted log lines and errors of the documentation are those of the code.

A quoted line must come from a scenario below, or match a format string of the code.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import re
import time
from difflib import SequenceMatcher
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import aiohttp

from aioinformer import HttpTransport, Resource, RunOptions, SharedInformerFactory, UsageError, connect
from aioinformer.factory.memory import InformerMemory
from aioinformer.reflector import Phase
from aioinformer.testing import ApiServer
from tests.project.docs.blocks import PROJECT, Block, in_language

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import pytest

#: A format string with fewer letters matches too much; some lines of these pages have short ones.
LETTERS = {"docs/troubleshooting.md": 16, "docs/diagnostics.md": 5, "docs/metrics.md": 5}
BLOCKS = [block for block in in_language("text") if block.page in LETTERS]


def lines_of(block: Block) -> list[str]:
    """Return the lines of a block; an indented line continues the one before it."""
    return re.sub(r"\n +", " ", block.code.strip()).splitlines()


def normal(line: str) -> str:
    """Return a line without what differs from run to run: addresses, functions, numbers."""
    line = re.sub(r"127\.0\.0\.1:\d+", "api:6443", line)
    line = re.sub(r"\(\S+ at \S+:\d+\)", "(on_add at app.py:31)", line)
    line = re.sub(r"\S+/\.kube/config", "~/.kube/config", line)
    return re.sub(r"\d+(\.\d+)?", "N", line)


@cache
def literals() -> list[str]:
    """Return the format strings of the package."""
    modules = [path for path in (PROJECT / "aioinformer").rglob("*.py") if "testing" not in path.parts]
    nodes = [node for path in modules for node in ast.walk(ast.parse(path.read_text()))]
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [string for string in strings if "%" in string]


def formats(letters: int) -> Iterator[re.Pattern[str]]:
    """Yield the format strings of the package that have at least so many letters, as patterns."""
    for string in literals():
        words = re.split(r"%(?:s|d|r|g|\.\d[fg])", string)
        if len(words) > 1 and sum(map(str.isalpha, "".join(words))) >= letters:
            yield re.compile(".+?".join(map(re.escape, words)))


POD = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main", "image": "example.com/web"}]}}


async def _fail(server: str | HttpTransport) -> None:
    """Start an informer, wait until it has failed, and wait in vain for its sync."""
    async with SharedInformerFactory(server) as factory:
        informer = factory.core.v1.pods.informer()
        factory.start()
        while informer.state.phase in (Phase.NEW, Phase.SYNCING):  # noqa: ASYNC110 - any of several phases
            await asyncio.sleep(0.01)
        await factory.wait_for_cache_sync(timeout=0.01)


async def _fault(name: str, **parameters: Any) -> None:
    async with ApiServer() as server, server.fault(name, **parameters):
        await _fail(server.url)


async def _untrusted() -> None:
    async with ApiServer(tls=True) as server:
        await _fail(server.url)


async def _forbidden() -> None:
    async with (
        ApiServer(authorization_mode="RBAC", tokens={"secret": "jane"}) as server,
        HttpTransport(server.url, token="secret") as transport,
    ):
        await _fail(transport)


async def _with_pod(
    add: Callable[[SharedInformerFactory], Any], wait: Callable[[], Awaitable[Any]] | None = None, **options: Any
) -> None:
    async with ApiServer() as server, SharedInformerFactory(server.url, **options) as factory:
        server.create("pods", POD)
        add(factory)
        await factory.wait_for_cache_sync()
        if wait is not None:
            await wait()


def by_node(pod: Any) -> list[str]:
    raise LookupError("no node")


async def _handlers() -> None:
    def blocks(pod: Any) -> None:
        time.sleep(0.2)

    def raises(pod: Any) -> None:
        raise LookupError("no node")

    called = asyncio.Event()

    async def stays(pod: Any) -> None:
        called.set()
        await asyncio.sleep(60)

    def add(factory: SharedInformerFactory) -> None:
        informer = factory.core.v1.pods.informer()
        informer.add_event_handler(on_add=blocks, resync_period=60.0)
        informer.add_event_handler(on_add=raises)
        informer.add_event_handler(on_add=stays)

    await _with_pod(add, called.wait, options=RunOptions(shutdown_grace=0.1))


async def _expired() -> None:
    async with ApiServer() as server, SharedInformerFactory(server.url) as factory:
        informer = factory.core.v1.pods.informer()
        await factory.wait_for_cache_sync()
        async with server.fault("expired", times=1):
            server.create("pods", POD)
            await informer.wait_for("default/web-0", lambda pod: pod is not None)


async def _full_pool() -> None:
    connector = aiohttp.TCPConnector(limit=1)
    warned = asyncio.Event()
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warned.set()  # type: ignore[method-assign]
    logging.getLogger("aioinformer.transport").addHandler(handler)
    async with (
        ApiServer() as server,
        aiohttp.ClientSession(connector=connector) as session,
        HttpTransport(server.url, session) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        factory.core.v1.pods.informer()
        factory.core.v1.services.informer()
        factory.start()
        await warned.wait()
    logging.getLogger("aioinformer.transport").removeHandler(handler)


async def _other_kind() -> None:
    gadgets, widgets = (Resource("example.com", "v1", "widgets", kind=kind) for kind in ("Gadget", "Widget"))
    async with ApiServer(extra_resources=[gadgets]) as server, SharedInformerFactory(server.url) as factory:
        server.create(gadgets, {"metadata": {"name": "a"}})
        informer = factory.for_resource(widgets).informer()
        factory.start()
        while informer.state.phase is not Phase.DEGRADED:  # noqa: ASYNC110 - a phase, not a change of the cache
            await asyncio.sleep(0.01)


async def _never_started() -> None:
    async with ApiServer() as server, SharedInformerFactory(server.url) as factory:
        factory.core.v1.pods.lister().list()


async def _unknown_option() -> None:
    async with SharedInformerFactory("http://127.0.0.1:1") as factory:
        factory.core.v1.pods.informer(indexer={})  # type: ignore[call-overload]


async def _other_options() -> None:
    async with SharedInformerFactory("http://127.0.0.1:1") as factory:
        factory.core.v1.pods.informer()
        factory.core.v1.pods.informer(storage="dict")


SCENARIOS: tuple[Callable[[], Awaitable[object]], ...] = (
    lambda: _fail("http://127.0.0.1:1"),
    *(_untrusted, _forbidden),
    *(partial(_fault, name) for name in ("unauthorized", "not_found", "method_not_allowed", "html", "server_error")),
    *(partial(_fault, name, retry_after=7) for name in ("throttle", "unavailable")),
    lambda: _with_pod(lambda factory: factory.core.v1.pods.informer(), transform=lambda pod: 1 / 0),
    lambda: _with_pod(lambda factory: factory.core.v1.pods.informer(indexers={"node": by_node})),
    *(_handlers, _expired, _full_pool, _other_kind, connect, _never_started, _unknown_option, _other_options),
)

MEMORY = InformerMemory(
    resource="v1/secrets",
    storage="bytes",
    objects=33_000,
    bytes=213_000_000,
    index_bytes=1_000_000,
    unread=31_680,
    metadata_bytes=8_000_000,
)


async def test_quoted_lines_are_real(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    caplog.set_level(logging.INFO, "aioinformer")
    errors = [await _error_of(scenario) for scenario in SCENARIOS]
    real = {normal(line) for line in (*errors, *caplog.messages, str(MEMORY))}
    patterns = {page: list(formats(letters)) for page, letters in LETTERS.items()}
    unreal = [
        f"{block}: {line}\n  the closest that is real: {_closest(line, real)}"
        for block in BLOCKS
        for line in lines_of(block)
        if normal(line) not in real and not any(pattern.fullmatch(line) for pattern in patterns[block.page])
    ]
    assert unreal == [], "\n".join(unreal)


def _closest(line: str, real: set[str]) -> str:
    return max([*real, *literals()], key=lambda each: SequenceMatcher(None, each, line).ratio())


async def _error_of(scenario: Callable[[], Awaitable[object]]) -> str:
    """Run a scenario, and return the error that it raises for the user of the package."""
    try:
        async with asyncio.timeout(200):
            await scenario()
    except UsageError as error:
        return str(error)
    return ""


def test_unknown_lines_do_not_match() -> None:
    patterns = [*formats(5)]
    assert len(patterns) > 40
    assert not any(pattern.fullmatch("informer of pods: handler 1 has taken a nap") for pattern in patterns)
    assert len([line for block in BLOCKS for line in lines_of(block)]) > 20


def test_page_explains_every_phase() -> None:
    page = (PROJECT / "docs" / "troubleshooting.md").read_text()
    assert [phase for phase in Phase if f"`{phase}`" not in page] == []
