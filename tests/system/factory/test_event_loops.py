"""Other event loops: uvloop, and task factories, also `asyncio.eager_task_factory` of Python 3.12."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import ssl
import sys
import time
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

import aioinformer
from aioinformer import ApiError, Client, HttpTransport, LeaderElector, ListWatch, SharedInformerFactory, connect
from aioinformer.concurrency import Root, TaskGroup, create_task
from aioinformer.controller import LeaderElection, Manager, Request
from aioinformer.errors import Invalid, UsageError
from aioinformer.events import CoreEventSink, EventBroadcaster
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from aioinformer.transport import Credential, HttpRequest
from aioinformer.transport.auth.tokens import RenewedCredentials
from aioinformer.webhooks import AdmissionRequest, Denied, WebhookServer
from aioinformer.workqueue import WorkQueue
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from aioinformer.leaderelection import Term


def plain(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coro, loop=loop, **options)


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "uvloop":
        import uvloop

        return uvloop.new_event_loop()
    loop = asyncio.new_event_loop()
    factories: Any = asyncio
    loop.set_task_factory(plain if kind == "plain" else factories.eager_task_factory)
    return loop


eager = pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio.eager_task_factory is new in Python 3.12")
fast = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop does not support this system")


@pytest.fixture(params=["plain", pytest.param("eager", marks=eager), pytest.param("uvloop", marks=fast)])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Return a function that runs a coroutine on a loop with a task factory, or on uvloop."""

    async def bounded(main: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(50):
            return await main

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=lambda: new_loop(request.param)) as runner:
            return runner.run(bounded(main))

    return run


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def test_informers_of_a_factory_follow_changes(run: Any) -> None:
    async def main() -> None:
        seen: asyncio.Queue[str] = asyncio.Queue()

        async def on_add(obj: Any) -> None:
            seen.put_nowait(f"added {obj.metadata.name}")

        async with ApiServer() as server, HttpTransport(server.url) as transport:
            server.create("configmaps", config_map("a"))
            async with SharedInformerFactory(transport) as factory:
                informer = factory.core.v1.configmaps.informer()
                informer.add_event_handler(on_add=on_add, on_delete=lambda obj: seen.put_nowait("deleted"))
                factory.start()
                await factory.wait_for_cache_sync()
                informer.add_event_handler(on_add=on_add)
                server.create("configmaps", config_map("b"))
                assert sorted([await seen.get() for _ in range(4)]) == ["added a"] * 2 + ["added b"] * 2
                async with server.fault("outage"):
                    await asyncio.sleep(0)
                server.delete("configmaps", "a", "default")
                assert await seen.get() == "deleted"

    run(main())


def test_namespaces_can_be_added_and_removed(run: Any) -> None:
    async def main() -> None:
        async with ApiServer() as server, HttpTransport(server.url) as transport:
            server.create("configmaps", config_map("a"))
            informer = MultiNamespaceInformer(lambda name: ListWatch(transport, core_v1.CONFIG_MAPS, name), ["shop"])
            async with informer:
                await informer.wait_for_sync()
                await informer.set_namespaces(["default"])
                await informer.wait_for("default/a", timeout=50)
                await informer.set_namespaces([])
                assert informer.lister().list() == []

    run(main())


def test_controller_of_an_elected_manager_reconciles(run: Any) -> None:
    async def main() -> None:
        async with ApiServer() as server:
            manager = Manager("shop", client=server.url, leader_election=LeaderElection("shop"))
            seen: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

            @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
            async def maps(request: Request[Any]) -> None:
                if request.object is not None and "done" not in (request.object.data or {}):
                    await request.client.core.v1.configmaps.patch(request.object, {"data": {"done": "yes"}})
                    return
                request.event("Done", "it is done")
                seen.put_nowait((request.name, asyncio.current_task()))

            async with manager:
                server.create("configmaps", config_map("a"))
                name, task = await seen.get()
            assert name == "a"
            assert task.done()
            assert [event["reason"] for event in server.list("events") if event["reason"] == "Done"] == ["Done"]

    run(main())


