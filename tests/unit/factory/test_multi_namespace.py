"""MultiNamespaceInformer: namespaces are added and removed, with either queue."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from aioinformer import ListWatch, RunOptions
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.reflector import Phase
from tests.support.cluster import Cluster, built_in
from tests.support.collection import PODS, Collection, Response
from tests.support.queues import QUEUES
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import SharedIndexInformer
    from aioinformer.informer import QueueName


#: Yield to the loop as often as possible.
PLAIN = RunOptions()


class Namespaces(dict[str, Collection]):
    """A collection of pods for each namespace, and informers of them with a recorder."""

    def __init__(self, queue: QueueName = "delta") -> None:
        super().__init__()
        self.queue = queue
        self.recorder = Recorder()

    def __missing__(self, namespace: str) -> Collection:
        return self.setdefault(namespace, Collection())

    def having(self, **pods: str) -> Namespaces:
        for namespace, names in pods.items():
            for name in names.split():
                self.put(name, namespace)
        return self

    def put(self, name: str, namespace: str) -> None:
        collection = self[namespace]
        # Versions are the server's, not the namespace's.
        collection.version = max(each.version for each in self.values())
        collection.put(name, namespace)

    def informer(self, *namespaces: str, options: RunOptions = PLAIN, **more: Any) -> MultiNamespaceInformer[Any]:
        return MultiNamespaceInformer(self.__getitem__, namespaces, options=replace(options, queue=self.queue), **more)

    @asynccontextmanager
    async def running(self, *namespaces: str, **options: Any) -> AsyncIterator[MultiNamespaceInformer[Any]]:
        """Run an informer with a recorder, and yield it after its sync."""
        informer = self.informer(*namespaces, **options)
        informer.add_event_handler(self.recorder)
        async with informer:
            await informer.wait_for_sync()
            await settled()
            yield informer


@pytest.fixture(params=QUEUES)
def server(request: pytest.FixtureRequest) -> Namespaces:
    return Namespaces(request.param)


def keys(informer: SharedIndexInformer[Any]) -> list[str]:
    return sorted(informer.get_store().list_keys())


async def test_namespaces_share_one_cache_and_lister(server: Namespaces) -> None:
    server.having(one="a b", two="a", three="c")
    async with server.running("one", "two") as informer:
        assert keys(informer) == ["one/a", "one/b", "two/a"]
        assert [pod.metadata.name for pod in informer.lister().namespaced("two").list()] == ["a"]
        server.put("b", "two")
        await settled()
        assert sorted(server.recorder.received) == ["add b 5", "add! a 1", "add! a 3", "add! b 2"]
    assert "three" not in informer.namespaces


async def test_informer_syncs_with_its_last_namespace(server: Namespaces) -> None:
    server.having(one="a", two="b")
    server["two"].gate.clear()
    informer = server.informer("one", "two")
    async with informer:
        await asyncio.sleep(1)
        assert keys(informer) == ["one/a"]
        assert not informer.has_synced()
        server["two"].gate.set()
        await informer.wait_for_sync()
        assert keys(informer) == ["one/a", "two/b"]


async def test_added_namespace_is_cached_and_delivered(server: Namespaces) -> None:
    server.having(one="a", two="b")
    async with server.running("one") as informer:
        server["two"].gate.clear()
        adding = [asyncio.create_task(informer.add_namespace("two")) for _ in range(2)]
        await settled()
        assert not any(task.done() for task in adding)
        server["two"].gate.set()
        await asyncio.gather(*adding)
        assert keys(informer) == ["one/a", "two/b"]
        await informer.add_namespace("two")
        server.put("c", "two")
        await settled()
    assert server.recorder.received == ["add! a 1", "add! b 2", "add c 3"]
    assert len(server["two"].requests) == len(server["one"].requests)


@pytest.mark.usefixtures("fine_slices")
async def test_concurrent_removals_all_wait_for_the_cache(server: Namespaces) -> None:
    server.having(one=" ".join(f"p{number}" for number in range(100)))
    async with server.running("one") as informer:
        removing = [asyncio.create_task(informer.remove_namespace("one")) for _ in range(2)]
        await removing[1]
        assert keys(informer) == []
        await removing[0]


@pytest.mark.usefixtures("fine_slices")
async def test_removed_namespace_is_delivered_as_deletes(server: Namespaces) -> None:
    server.having(one="a", two="b c")
    informer = server.informer("one", "two")
    slow = Recorder(pace=10)
    informer.add_event_handler(slow)
    async with informer:
        await informer.wait_for_sync()
        server.put("b", "two")
        await settled()
        await informer.remove_namespace("two")
        assert keys(informer) == ["one/a"]
        assert server["two"].open_watches == 0
        server.put("d", "two")
        await asyncio.sleep(100)
    assert sorted(slow.received[:3]) == ["add! a 1", "add! b 2", "add! c 3"]
    assert slow.received[3] == "update b 2 4"
    assert sorted(slow.received[4:]) == ["tombstone b 4", "tombstone c 3"]


async def test_removed_namespace_may_be_added_again(server: Namespaces) -> None:
    server.having(one="a")
    async with server.running("one") as informer:
        await informer.set_namespaces([])
        assert keys(informer) == []
        await informer.set_namespaces(["one", "two"])
        assert keys(informer) == ["one/a"]
        assert informer.namespaces == {"one", "two"}
        await settled()
    assert server.recorder.received == ["add! a 1", "tombstone a 1", "add! a 1"]


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.parametrize("turns", range(0, 40, 2))
async def test_handler_added_during_a_removal_gets_valid_history(server: Namespaces, turns: int) -> None:
    server.having(one="a", two=" ".join(f"p{number}" for number in range(100)))
    informer = server.informer("one", "two")
    async with informer:
        await informer.wait_for_sync()
        removal = asyncio.create_task(informer.remove_namespace("two"))
        for _ in range(turns):
            await asyncio.sleep(0)
        late = Recorder()
        informer.add_event_handler(late)
        await removal
        await settled()
    seen: set[str] = set()
    for words in late.received:
        what, name, _ = words.split()
        assert (what == "add!") == (name not in seen)
        (seen.add if what == "add!" else seen.remove)(name)
    assert seen == {"a"}


async def test_relist_of_one_namespace_keeps_the_others(server: Namespaces) -> None:
    server.having(one="a b", two="c")
    async with server.running("one", "two") as informer:
        await asyncio.sleep(2)
        server["one"].end_watches()
        server["one"].delete("a", "one")
        server["one"].unseen()
        await asyncio.sleep(30)
        assert keys(informer) == ["one/b", "two/c"]
    assert server.recorder.received[3:] == ["tombstone a 1"]


@pytest.mark.usefixtures("fine_slices")
async def test_in_order_relist_is_visible_at_once_beside_others() -> None:
    server = Namespaces("in_order").having(one=" ".join(f"p{number}" for number in range(200)), two="c")
    informer = server.informer("one", "two")
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(2)
        server["one"].end_watches()
        for number in range(200):
            server["one"].delete(f"p{number}", "one")
        server.put("late", "one")
        server["one"].unseen()
        server["one"].gate.clear()
        await asyncio.sleep(30)
        server["one"].gate.set()
        sizes = set()
        changed = asyncio.create_task(informer.wait_for("one/late"))
        number = 0
        while not changed.done():
            await asyncio.sleep(0)
            server.put(f"q{(number := number + 1)}", "two")
            sizes.add(sum(key.startswith("one/") for key in keys(informer)))
        await settled()
        assert len([key for key in keys(informer) if key.startswith("two/")]) == number + 1
    assert sizes == {200, 1}


async def test_failing_lister_watcher_changes_nothing(server: Namespaces) -> None:
    server.having(one="a", two="b")
    refused = {"two"}

    def lister_watcher_for(namespace: str) -> Collection:
        if namespace in refused:
            raise ZeroDivisionError
        return server[namespace]

    informer = MultiNamespaceInformer(lister_watcher_for, ["one"], options=RunOptions(queue=server.queue))
    async with informer:
        await informer.wait_for_sync()
        with pytest.raises(ZeroDivisionError):
            await informer.set_namespaces(["two"])
        assert (set(informer.namespaces), keys(informer)) == ({"one"}, ["one/a"])
        refused.clear()
        await informer.add_namespace("two")
        assert keys(informer) == ["one/a", "two/b"]


async def test_least_version_of_namespaces_is_that_of_numbers(server: Namespaces) -> None:
    server.having(one="a b c d e f g h i", two="j")
    async with server.running("one", "two") as informer:
        assert (server["one"].version, server["two"].version) == (9, 10)
        assert informer.last_sync_resource_version == "9"


async def test_cache_version_is_the_least_of_all_namespaces(server: Namespaces) -> None:
    server.having(one="a", two="b")
    async with server.running("one", "two") as informer:
        server.put("c", "two")
        await settled()
        assert informer.last_sync_resource_version == "1"
        waiting = asyncio.create_task(informer.wait_for_resource_version("3"))
        await settled()
        assert not waiting.done()
        server.put("d", "one")
        await waiting
        assert informer.last_sync_resource_version == "3"


async def test_write_at_version_10_is_not_shown_by_version_9(server: Namespaces) -> None:
    server.having(one="a b c d e f g h i")
    async with server.running("one") as informer:
        assert informer.last_sync_resource_version == "9"
        metadata = {"name": "j", "namespace": "one", "uid": "uid-10", "resourceVersion": "10"}
        shown = asyncio.create_task(informer.wait_for({"metadata": metadata}))
        await settled()
        assert not shown.done()
        server.put("j", "one")
        pod = await shown
        assert pod is not None
        assert pod.metadata.name == "j"


async def test_resync_delivers_every_namespace_once(server: Namespaces) -> None:
    server.having(one="a", two="b")
    async with server.running("one", "two", resync_period=30):
        await asyncio.sleep(31)
    assert sorted(server.recorder.received[2:]) == ["update a 1 1", "update b 2 2"]


async def test_state_names_the_failing_namespace(server: Namespaces) -> None:
    server.having(one="a", two="b")
    server["two"].refuse(403, "Forbidden")
    informer = server.informer("one", "two")
    phases = [informer.state.phase]
    async with informer:
        await settled()
        phases.append(informer.state.phase)
        assert informer.state.reason.startswith("namespace two: ")
        await informer.remove_namespace("two")
        phases.append(informer.state.phase)
        assert informer.has_synced()
        await informer.set_namespaces([])
        phases.append(informer.state.phase)
    phases.append(informer.state.phase)
    assert phases == [Phase.NEW, Phase.FORBIDDEN, Phase.WATCHING, Phase.WATCHING, Phase.STOPPED]


async def test_namespaces_can_be_set_before_the_start(server: Namespaces) -> None:
    server.having(one="a", two="b")
    informer = server.informer("one")
    await informer.set_namespaces([])
    assert not informer.has_synced()
    await informer.set_namespaces(["two"])
    async with informer, server.running() as empty:
        await informer.wait_for_sync()
        assert (keys(informer), keys(empty)) == (["two/b"], [])


async def test_stop_fails_waits_for_a_namespace(server: Namespaces) -> None:
    server["slow"].gate.clear()
    informer = server.informer()
    async with informer:
        waiting = asyncio.create_task(informer.add_namespace("slow"))
        await settled()
    with pytest.raises(InformerStopped):
        await waiting
    with pytest.raises(InformerStopped, match="namespaces were not changed"):
        await informer.add_namespace("other")


async def test_cancelled_removal_is_completed(server: Namespaces) -> None:
    server.having(one="a", two="b")
    async with server.running("one", "two") as informer:
        removal = asyncio.create_task(informer.remove_namespace("two"))
        await asyncio.sleep(0)
        removal.cancel()
        await settled()
        assert keys(informer) == ["one/a"]
        assert removal.cancelled()


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.parametrize("turns", range(12))
async def test_namespace_removed_and_added_at_once_is_complete(server: Namespaces, turns: int) -> None:
    server.having(one="a", two=" ".join(f"p{number}" for number in range(400)))
    async with server.running("one", "two") as informer:
        changes = []
        for _ in range(2):
            changes.append(asyncio.create_task(informer.remove_namespace("two")))
            for _ in range(turns):
                await asyncio.sleep(0)
            changes.append(asyncio.create_task(informer.add_namespace("two")))
            await asyncio.sleep(0)
        await asyncio.gather(*changes, return_exceptions=True)
        assert len(keys(informer)) == 401


async def test_added_again_namespace_waits_for_its_removal(server: Namespaces, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(response: Response) -> None:
        response.closed = True
        await asyncio.sleep(5)

    server.having(one="a")
    async with server.running("one") as informer:
        monkeypatch.setattr(Response, "close", slow)
        removal = asyncio.create_task(informer.remove_namespace("one"))
        await asyncio.sleep(1)
        await informer.add_namespace("one")
        await removal
        await asyncio.sleep(60)
        assert keys(informer) == ["one/a"]


@pytest.mark.conformance("FAC-13")
async def test_metadata_tier_requests_metadata_per_namespace() -> None:
    cluster = Cluster()
    informer = MultiNamespaceInformer(
        lambda namespace: ListWatch(cluster, PODS, namespace), ["one", "two"], storage="metadata"
    )
    async with informer:
        await informer.wait_for_sync()
    assert cluster.paths() == ["/api/v1/namespaces/one/pods", "/api/v1/namespaces/two/pods"]
    assert all("PartialObjectMetadata" in request.headers["Accept"] for request in cluster.requests)


def test_cluster_scoped_resource_is_refused() -> None:
    with pytest.raises(UsageError, match="nodes is cluster-scoped"):
        MultiNamespaceInformer(lambda namespace: Collection(resource=built_in("v1/nodes")), ["one"])
