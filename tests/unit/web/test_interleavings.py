"""Any interleaving of changes, reads, lost connections and rights: a client's copy ends as what its user may see."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.resources import parse_label_selector
from aioinformer.web import Opened, StreamCore
from tests.support.collection import Collection
from tests.support.limits import cut_readers_after, limit_hubs
from tests.support.virtual_time import VirtualTimeLoop, settled
from tests.unit.web.service import Rights, Service, asked
from tests.unit.web.sse import Client

NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"app": "db"})
SELECTORS = ("", "app=web", "app!=web")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.sampled_from(LABELS)),
        st.tuples(st.just("delete"), st.sampled_from(NAMESPACES), st.sampled_from(NAMES)),
        st.tuples(st.just("read"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("lose"), st.integers(0, 1), st.integers(0, 200)),
        st.tuples(st.just("revoke"), st.sampled_from(NAMESPACES)),
        st.tuples(st.just("grant"), st.sampled_from(NAMESPACES)),
    ),
    max_size=40,
)


class Page:
    """A page of a browser, which connects again after each lost connection."""

    def __init__(self, core: StreamCore, pods: Collection, who: Rights, selector: str) -> None:
        self.core = core
        self.pods = pods
        self.who = who
        self.selector = selector
        self.client = Client()
        self.stream: Opened | None = None
        self.allowed: set[str] = set()

    def visible(self) -> dict[str, str]:
        matches = parse_label_selector(self.selector).matches
        return {
            key: obj["metadata"]["resourceVersion"]
            for key, obj in self.pods.objects.items()
            if ("ann", "pods", obj["metadata"]["namespace"]) in self.who.rights
            and matches(obj["metadata"].get("labels", {}))
        }

    def notice(self) -> None:
        self.allowed |= self.visible().keys()

    async def connect(self) -> None:
        if self.stream is None:
            self.client.lose()
            after = self.client.cursor
            answer = await asked(self.core, "ann", after=after, namespace="a|b", selector=self.selector)
            if isinstance(answer, Opened):
                self.stream = answer
            else:  # a page shows nothing then
                assert answer.status == 403
                self.client = Client()

    async def read(self, chunks: int, cut: int | None = None) -> None:
        """Read some chunks; lose the connection in the middle of the last one if `cut` says where."""
        await self.connect()
        try:
            async with asyncio.timeout(0.5):
                while self.stream is not None and chunks:
                    chunk = await anext(self.stream)
                    chunks -= 1
                    self.client.feed(chunk if cut is None or chunks else chunk[:cut])
        except TimeoutError:
            pass
        except StopAsyncIteration:
            await self.lose()
        for line in self.client.take():
            kind, _, name = line.partition(" ")
            if kind in ("put", "delete"):
                assert name in self.allowed, f"{name} was told, and was never visible"

    async def lose(self) -> None:
        if self.stream is not None:
            await self.stream.aclose()
            self.stream = None


@given(STEPS, st.sampled_from(SELECTORS), st.sampled_from([0, 900, 1 << 20]))
@settings(max_examples=150)
def test_client_ends_with_what_its_user_may_see(steps: list[Any], selector: str, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch, closing(VirtualTimeLoop()) as loop:
        limit_hubs(patch, batch=2, limit=limit)
        cut_readers_after(patch, 1e9)  # a page may read nothing for long
        loop.run_until_complete(_play(steps, selector))


async def _play(steps: list[Any], selector: str) -> None:
    who = Rights(("ann", "pods", "a"), ("ann", "pods", "b"))
    pods = Collection()
    async with Service(pods=pods) as service:
        core = service.core(who=who)
        pages = [Page(core, pods, who, selector), Page(core, pods, who, "")]
        for action, *arguments in steps:
            await _step(action, arguments, pods, who, pages)
            for page in pages:
                page.notice()
            await settled()
        for page in pages:
            await _catch_up(page)
            if page.stream is not None:
                assert page.client.copy.get("v1/pods", {}) == page.visible()
            await page.lose()
        assert core.open_streams == 0


async def _step(action: str, arguments: list[Any], pods: Collection, who: Rights, pages: list[Page]) -> None:
    if action == "put":
        namespace, name, labels = arguments
        pods.put(name, namespace, metadata={"labels": labels})
    elif action == "delete":
        if f"{arguments[0]}/{arguments[1]}" in pods.objects:
            pods.delete(arguments[1], arguments[0])
    elif action == "read":
        await pages[arguments[0]].read(arguments[1])
    elif action == "lose":
        await pages[arguments[0]].read(2, arguments[1])
        await pages[arguments[0]].lose()
    elif action == "grant":
        who.rights.add(("ann", "pods", arguments[0]))
    else:
        who.rights.discard(("ann", "pods", arguments[0]))
        await asyncio.sleep(who.ttl)


async def _catch_up(page: Page) -> None:
    before = page.client.synced
    await page.lose()
    for _ in range(20):
        await page.read(100)
        if page.client.synced > before or page.stream is None:
            return
    raise AssertionError("not synced within 20 reads")