def test_manager_stops_in_order_at_a_signal(run: Any, unused_tcp_port: int) -> None:
    async def main() -> None:
        async with ApiServer() as server:
            manager = Manager("shop", client=server.url, health_port=unused_tcp_port, health_host="127.0.0.1")
            begun: asyncio.Queue[str] = asyncio.Queue()
            ended: list[str] = []

            @manager.controller(core_v1.CONFIG_MAPS)
            async def maps(request: Request[Any]) -> None:
                begun.put_nowait(request.name)
                await asyncio.sleep(0.1)
                ended.append(request.name)

            running = create_task(manager.run(signals=True), name="manager")
            server.create("configmaps", config_map("a"))
            assert await begun.get() == "a"
            async with aiohttp.ClientSession() as session:
                assert (await session.get(f"http://127.0.0.1:{unused_tcp_port}/readyz")).status == 200
            signal.raise_signal(signal.SIGTERM)
            await running
            assert ended == ["a"]
            assert manager.stop_report is not None
            assert manager.stop_report.reason == "signal SIGTERM"

    run(main())


def test_webhooks_of_a_manager_judge_writes(run: Any) -> None:
    async def main() -> None:
        async with ApiServer() as server, HttpTransport(server.url) as transport:
            ours = WebhookServer("maps", "default", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
            manager = Manager("maps", client=transport, webhooks=ours)
            seen: list[str] = []

            @manager.validate(core_v1.CONFIG_MAPS)
            async def check(request: AdmissionRequest[core_v1.ConfigMap]) -> None:
                seen.append(str(request.object.metadata.name))
                if "bad" in (request.object.data or {}):
                    raise Denied("it is bad")

            rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            maps = Client(transport, namespace="default").resource(core_v1.CONFIG_MAPS)
            dry = Client(transport, namespace="default", dry_run=True, retry=False).resource(core_v1.CONFIG_MAPS)
            async with manager:
                url = f"https://127.0.0.1:{manager.admission.port}/validate/configmaps"
                hook = webhook("maps", {"url": url}, rules=[rule])
                body = configuration("ValidatingWebhookConfiguration", hook, name=ours.configuration)
                server.create("validatingwebhookconfigurations", body)
                while not seen:
                    with suppress(ApiError):  # the manager has not entered its CA yet
                        await dry.create(config_map("probe"))
                    await asyncio.sleep(0.05)
                await maps.create(config_map("good"))
                with pytest.raises(Invalid, match="it is bad"):
                    await maps.create(config_map("bad", bad="yes"))
            assert seen[-2:] == ["good", "bad"]

    run(main())


def test_elector_leads_and_hands_over(run: Any) -> None:
    async def main() -> None:
        async with ApiServer() as server, HttpTransport(server.url) as transport:

            async def work(term: Term) -> None:
                term.check()

            for identity in ("one", "two"):
                elector = LeaderElector(transport, "lock", identity=identity)
                async with elector.leading() as term:
                    await work(term)
            assert server.get("leases", "lock", "default")["spec"]["leaseTransitions"] >= 1

    run(main())


def test_recorded_events_are_written(run: Any) -> None:
    async def main() -> None:
        async with ApiServer() as server, HttpTransport(server.url) as transport:
            server.create("configmaps", config_map("a"))
            obj = await Client(transport).core.v1.configmaps.get("default/a")
            heard: list[str] = []
            async with EventBroadcaster() as broadcaster:
                broadcaster.start_recording_to_sink(CoreEventSink(transport))
                broadcaster.start_event_watcher(lambda event: heard.append(event.name))
                broadcaster.new_recorder("tests").event(obj, "Normal", "Seen", "it was seen")
            assert [event["reason"] for event in server.list("events")] == ["Seen"]
            assert len(heard) == 1

    run(main())


def test_token_that_is_fetched_without_a_wait_is_renewed_each_time(run: Any) -> None:
    class Counted(RenewedCredentials):
        fetched = 0

        async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
            self.fetched += 1
            return Credential(f"Bearer {self.fetched}"), None

    async def main() -> None:
        credentials = Counted(pause=0)
        current = await credentials.current()
        for _ in range(3):
            current = await credentials.renew(current)
        assert credentials.fetched == 4

    run(main())


def test_task_begins_after_its_creator_has_it(run: Any) -> None:
    async def main() -> None:
        steps: list[str] = []

        async def step(name: str) -> None:
            steps.append(name)

        create_task(step("single"), name="single")
        async with TaskGroup() as tasks:
            tasks.create_task(step("in a group"))
            tasks.create_task(Root(step("root")), name="root")
            steps.append("creator")
        assert steps == ["creator", "single", "in a group", "root"]

    run(main())


def test_task_that_is_cancelled_at_once_never_begins(run: Any) -> None:
    async def main() -> None:
        begun: list[str] = []

        async def begin() -> None:
            begun.append("begun")

        tasks = [create_task(begin(), name="a"), create_task(Root(begin()), name="b")]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert (begun, [task.cancelled() for task in tasks]) == ([], [True, True])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main())
        gc.collect()
    assert [str(each.message) for each in caught if "never awaited" in str(each.message)] == []


