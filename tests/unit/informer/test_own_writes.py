"""Waiting for own writes: the cache shows them, or never will."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import ListWatch, SharedIndexInformer
from aioinformer.errors import DecodeError, InformerStopped, NotFound, UsageError
from aioinformer.factory import MultiNamespaceInformer, ReselectingInformer
from tests.support.collection import PODS, Collection, cut, line
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled
from tests.unit.informer.waiters import waiters_of

pytestmark = pytest.mark.usefixtures("queue")


class Selected(Collection):
    """Pods with the label app=x. Others leave the collection, or never come."""

    def excludes(self, item: Any, *, whole: bool = True) -> str:
        collection: ListWatch[Any] = ListWatch(self, PODS, "default", "app=x")  # type: ignore[arg-type]
        return collection.excludes(item, whole=whole)


def pod_in(pods: Collection, name: str = "a") -> Any:
    return deepcopy(pods.objects[f"default/{name}"])


def written(name: str = "a", *, version: str = "7", uid: str = "uid-1", **metadata: Any) -> Any:
    identity = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version}
    return {"metadata": identity | metadata}


async def begin(informer: SharedIndexInformer[Any], obj: Any, **options: Any) -> asyncio.Future[Any]:
    """Begin a wait that does not end at once."""
    waiting = asyncio.ensure_future(informer.wait_for(obj, **options))
    await settled()
    assert not waiting.done()
    return waiting


async def test_version_of_a_write_does_not_advance_the_cache() -> None:
    async with informer_of("a") as (pods, informer, _):
        waiting = await begin(informer, written(version="9"))
        assert informer.last_sync_resource_version == "1"
        with pytest.raises(TimeoutError):
            await informer.wait_for_resource_version("9", timeout=1)
        pods.version = 8
        pods.put("b")  # version 9: everything up to it has been received
        assert (await waiting).metadata.resource_version == "1"


async def test_live_read_of_the_cached_version_needs_no_event() -> None:
    pods = Collection("a")
    pods.objects["default/a"]["metadata"]["resourceVersion"] = "x-1"
    async with informer_of(pods) as (_, informer, _):
        waiting = await begin(informer, written(version="x-0"), timeout=100)  # an earlier one, which no event brings
        assert (await informer.wait_for(pod_in(pods), timeout=0)).metadata.name == "a"
        assert not waiting.done()
        waiting.cancel()


async def test_opaque_version_ends_the_wait_when_it_is_seen() -> None:
    pods = Collection("a")
    pods.objects["default/a"]["metadata"]["resourceVersion"] = "x-1"
    async with informer_of(pods) as (_, informer, _):
        waiting = await begin(informer, written(version="x-9"))
        later = written(version="x-5"), written(version="x-9"), written(version="x-2")
        pods.send(b"".join(line("MODIFIED", obj) for obj in later))
        assert (await waiting).metadata.resource_version == "x-2"


async def test_timeout_says_what_the_cache_has() -> None:
    async with informer_of("a", name="pods") as (_, informer, _):
        message = (
            "pods: the version '7' of default/a was not received within 30.0 s; the cache has version '1' of it, "
            "and is at '1'"
        )
        with pytest.raises(TimeoutError, match=message):
            await informer.wait_for(written())
        with pytest.raises(TimeoutError, match=r"the deletion of default/a .* within 2 s"):
            await informer.wait_for(written(), gone=True, timeout=2)
        with pytest.raises(TimeoutError, match=r"the cache has no such object.*only this version itself"):
            await informer.wait_for(written("b", version="x"), timeout=2)
        assert waiters_of(informer) == 0


# Deletions.


@pytest.mark.parametrize("name", ["a", "b"], ids=["present", "not yet"])
async def test_deletion_mark_ends_the_wait(name: str) -> None:
    async with informer_of("a") as (pods, informer, _):
        mark = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        answer = written(name, version="2", uid="uid-1" if name == "a" else "uid-2", **mark)
        shown, gone = await begin(informer, answer), await begin(informer, answer, gone=True)
        pods.put(name, metadata=mark)
        assert (await shown).metadata.deletion_timestamp is not None
        await settled()
        assert not gone.done()
        pods.delete(name)
        assert await gone is None


async def test_removal_ends_all_waits_for_the_object() -> None:
    async with informer_of("a") as (pods, informer, _):
        status = {"kind": "Status", "status": "Success", "details": {"name": "a", "uid": "uid-1"}}
        waiting = [await begin(informer, written(version="100")), await begin(informer, status)]
        waiting.append(await begin(informer, written(version="1"), gone=True))
        pods.delete("a")
        assert await asyncio.gather(*waiting) == [None, None, None]
        assert await informer.wait_for(status, timeout=0) is None


async def test_successor_of_the_same_name_ends_the_wait_with_none() -> None:
    async with informer_of() as (pods, informer, _):
        waiting = await begin(informer, written(version="1", uid="uid-of-before"))
        pods.version = 4
        pods.put("a")
        assert await waiting is None


# Objects outside of the selection.


async def test_object_outside_of_the_selection_is_not_waited_for() -> None:
    async with informer_of(Selected()) as (_, informer, _):
        assert await informer.wait_for(written(labels={"app": "y"}), timeout=0) is None
        assert await informer.wait_for({"metadata": {**written()["metadata"], "namespace": "other"}}, timeout=0) is None
        with pytest.raises(TimeoutError):
            await informer.wait_for(written(labels={"app": "x"}), timeout=1)


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    resource_version: str


class Partial(msgspec.Struct):
    metadata: Metadata


async def test_object_of_a_class_without_labels_and_uid_is_waited_for() -> None:
    pods = Selected()
    async with informer_of(pods, decoder=Partial) as (_, informer, _):
        waiting = await begin(informer, Partial(Metadata("a", "default", "1")))
        assert await informer.wait_for(Partial(Metadata("a", "other", "1")), timeout=0) is None
        pods.put("a", metadata={"labels": {"app": "x"}})
        obj = await waiting
        assert obj == Partial(Metadata("a", "default", "1"))
        gone = await begin(informer, obj, gone=True)
        pods.delete("a")
        assert await gone is None


async def test_model_of_kubernetes_asyncio_is_checked_against_the_selection() -> None:
    metadata = V1ObjectMeta(name="a", namespace="default", uid="u", resource_version="7")
    async with informer_of(Selected()) as (_, informer, _):
        assert await informer.wait_for(V1Pod(metadata=metadata), timeout=0) is None
        metadata.labels = {"app": "x"}
        with pytest.raises(TimeoutError):
            await informer.wait_for(V1Pod(metadata=metadata), timeout=1)


async def test_write_that_moves_the_object_outside_waits_for_its_removal() -> None:
    pods = Selected("a")
    async with informer_of(pods) as (_, informer, _):
        waiting = await begin(informer, written(version="2", labels={"app": "y"}))
        pods.delete("a")  # what a server sends then
        assert await waiting is None


async def test_other_namespaces_of_a_multi_namespace_informer_are_outside() -> None:
    pods = {"": Collection(), "default": Collection("a")}
    informer = MultiNamespaceInformer(pods.__getitem__, ["default"])
    async with informer:
        await informer.wait_for_sync()
        elsewhere = {"metadata": {**written()["metadata"], "namespace": "other"}}
        assert await informer.wait_for(elsewhere, timeout=0) is None
        waiting = await begin(informer, written(version="2"))
        pods["default"].put("a")
        assert (await waiting).metadata.resource_version == "2"


async def test_version_of_other_namespaces_proves_nothing_for_a_new_one() -> None:
    pods = {"": Collection(), "default": Collection("a"), "new": Collection()}
    pods["default"].version = 50
    pods["new"].gate.clear()
    informer = MultiNamespaceInformer(pods.__getitem__, ["default"])
    async with informer:
        await informer.wait_for_sync()
        adding = asyncio.ensure_future(informer.add_namespace("new"))
        await settled()
        waiting = await begin(informer, {"metadata": {**written(version="1")["metadata"], "namespace": "new"}})
        assert informer.last_sync_resource_version == "50"
        assert not waiting.done()
        pods["new"].put("a", "new")
        pods["new"].gate.set()
        await adding
        assert (await waiting).metadata.namespace == "new"


async def test_version_of_the_previous_selection_proves_nothing() -> None:
    old, new = Collection("a"), Collection("a", "b")
    old.version = 50
    new.gate.clear()
    informer = ReselectingInformer(old)
    async with informer:
        await informer.wait_for_sync()
        selecting = asyncio.ensure_future(informer.select(new))
        await settled()
        waiting = await begin(informer, written("b", version="2", uid="uid-2"))
        new.gate.set()
        await selecting
        assert (await waiting).metadata.name == "b"


async def test_version_of_another_object_proves_nothing_without_an_order() -> None:
    pods = Collection("a")
    pods.version = 100
    async with informer_of(pods) as (_, informer, _):
        pods.send(line("MODIFIED", written("b", version="3", uid="u")))  # a version for each object
        await settled()
        waiting = await begin(informer, written(version="2"))
        pods.send(line("MODIFIED", written("b", version="500", uid="u")))
        await settled()
        assert not waiting.done()
        pods.send(line("MODIFIED", written(version="2")))
        assert (await waiting).metadata.resource_version == "2"


# Other ends.


async def test_stop_ends_the_wait_with_an_error() -> None:
    async with informer_of("a") as (_, informer, _):
        waiting = await begin(informer, written())
    with pytest.raises(InformerStopped):
        await waiting
    with pytest.raises(InformerStopped):
        await informer.wait_for(written())
    assert (await informer.wait_for(written(version="1"))).metadata.name == "a"


async def test_write_that_cannot_be_decoded_is_an_error() -> None:
    def decoder(raw: bytes) -> bytes:
        if b"broken" in raw:
            raise LookupError
        return raw

    async with informer_of("a", decoder=decoder) as (pods, informer, _):
        waiting = await begin(informer, written(version="2"))
        pods.put("a", status={"phase": "broken"})
        pods.bookmark()
        with pytest.raises(DecodeError, match="LookupError"):
            await waiting


@pytest.mark.parametrize(
    ("obj", "options", "hint"),
    [
        ({"metadata": {"name": "a"}}, {}, "has no resourceVersion; pass the object that the server has returned"),
        (3, {}, "expected an object as the server has returned it, not int"),
        ({"kind": "Status", "status": "Success"}, {}, "expected an object"),
        (written(), {"predicate": bool}, "pass a predicate with a key"),
        ("default/a", {"gone": True}, "gone=True needs the object"),
    ],
)
async def test_wrong_arguments_are_refused(obj: Any, options: Any, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        await SharedIndexInformer(Collection()).wait_for(obj, **options)


# Listers.


async def test_lister_can_be_read_after_a_write() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    lister = informer.lister()
    async with informer:
        await informer.wait_for_sync()
        reading = asyncio.ensure_future(lister.after(written("b", version="2", uid="uid-2")))
        await settled()
        with pytest.raises(NotFound):
            lister.get("default/b")
        pods.put("b")
        assert len((await reading).list()) == 2
        assert (await lister.namespaced("default").after(pod_in(pods, "b"))).get("b").metadata.name == "b"
        with pytest.raises(TimeoutError):
            await lister.after(written(), timeout=1)


class Writer:
    """Changes a collection at random, waits for each write, and checks what the cache has when the wait ends."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pods = Collection("a", "b")
        self.informer: SharedIndexInformer[Any] = SharedIndexInformer(self.pods)
        #: uid -> the version of the deletion.
        self.deleted: dict[str, int] = {}
        self.ended = 0

    async def written(self, obj: Any) -> None:
        cached = await self.informer.wait_for(obj, timeout=3600)
        uid, version = obj["metadata"]["uid"], int(obj["metadata"]["resourceVersion"])
        if cached is None:
            assert self.deleted[uid] >= version
        else:
            assert (cached.metadata.uid, int(cached.metadata.resource_version) >= version) == (uid, True)
        self.ended += 1

    async def gone(self, obj: Any) -> None:
        assert await self.informer.wait_for(obj, gone=True, timeout=3600) is None
        uid = obj["metadata"]["uid"]
        assert all(each.metadata.uid != uid for each in self.informer.get_indexer().list())
        assert uid in self.deleted
        self.ended += 1

    def step(self) -> Any:
        """Do something, and return the wait for it, or None."""
        pods, name = self.pods, self.random.choice("abc")
        key = f"default/{name}"
        match self.random.randrange(10):
            case 0 | 1 | 2 | 3:
                pods.put(name)
                return self.written(deepcopy(pods.objects[key]))
            case 4 | 5 if key in pods.objects:
                obj = deepcopy(pods.objects[key])
                self.deleted[obj["metadata"]["uid"]] = int(pods.delete(name))
                return self.gone(obj)
            case 6:
                pods.end_watches(cut() if self.random.random() < 0.5 else None)
            case 7:
                pods.expire_watches()
            case 8:
                pods.bookmark()
            case 9:
                pods.refusals.append(cut())
        return None

    async def run(self, steps: int) -> int:
        async with self.informer, asyncio.TaskGroup() as tasks:
            waits = 0
            for _ in range(steps):
                if (wait := self.step()) is not None:
                    tasks.create_task(wait)
                    waits += 1
                if self.random.random() < 0.5:
                    await settled() if self.random.random() < 0.5 else await asyncio.sleep(self.random.random() * 5)
            self.pods.put("z")  # what comes later proves all earlier writes
        return waits


@pytest.mark.parametrize("seed", range(20))
async def test_every_wait_ends_with_what_the_cache_has(seed: int) -> None:
    writer = Writer(seed)
    assert await writer.run(80) == writer.ended > 20
    assert waiters_of(writer.informer) == 0
