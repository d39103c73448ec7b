"""Informers of servers that differ from kube-apiserver, or are behind a proxy."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import Phase
from tests.support.collection import PODS, Collection, Response, cut, line
from tests.support.recorder import Recorder, states_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.reflector.options import ListOptions

pytestmark = pytest.mark.usefixtures("queue")

PAGES = ReflectorOptions(streaming_list=False)


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


async def test_lower_versions_are_delivered_without_a_list() -> None:
    pods = Collection("a", "b")
    pods.version = 100
    informer = SharedIndexInformer(pods, options=PAGES)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        for kind, name, version in (("MODIFIED", "a", 7), ("ADDED", "c", 3), ("DELETED", "b", 2)):
            pods.send(line(kind, {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}))
        await settled()
        assert sum(not request.watch for request in pods.requests) == 1
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/c"]
    assert recorder.received == ["add! a 1", "add! b 2", "update a 1 7", "add c 3", "delete b 2"]


@pytest.mark.parametrize("seconds", [0.7, 3.0, 60.0])
async def test_watches_cut_after_each_event_keep_the_cache_fresh(seconds: float) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    states, errors = states_of(informer), list[Exception]()
    informer.set_watch_error_handler(errors.append)
    async with informer:
        await informer.wait_for_sync()
        for _ in range(12):
            await asyncio.sleep(seconds)
            version = pods.put("a")
            await settled()
            assert informer.last_sync_resource_version == version
            pods.end_watches(cut())
    assert states == ["syncing", "watching", "stopped"]
    assert errors == []


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "pages"])
async def test_relist_adopts_another_form_of_the_same_version(streaming: bool) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(
        pods,
        indexers={"policy": lambda pod: [pod.spec.restart_policy or ""]},
        options=ReflectorOptions(streaming_list=streaming),
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
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
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


class HoldsBack(Collection):
    """A collection that sends the heads of its watches only after the gate opens."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.watches = asyncio.Event()

    async def request(self, options: ListOptions) -> Response:
        response = await super().request(options)
        if options.watch:
            await self.watches.wait()
        return response


async def test_first_watch_without_head_is_watching_after_10_s() -> None:
    pods = HoldsBack("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    async with informer:
        await asyncio.sleep(9.9)
        before = informer.state.phase
        await asyncio.sleep(0.2)
        assert [before, informer.state.phase] == [Phase.SYNCING, Phase.WATCHING]


async def test_missing_heads_are_retried_like_idle_watches() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(5)
        pods.gate.clear()
        pods.end_watches()
        await asyncio.sleep(1000)
        assert len(pods.requests) <= 6
    assert states == ["syncing", "watching", "stopped"]


# Versions that are not numbers.


def opaque(name: str, version: str) -> bytes:
    return line("MODIFIED", {"metadata": {"name": name, "namespace": "default", "resourceVersion": version}})


async def test_wait_for_an_opaque_version_ends_when_seen() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        waiting = asyncio.ensure_future(informer.wait_for_resource_version("x-9"))
        await settled()
        assert not waiting.done()
        pods.send(opaque("a", "x-9") + opaque("b", "y") + opaque("a", "z"))
        await asyncio.wait_for(waiting, 1)
        await informer.wait_for_resource_version("x-9")  # a version that was seen
        pods.send(opaque("a", "later") + opaque("a", "latest"))
        await settled()
        await informer.wait_for_resource_version("later")


async def test_cached_opaque_version_counts_as_seen() -> None:
    pods = Collection("a")
    pods.objects["default/a"]["metadata"]["resourceVersion"] = "x-1"
    informer = SharedIndexInformer(pods, options=PAGES)
    async with informer:
        await informer.wait_for_sync()
        await asyncio.wait_for(informer.wait_for_resource_version("x-1"), 1)


@pytest.mark.parametrize(("version", "hint"), [("x-9", "so only this version itself"), ("77", "the cache is at '1'")])
async def test_wait_for_an_unseen_version_has_a_clear_error(version: str, hint: str) -> None:
    informer = SharedIndexInformer(Collection("a"), name="pods", options=PAGES)
    async with informer:
        await informer.wait_for_sync()
        begin = asyncio.get_running_loop().time()
        with pytest.raises(
            TimeoutError, match=f"pods: resource version '{version}' was not reached within 30.0 s"
        ) as error:
            await informer.wait_for_resource_version(version)
        assert hint in str(error.value)
        assert asyncio.get_running_loop().time() - begin == pytest.approx(30)
        with pytest.raises(TimeoutError, match="within 2 s"):
            await informer.wait_for_resource_version(version, timeout=2)