def test_generator_exit_of_a_user_reaches_the_body_of_a_root(run: Any) -> None:
    async def main() -> None:
        failed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, failed.set_exception, GeneratorExit())
        caught: list[BaseException | None] = []

        async def body() -> None:
            try:
                await failed
            except RuntimeError as error:
                caught.append(error.__cause__)
            await asyncio.sleep(0)

        await create_task(Root(body()), name="root")
        assert [type(each) for each in caught] == [GeneratorExit]

    run(main())


async def wait_after_a_slice() -> str:
    queue = WorkQueue[str]()
    time.sleep(0.001)  # noqa: ASYNC251 - the machine was busy with something else
    return await queue.get()


#: What may come first in a program. What starts a task is tested with the informer.
BEGINNINGS: dict[str, Callable[[], Awaitable[Any]]] = {
    "connect() looks for a cluster": lambda: connect(kubeconfig="config"),
    "a request is sent": lambda: HttpTransport("http://127.0.0.1:1").request(HttpRequest("/")),
    "a list is read": lambda: Client(HttpTransport("http://127.0.0.1:1")).core.v1.pods.list(),
    "a worker waits for an item": wait_after_a_slice,
    "an API server for tests starts": lambda: ApiServer().__aenter__(),
}


@pytest.mark.parametrize("what", BEGINNINGS)
def test_another_async_library_is_refused_by_name(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As trio, curio and others register themselves.
    monkeypatch.setitem(sys.modules, "sniffio", SimpleNamespace(current_async_library=lambda: "trio"))

    async def begin() -> None:
        await BEGINNINGS[what]()

    coroutine = begin()
    try:
        with pytest.raises(UsageError, match=rf"^{re.escape(what)} .* and this is trio: run the program with asyncio"):
            coroutine.send(None)
    finally:
        coroutine.close()


def test_all_tasks_of_the_package_are_created_in_one_place() -> None:
    direct = re.compile(r"asyncio\.(create_task|ensure_future|TaskGroup|Task)\(|loop(\(\))?\.create_task\(")
    package = Path(aioinformer.__file__).parent
    found = {path.name for path in package.rglob("*.py") if direct.search(path.read_text())}
    assert found == {"concurrency.py"}, "use create_task and TaskGroup of aioinformer.concurrency"


async def follow(server: ApiServer, transport: HttpTransport) -> None:
    """Follow objects through creation, many fast changes, an outage and deletion."""
    seen: list[str] = []
    gone = asyncio.Event()

    async def on_update(old: Any, new: Any) -> None:
        seen.append(new.data["turn"])

    server.create("configmaps", {"metadata": {"name": "a"}, "data": {"turn": "0"}}, "default")
    async with SharedInformerFactory(transport) as factory:
        informer = factory.core.v1.configmaps.informer()
        informer.add_event_handler(on_update=on_update, on_delete=lambda obj: gone.set())
        await factory.wait_for_cache_sync()
        for turn in range(1, 201):
            server.patch("configmaps", "a", {"data": {"turn": str(turn)}}, "default")
            if turn % 20 == 0:
                await asyncio.sleep(0)
        async with server.fault("outage"):
            await asyncio.sleep(0)
        server.delete("configmaps", "a", "default")
        async with asyncio.timeout(50):
            await gone.wait()
        assert informer.lister().list() == []
    assert seen == sorted(seen, key=int)


@pytest.mark.parametrize("tls", [False, True])
def test_informer_follows_many_fast_changes(run: Any, tls: bool) -> None:
    async def main() -> None:
        async with ApiServer(tls=tls) as server:
            trusting = ssl.create_default_context(cadata=server.certificate_authority.decode()) if tls else None
            async with HttpTransport(server.url, ssl=trusting) as transport:
                await follow(server, transport)

    run(main())
