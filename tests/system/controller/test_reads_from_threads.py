"""What any thread may call is called from threads, while caches, queues, terms, slots and controllers change."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import traceback
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import DynamicInformers, HttpTransport, LeaderElectionOptions, SharedInformerFactory
from aioinformer.cache import ttl_store
from aioinformer.concurrency import discard
from aioinformer.controller import Controller, LeaderElection, Manager, Request, Retry, TerminalError, Watch
from aioinformer.errors import DecodeError
from aioinformer.leaderelection import LeadershipLost
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.resources import parse_field_selector, parse_label_selector
from aioinformer.ring import ControllerRing
from aioinformer.testing import StatusError
from aioinformer.workqueue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aioinformer import SharedIndexInformer
    from aioinformer.resources import LabelSelector
    from aioinformer.testing import ApiServer

SHORT = LeaderElectionOptions(lease_duration=3, renew_deadline=2.0, retry_period=0.05)
THREADS = 3
#: How long things change at least; longer on a busy machine, until the threads have made each call often.
SECONDS = 1.0
_OFTEN = 10


class Readers:
    """Threads that make calls, again and again, until the end of a block.

    Attributes:
        calls: name of each call -> how often it has returned.
        errors: what the calls have raised.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.errors: dict[str, str] = {}
        self._functions: dict[str, Callable[[], object]] = {}
        self._ended = threading.Event()

    def add(self, name: str, function: Callable[[], object], *allowed: type[Exception]) -> None:
        """Let the threads call a function, which may raise the given errors."""

        def call() -> None:
            with suppress(*allowed):
                function()

        self._functions[name] = call

    def check(self) -> None:
        """Check that no call has raised, and that each was made while things changed."""
        assert not self.errors, "\n".join(f"{name}: {text}" for name, text in self.errors.items())
        assert {name: count for name, count in self.calls.items() if count < _OFTEN} == {}

    def have_made_each_call(self) -> bool:
        """Return whether each call was made often."""
        return all(self.calls.get(name, 0) >= _OFTEN for name in self._functions)

    async def has_read(self) -> None:
        """Wait until the threads have read for some time, and made each call often."""
        await asyncio.sleep(SECONDS / 2)
        while not self.have_made_each_call():  # noqa: ASYNC110 - other threads make them
            await asyncio.sleep(0.05)

    def _read(self) -> None:
        while not self._ended.is_set():
            for name, function in self._functions.copy().items():
                try:
                    function()
                except Exception:
                    self.errors.setdefault(name, traceback.format_exc())
                self.calls[name] = self.calls.get(name, 0) + 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._read, name=f"reader {number}") for number in range(THREADS)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            yield
        finally:
            self._ended.set()
            sys.setswitchinterval(interval)
            for thread in threads:
                thread.join()


def config_map(number: int, round: int) -> dict[str, Any]:
    labels = {"app": "web", "round": str(round)}
    return {
        "metadata": {"name": f"m{number}", "namespace": f"n{number % 7}", "labels": labels},
        "data": {"round": str(round)},
    }


async def change(server: ApiServer, round: int) -> None:
    """Create, change and delete objects, some of which cannot be decoded by a program."""
    for number in range(20):
        obj, namespace = config_map(number, round), f"n{number % 7}"
        match (round + number) % 4:
            case 0:
                with suppress(StatusError):
                    server.delete("configmaps", f"m{number}", namespace)
            case _:
                with suppress(StatusError):
                    server.create("configmaps", obj)
                server.patch("configmaps", f"m{number}", {"data": {"round": str(round)}}, namespace)
        await asyncio.sleep(0)


def add_readers_of_manager(readers: Readers, manager: Manager, registry: CollectorRegistry, terms: list[Any]) -> None:
    readers.add("manager.snapshot()", lambda: json.dumps(manager.snapshot()))
    readers.add("manager.ready()", lambda: str(manager.ready()))
    readers.add("metrics", lambda: generate_latest(registry))
    readers.add("term.check()", lambda: [each.check() for each in terms[-1:]], LeadershipLost)
    readers.add("term.remaining", lambda: [each.remaining for each in terms[-1:]])


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    """Provide a server with seven namespaces."""
    for number in range(7):
        api_server.create("namespaces", {"metadata": {"name": f"n{number}"}})
    return api_server


