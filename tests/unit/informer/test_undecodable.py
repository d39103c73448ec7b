"""Undecodable objects: listers do not report them as deleted, and the informer may not be ready."""

from __future__ import annotations

import asyncio
import threading
import traceback
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Resource, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import DecodeError, NotFound
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.reflector import Phase
from tests.support.cluster import Cluster
from tests.support.collection import PODS, Collection, line
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.informer import QueueName

pytestmark = pytest.mark.usefixtures("queue")

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


class Spec(msgspec.Struct):
    size: int = 0


class Pod(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec = msgspec.field(default_factory=Spec)


BAD = {"size": "s3cret"}
REASON = "the decoder refuses it: Expected `int`, got `str` at $.spec.size"


def pods_of(**specs: Any) -> Collection:
    pods = Collection()
    for name, spec in specs.items():
        pods.put(name, spec=spec)
    return pods


@pytest.mark.conformance("WEAK-08")
async def test_informer_is_not_ready_if_no_object_fits_the_model() -> None:
    pods = pods_of(a=BAD, b=BAD)
    factory = SharedInformerFactory(Cluster(pods))
    informer = factory.informer_for(PODS, decoder=Pod)
    lister = informer.lister()
    async with factory:
        assert await factory.wait_for_cache_sync()  # the list was processed
        await settled()
        assert (informer.state.phase, informer.state.healthy) == (Phase.DEGRADED, False)
        assert (informer.is_ready(), factory.is_ready()) == (False, False)
        assert lister.list() == []
        assert lister.undecodable() == ["default/a", "default/b"]
        assert informer.undecodable() == {"default/a": REASON, "default/b": REASON}
        with pytest.raises(DecodeError) as caught:
            lister.get("default/a")
        assert str(caught.value) == f"default/a exists and cannot be decoded: {REASON}"
        assert caught.value.key == "default/a"
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
        with pytest.raises(DecodeError):
            lister.namespaced("default").get("b")
        with pytest.raises(NotFound):
            lister.get("default/c")


@pytest.mark.parametrize("several", [False, True])
async def test_one_decodable_object_makes_the_informer_ready(several: bool) -> None:
    pods = pods_of(a=BAD)
    made: SharedIndexInformer[Any] = (
        MultiNamespaceInformer(lambda namespace: pods, ["default"], decoder=Pod)
        if several
        else SharedIndexInformer(pods, decoder=Pod)
    )
    async with made as informer:
        await settled()
        assert not informer.is_ready()
        pods.put("b", spec={})
        await settled()
        assert (informer.is_ready(), informer.state.healthy) == (True, False)
        pods.put("b", spec=BAD)
        pods.delete("b")
        await settled()
        assert (informer.lister().list(), informer.is_ready()) == ([], True)
    assert not informer.is_ready()


@pytest.mark.parametrize(("limit", "ready"), [(None, True), (0.5, True), (0.49, False), (0, False), (1, True)])
async def test_informer_above_max_undecodable_is_not_ready(limit: float | None, ready: bool) -> None:
    pods = pods_of(a={}, b={})
    async with SharedIndexInformer(pods, decoder=Pod, options=RunOptions(max_undecodable=limit)) as informer:
        await settled()
        assert informer.is_ready()
        pods.put("c", spec=BAD)  # no version of it is cached
        pods.put("d", spec={})
        pods.put("d", spec=BAD)  # an earlier version is cached
        await settled()
        assert informer.is_ready() is ready
        pods.put("c", spec={})
        pods.put("d", spec={})
        await settled()
        assert (informer.is_ready(), informer.state.healthy) == (True, True)


async def test_informer_max_undecodable_overrides_the_factory() -> None:
    factory = SharedInformerFactory(Cluster(pods_of(a=BAD, b={})), options=RunOptions(max_undecodable=0.1))
    strict = factory.informer_for(PODS, decoder=Pod)
    lenient = factory.informer_for(PODS, decoder=Pod, label_selector="app", options=RunOptions(max_undecodable=0.5))
    async with factory:
        await factory.wait_for_cache_sync()
        assert (strict.is_ready(), lenient.is_ready(), factory.is_ready()) == (False, True, False)


async def test_earlier_version_is_served_and_its_key_reported() -> None:
    pods = pods_of(a={"size": 1})
    async with SharedIndexInformer(pods, decoder=Pod) as informer:
        await settled()
        pods.put("a", spec=BAD)
        await settled()
        lister = informer.lister()
        assert lister.get("default/a").spec.size == 1
        assert lister.undecodable() == lister.namespaced("default").undecodable() == ["default/a"]
        assert lister.namespaced("other").undecodable() == []
        pods.put("a", spec={"size": 2})
        await settled()
        assert (lister.get("default/a").spec.size, lister.undecodable()) == (2, [])


async def test_lister_of_a_namespace_names_its_own_objects_only() -> None:
    pods = Collection()
    for namespace in ("shop", "shop-2"):
        pods.put("a", namespace, spec=BAD)
    async with SharedIndexInformer(pods, decoder=Pod) as informer:
        await settled()
        lister = informer.lister()
        assert lister.undecodable() == ["shop-2/a", "shop/a"]
        assert lister.namespaced("shop").undecodable() == ["shop/a"]
        assert lister.namespaced("sho").undecodable() == []


async def test_deleted_object_is_not_found_at_once(queue: QueueName) -> None:
    pods = pods_of(a=BAD, b=BAD)
    async with SharedIndexInformer(pods, decoder=Pod, options=RunOptions(queue=queue)) as informer:
        await settled()
        pods.delete("a")
        await settled()
        pods.delete("b")
        pods.expire_watches()
        await settled()
        for name in "ab":
            with pytest.raises(NotFound):
                informer.lister().get(f"default/{name}")
        assert informer.state.healthy


async def test_no_read_during_a_relist_misses_an_object(queue: QueueName) -> None:
    pods = pods_of(a=BAD, **{f"p{number}": {} for number in range(20)})
    seen: set[str] = set()
    async with SharedIndexInformer(pods, decoder=Pod, options=RunOptions(queue=queue)) as informer:
        await settled()
        lister = informer.lister()
        pods.put("a", spec={})
        pods.unseen()
        pods.expire_watches()
        for _ in range(400):
            await asyncio.sleep(0)
            try:
                lister.get("default/a")
                seen.add("there")
            except DecodeError:
                seen.add("undecodable")
        lister.get("default/a")  # does not raise
    assert seen <= {"there", "undecodable"}


# Bodies that are decoded on access.


async def test_failed_read_counts_until_the_next_version() -> None:
    states: list[str] = []
    async with informer_of(pods_of(a={"nodeName": 5}, b={"nodeName": "n1"}), states=states) as (pods, informer, _):
        lister = informer.lister()
        assert (informer.state.healthy, lister.undecodable()) == (True, [])
        pod = lister.get("default/a")
        for _ in range(2):
            with pytest.raises(DecodeError, match=r"default/a: not a V1Pod: Expected `str.*`, got `int` at \$.spec"):
                assert pod.spec
        assert (informer.state.healthy, informer.is_ready(), informer.skipped) == (False, True, 1)
        assert lister.undecodable() == ["default/a"]
        assert informer.state.reason == "1 object cannot be decoded (default/a)"
        assert len(lister.list()) == 2
        pods.put("a", spec={"nodeName": "n1"})
        await settled()
        assert (informer.state.healthy, lister.undecodable()) == (True, [])
        with pytest.raises(DecodeError):  # an old version, which a reader has kept
            assert pod.status
        assert informer.state.healthy
        pods.send(line("ADDED", {"metadata": "none"}))
        await settled()
        assert list(informer.undecodable()) == [""]  # without a readable name, there is no key
        assert lister.undecodable() == []
    assert states[1:4] == ["watching", "degraded: 1 object cannot be decoded (default/a)", "watching"]


@pytest.mark.parametrize("change", ["delete", "relist"])
async def test_failed_read_ends_with_the_object(change: str, queue: QueueName) -> None:
    pods = pods_of(a={"nodeName": 5}, b={})
    async with SharedIndexInformer(pods, options=RunOptions(queue=queue)) as informer:
        await settled()
        with pytest.raises(DecodeError):
            assert informer.lister().get("default/a").spec
        assert not informer.state.healthy
        pods.delete("a")
        if change == "relist":
            pods.unseen()
            pods.expire_watches()
        await settled()
        assert (informer.state.healthy, informer.undecodable()) == (True, {})


async def test_failed_read_in_a_thread_counts_for_every_informer() -> None:
    pods, states = pods_of(**{f"p{number}": {"nodeName": 5} for number in range(50)}), list[str]()
    async with informer_of(pods, states=states) as (_, informer, _), informer_of("x") as (_, other, _):
        objects = informer.lister().list()

        def read() -> None:
            for pod in objects:
                with pytest.raises(DecodeError):
                    assert pod.spec

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        await asyncio.sleep(1)
        assert (len(informer.undecodable()), len(other.undecodable()), informer.skipped) == (50, 0, 50)
        assert states[-1].startswith("degraded: ")


async def test_failed_reads_of_mappings_count() -> None:
    pods = Collection(resource=WIDGETS)
    deep = "[" * 200_000 + "]" * 200_000  # beyond the limit of each version of Python
    metadata = '{"name":"a","namespace":"default","uid":"u","resourceVersion":"9"}'
    async with SharedIndexInformer(pods, options=RunOptions(max_undecodable=0.0)) as informer:
        await settled()
        pods.send(f'{{"type":"ADDED","object":{{"metadata":{metadata},"spec":{deep}}}}}\n'.encode())
        await settled()
        widget = informer.lister().get("default/a")
        assert informer.state.healthy
        for read in (lambda: widget["spec"], widget.to_dict):
            with pytest.raises(DecodeError):
                read()
        assert informer.lister().undecodable() == ["default/a"]
        assert "default/a" in str(informer.state)
        assert informer.is_ready()


async def test_namespaces_count_together_until_removed() -> None:
    one, two = Collection(), Collection()
    one.put("a", namespace="one", spec={})
    two.put("b", namespace="two", spec=BAD)
    servers = {"": one, "one": one, "two": two}
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(
        lambda namespace: servers[namespace], ["one", "two"], decoder=Pod, options=RunOptions(max_undecodable=0.4)
    )
    async with informer:
        assert await informer.wait_for_cache_sync(5) == {"v1/pods?namespace=one": True, "v1/pods?namespace=two": True}
        await settled()
        assert (informer.is_ready(), informer.state.healthy, informer.skipped) == (False, False, 1)
        with pytest.raises(DecodeError):
            informer.lister().namespaced("two").get("b")
        await informer.remove_namespace("two")
        assert (informer.is_ready(), informer.state.healthy, informer.skipped) == (True, True, 1)
