"""Informers of servers that differ from kube-apiserver, are behind a proxy, or are out of reach."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import Stale, TransportError
from aioinformer.factory import DynamicInformer
from aioinformer.informer.outages import duration
from aioinformer.reflector import Phase
from tests.support.cluster import Cluster
from tests.support.collection import PODS, Collection, Response, cut, line
from tests.support.recorder import Recorder, informer_of, states_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.reflector import ListOptions

pytestmark = pytest.mark.usefixtures("queue")


PAGES = RunOptions(streaming_list=False)


class Unversioned:
    """A `ListerWatcher` of pods without versions, which cannot be watched unless `watched`.

    Attributes:
        pods: name -> labels.
        requests: what was asked.
        watches: that are open.
    """

    def __init__(self, *, watched: bool = False) -> None:
        self.resource = PODS
        self.pods: dict[str, str] = {"a": "1"}
        self.requests: list[ListOptions] = []
        self.watches: list[Response] = []
        self._watched = watched

    def object(self, name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "default", "labels": {"cpu": self.pods[name]}}
        return {"kind": "Pod", "metadata": metadata}

    async def request(self, options: ListOptions) -> Response:
        await asyncio.sleep(0)
        self.requests.append(options)
        response = Response(405 if options.watch and not self._watched else 200)
        if not options.watch:
            response.feed(json.dumps({"kind": "PodMetrics", "metadata": {}, "items": self._items()}).encode())
        elif self._watched:
            self.watches.append(response)
            for name in self.pods:
                response.feed(line("ADDED", self.object(name)))
            return response
        response.end()
        return response

    def _items(self) -> list[dict[str, Any]]:
        return [self.object(name) for name in self.pods]


def notifications_of(informer: SharedIndexInformer[Any]) -> list[str]:
    """Record the notifications of an informer from now on."""
    received: list[str] = []
    informer.add_event_handler(
        on_add=lambda obj: received.append(f"add {obj.metadata.name}"),
        on_update=lambda old, new: received.append(f"update {new.metadata.name} {new.metadata.labels['cpu']}"),
        on_delete=lambda tombstone: received.append(f"delete {tombstone.key.removeprefix('default/')}"),
    )
    return received


async def test_list_without_versions_is_polled_and_compared() -> None:
    pods = Unversioned()
    informer = SharedIndexInformer(pods, indexers={"cpu": lambda pod: [pod.metadata.labels["cpu"]]})
    states, received = states_of(informer), notifications_of(informer)
    async with informer:
        await asyncio.wait_for(informer.wait_for_sync(), 1)
        await settled()
        assert informer.state.phase is Phase.POLLING
        assert informer.state.healthy
        await asyncio.sleep(120)
        assert received == ["add a"]
        pods.pods |= {"a": "2", "b": "1"}
        await asyncio.sleep(61)
        assert informer.get_indexer().index_keys("cpu", "2") == ["default/a"]
        del pods.pods["a"]
        await asyncio.sleep(61)
        lists = sum(not request.watch for request in pods.requests)
        assert lists < 20
    assert received == ["add a", "update a 2", "add b", "delete a"]
    assert [state.partition(":")[0] for state in states] == ["syncing", "polling", "stopped"]


async def test_watch_without_versions_is_followed() -> None:
    pods = Unversioned(watched=True)
    informer = SharedIndexInformer(pods, options=PAGES)
    received = notifications_of(informer)
    async with informer:
        await settled()
        assert informer.state.phase is Phase.WATCHING
        pods.pods["a"] = "2"
        pods.watches[-1].feed(line("MODIFIED", pods.object("a")))
        await settled()
        assert received == ["add a", "update a 2"]
        del pods.pods["a"]
        pods.watches[-1].end(cut())
        await asyncio.sleep(2)
    assert received == ["add a", "update a 2", "delete a"]


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "pages"])
async def test_relist_adopts_another_form_of_the_same_version(streaming: bool) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(
        pods,
        indexers={"policy": lambda pod: [pod.spec.restart_policy or ""]},
        options=RunOptions(streaming_list=streaming),
    )
    recorder = Recorder()
    async with informer:
        await informer.wait_for_sync()
        informer.add_event_handler(recorder)
        await settled()
        pods.objects["default/a"]["spec"] = {
            "restartPolicy": "Never"
        }  # a default that the new release of the server adds
        pods.expire_watches()
        await asyncio.sleep(3)
        pod = informer.get_store().get_by_key("default/a")
        assert pod is not None
        assert (pod.spec.restart_policy, pod.metadata.resource_version) == ("Never", "1")
        assert informer.get_indexer().index_keys("policy", "Never") == ["default/a"]
    assert recorder.received == ["add! a 1", "add! b 2", "update a 1 1"]


async def test_watch_without_head_counts_as_open_after_10_s() -> None:
    states: list[str] = []
    async with informer_of("a", options=PAGES, states=states) as (pods, informer, _):
        await asyncio.sleep(5)
        pods.end_watches()
        pods.gate.clear()
        await asyncio.sleep(80)
        assert informer.state.phase is Phase.WATCHING
        requests = len(pods.requests)
        version = pods.put("a")
        pods.gate.set()
        await settled()
        assert informer.last_sync_resource_version == version
        assert len(pods.requests) == requests
    assert states == ["syncing", "watching", "stopped"]


async def test_short_outage_and_unserved_resource_are_not_logged(lines: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(3))
    async with SharedIndexInformer(pods), DynamicInformer(Collection("a")) as informer:
        await settled()
        informer.serve(False)
        await asyncio.sleep(600)
    assert lines() == []


# Versions that are not numbers.


def opaque(name: str, version: str) -> bytes:
    return line("MODIFIED", {"metadata": {"name": name, "namespace": "default", "resourceVersion": version}})


async def test_wait_for_an_opaque_version_ends_when_seen() -> None:
    pods = Collection("a")
    pods.objects["default/a"]["metadata"]["resourceVersion"] = "x-1"
    async with informer_of(pods, options=PAGES) as (_, informer, _):
        await asyncio.wait_for(informer.wait_for_resource_version("x-1"), 1)  # it is cached
        waiting = asyncio.ensure_future(informer.wait_for_resource_version("x-9"))
        await settled()
        assert not waiting.done()
        pods.send(opaque("a", "x-9") + opaque("b", "y") + opaque("a", "z"))
        await asyncio.wait_for(waiting, 1)
        await informer.wait_for_resource_version("x-9")  # a version that was seen
        pods.send(opaque("a", "later") + opaque("a", "latest"))
        await settled()
        await informer.wait_for_resource_version("later")


@pytest.mark.parametrize(("version", "hint"), [("x-9", "so only this version itself"), ("77", "the cache is at '1'")])
async def test_wait_for_an_unseen_version_has_a_clear_error(version: str, hint: str) -> None:
    async with informer_of("a", name="pods", options=PAGES) as (_, informer, _):
        begin = asyncio.get_running_loop().time()
        with pytest.raises(
            TimeoutError, match=f"pods: resource version '{version}' was not reached within 30.0 s"
        ) as error:
            await informer.wait_for_resource_version(version)
        assert hint in str(error.value)
        assert asyncio.get_running_loop().time() - begin == pytest.approx(30)
        with pytest.raises(TimeoutError, match="within 2 s"):
            await informer.wait_for_resource_version(version, timeout=2)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level("INFO", "aioinformer.informer")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "aioinformer.informer"]


class Lost(Cluster):
    """A server that can be switched off."""

    lost = True

    async def request(self, request: Any) -> Any:
        if self.lost:
            raise TransportError("api:6443 refused the connection")
        return await super().request(request)


async def test_factory_logs_an_outage_once_a_minute(lines: Callable[[], list[str]]) -> None:
    cluster = Lost()
    async with SharedInformerFactory(cluster) as factory:
        core = factory.core.v1
        for accessor in (core.pods, core.nodes, core.secrets, core.services):
            accessor.informer()
        factory.start()
        await asyncio.sleep(59)
        assert lines() == []
        await asyncio.sleep(182)
        assert len(lines()) == 4
        pattern = (
            r"informer factory: 4 of 4 informers \(informer of nodes, informer of pods, informer of secrets, …\) have "
            r"been failing for 3 min: api:6443 refused the connection; attempt \d+, next retry in \d+ s"
        )
        assert re.fullmatch(pattern, lines()[2])
        cluster.lost = False
        await asyncio.sleep(120)
        assert lines()[-1] == "informer factory: the outage is over after " + lines()[-1].rpartition(" after ")[2]
        count = len(lines())
        await asyncio.sleep(600)
        assert len(lines()) == count


async def test_single_informer_logs_its_outage(lines: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    for _ in range(100):
        pods.refuse(403, "Forbidden")
    async with SharedIndexInformer(pods):
        await asyncio.sleep(125)
    first, second = lines()
    assert re.fullmatch(r"informer of pods has been failing for 1 min: .*403.*; attempt \d, next retry in \d+ s", first)
    assert "for 2 min:" in second


async def test_watches_that_hang_after_regular_bookmarks_make_the_cache_stale() -> None:
    async with informer_of("a") as (pods, informer, received):
        for _ in range(3):
            await asyncio.sleep(60)
            pods.bookmark()
        pods.mute()
        pods.put("b")
        await asyncio.sleep(89)
        assert (informer.state.phase, informer.staleness()) == (Phase.WATCHING, 0)
        await asyncio.sleep(2)
        assert informer.state.phase is Phase.BACKING_OFF
        assert informer.staleness() == pytest.approx(90, abs=2)
        with pytest.raises(Stale):
            informer.check_fresh(60)
        await asyncio.sleep(90)  # the next watch is silent, too
        assert received == ["add! a 1", "add b 5"]
        assert informer.staleness() == pytest.approx(0, abs=2)
        assert not informer.state.healthy
        await asyncio.sleep(60)
        pods.unmute()
        pods.bookmark()
        await settled()
        assert (informer.state.phase, informer.staleness()) == (Phase.WATCHING, 0)


async def test_attempts_count_consecutive_delays() -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(3))
    informer = SharedIndexInformer(pods)
    async with informer:
        await settled()
        reflector = informer.reflectors()[""]
        assert reflector.attempts == 1
        assert reflector.retry_at is not None
        assert 0 < reflector.retry_at - asyncio.get_running_loop().time() < 2
        await asyncio.sleep(30)
        figures: tuple[object, ...] = (reflector.attempts, reflector.retry_at, reflector.next_retry)
        assert figures == (0, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.4, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_duration_format(seconds: float, text: str) -> None:
    assert duration(seconds) == text