@asynccontextmanager
async def other_member(server: ApiServer, ring: ControllerRing, controller: Controller[Any]) -> AsyncIterator[None]:
    async with Manager("other", [controller], client=server.url, ring=ring, grace=0.1):
        yield


@pytest.mark.parametrize("kind", ["leader", "ring", "ring by namespace", "neither"])
async def test_threads_read_a_manager_while_everything_changes(server: ApiServer, kind: str) -> None:
    by = "namespace" if kind.endswith("namespace") else "uid"
    options: dict[str, Any] = {"slots": 8, "options": SHORT, "by": by}
    how: dict[str, Any] = {}
    if kind.startswith("ring"):
        how = {"ring": ControllerRing("them", member="this", **options)}
    elif kind == "leader":
        how = {"leader_election": LeaderElection("them", options=SHORT)}
    registry, terms = CollectorRegistry(), list[Any]()
    manager = Manager("them", client=server.url, metrics=PrometheusMetrics(registry), grace=0.1, **how)

    async def reconcile(request: Request[Any]) -> None:
        if request.term is not None:
            terms.append(request.term)
        match hash((request.name, len(terms))) % 5:
            case 0:
                raise Retry("again")
            case 1:
                raise TerminalError("parked")
            case 2:
                raise ValueError("failed")
            case 3:
                await request.client.core.v1.secrets.list(namespace="default")
        return

    watches = [Watch(core_v1.SECRETS, to=lambda obj: [])]
    manager.controller(core_v1.CONFIG_MAPS, name="maps", watches=watches)(reconcile)

    @manager.validate(core_v1.CONFIG_MAPS, reads=[core_v1.NAMESPACES])
    async def check(request: Any) -> None: ...

    async def reconcile_too(request: Request[Any]) -> None: ...

    readers = Readers()
    add_readers_of_manager(readers, manager, registry, terms)
    loop = asyncio.get_running_loop()
    with readers.reading():
        for life in range(2):
            async with manager:
                until, round = loop.time() + SECONDS / 2, 0
                terms.clear()
                while loop.time() < until or (how and not terms) or not readers.have_made_each_call():
                    round += 1
                    added = Controller("more", core_v1.SECRETS, reconcile_too)
                    await manager.add(added)
                    await change(server, round)
                    if kind.startswith("ring") and round % 8 == 0:
                        ring = ControllerRing("them", member=f"other-{life}-{round}", **options)
                        async with other_member(server, ring, Controller("maps", core_v1.CONFIG_MAPS, reconcile)):
                            await change(server, round)
                            await asyncio.sleep(0.5)
                    if kind == "leader" and round % 8 == 0:
                        stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}}
                        with suppress(StatusError):
                            server.patch("leases", "them", stolen, "default")
                    await asyncio.sleep(0.01)
                    await manager.remove(added)
    readers.check()


def add_readers_of_informer(readers: Readers, informer: SharedIndexInformer[Any]) -> None:
    lister, store = informer.lister(), informer.get_indexer()

    def progress() -> list[Any]:
        found = list(informer.reflectors().values())
        return [(each.next_retry, each.progress, each.state) for each in found]

    for function in (informer.snapshot, informer.statistics, informer.undecodable, informer.staleness, progress):
        readers.add(f"{informer.name}: {function.__name__}", function)
    readers.add(f"{informer.name}: list()", lambda: list(map(str, lister.list("app=web"))), DecodeError)
    readers.add(f"{informer.name}: get_by_key()", lambda: list(map(store.get_by_key, store.list_keys())), DecodeError)


def refuse_some(raw: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(raw)
    if document.get("data", {}).get("round", "0").endswith("3"):
        raise ValueError("odd")
    return document


@pytest.mark.parametrize("storage", ["bytes", "compressed", "metadata"])
async def test_threads_read_informers_and_queues_while_they_change(server: ApiServer, storage: Any) -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    readers, loop = Readers(), asyncio.get_running_loop()
    queue: WorkQueue[str] = WorkQueue(name="them", metrics=metrics)

    async def work() -> None:
        async for item in queue:
            await asyncio.sleep(0)
            if len(item) % 2:
                queue.add(item + ".")

    async with (
        HttpTransport(server.url) as transport,
        SharedInformerFactory(transport, metrics=metrics) as factory,
        DynamicInformers(transport, metrics=metrics) as dynamic,
    ):
        informer = factory.informer_for(core_v1.CONFIG_MAPS, storage=storage)
        informer.add_indexers({"round": lambda obj: [obj.metadata.labels["round"]]})
        store = informer.get_indexer()
        informer.add_event_handler(on_add=lambda obj: None, on_update=lambda old, new: None)
        picky = factory.informer_for(core_v1.CONFIG_MAPS, decoder=refuse_some, namespace="n1")
        several = await dynamic.informer("secrets")
        factory.start()
        worker = asyncio.create_task(work(), name="worker")
        readers.add("factory.snapshot()", lambda: json.dumps(factory.snapshot()))
        readers.add("dynamic.snapshot()", lambda: json.dumps(dynamic.snapshot()))
        readers.add("metrics", lambda: generate_latest(registry))
        readers.add("queue.statistics()", queue.statistics)
        for each in (informer, picky, several):
            add_readers_of_informer(readers, each)
        readers.add(
            "by_index()", lambda: [store.by_index("round", value) for value in store.list_index_func_values("round")]
        )
        with readers.reading():
            until, round = loop.time() + SECONDS / 2, 0
            while loop.time() < until or not readers.have_made_each_call():
                round += 1
                await change(server, round)
                queue.add("item" * (round % 5))
                if round % 10 == 0:
                    async with server.fault("outage"):
                        await asyncio.sleep(0.05)
                await asyncio.sleep(0.01)
        queue.shut_down()
        await worker
    readers.check()


@pytest.mark.parametrize("ttl", [1e-6, 1e-4, 0.0])
async def test_threads_use_a_store_whose_entries_expire(ttl: float) -> None:
    store = ttl_store(ttl)
    objects = [{"metadata": {"name": f"m{number}", "namespace": "n"}} for number in range(50)]

    def change() -> None:
        for obj in objects:
            store.add(obj)
        store.update(objects[0])
        store.delete(objects[1])

    def read() -> None:
        for key in store.list_keys():
            assert store.get_by_key(key) in (None, *objects)
        assert len(store.list()) <= len(objects)
        assert len(store) <= len(objects)

    readers = Readers()
    readers.add("add(), update(), delete()", change)
    readers.add("list_keys(), get_by_key(), list(), len()", read)
    readers.add("replace()", lambda: store.replace(objects[:20]))
    with readers.reading():
        await readers.has_read()
    readers.check()


def add_readers_of_selectors(readers: Readers) -> None:
    """Let the threads use the same selectors, and make new ones, which compute their parts at the first use."""
    text = "app=web,tier in (a,b),age>3,!old"
    selector, fields = parse_label_selector(text), parse_field_selector("metadata.name=m1,status.phase!=Done")
    labels = {"app": "web", "tier": "b", "age": "4"}
    fresh: dict[str, LabelSelector] = {}

    def match(selector: LabelSelector) -> None:
        assert selector.matches(labels)
        assert not selector.matches({**labels, "old": ""})
        assert (str(selector), hash(selector)) == (str(parse_label_selector(text)), hash(parse_label_selector(text)))

    def match_fresh() -> None:
        fresh["last"] = parse_label_selector(text)
        match(fresh["last"])

    def match_fields() -> None:
        assert fields.matches({"metadata.name": "m1", "status.phase": "Running"}.__getitem__)
        assert fields == parse_field_selector(str(fields))

    readers.add("selector of all threads", lambda: match(selector))
    readers.add("selector of a moment", match_fresh)
    readers.add("selector of fields", match_fields)


async def test_threads_use_selectors_and_discard() -> None:
    loop, left = asyncio.get_running_loop(), WeakSet[Config]()
    readers, discarded = Readers(), count()
    add_readers_of_selectors(readers)

    def discard_some() -> None:
        if next(discarded) % 20 == 0:  # the loop frees what the threads make
            items = {str(number): Config() for number in range(100)}
            left.update(items.values())
            discard(loop, items)

    readers.add("discard()", discard_some)
    with readers.reading():
        await readers.has_read()
    readers.check()
    while left:  # noqa: ASYNC110 - the loop frees a slice in each turn
        await asyncio.sleep(0)


class Config:
    """Something that a cache has had."""
