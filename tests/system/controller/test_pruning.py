"""Sets of objects: complete after each call, and nothing of others is touched."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from aioinformer import ApiError, SharedInformerFactory, UsageError
from aioinformer.client.changes import applied
from aioinformer.client.retries import Sender
from aioinformer.controller import apply_set
from aioinformer.controller.errors import ForeignObject
from aioinformer.controller.helpers import pruning
from aioinformer.errors import FormerOwner, OptionError
from aioinformer.models import core_v1
from tests.support.bench import CLEANUP, Bench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import Client, SharedIndexInformer

SETTINGS, SECRETS = core_v1.CONFIG_MAPS, core_v1.SECRETS
BOTH = (SETTINGS, SECRETS)
LABELS = {"example.com/widget": "web"}


@pytest.fixture
async def caches(bench: Bench) -> AsyncIterator[dict[str, SharedIndexInformer[Any]]]:
    """Provide synced informers of config maps and secrets to the bench."""
    async with SharedInformerFactory(bench.server.url) as factory:
        found = {each.plural: factory.for_resource(each).informer() for each in BOTH}
        for informer in found.values():
            bench.add_input(informer)
        (await factory.wait_for_cache_sync()).check()
        yield found


async def settle(bench: Bench, caches: dict[str, SharedIndexInformer[Any]]) -> None:
    """Wait until the caches show all that the server has, and forget the requests so far."""
    for plural, informer in caches.items():
        stored = bench.server.list(plural)
        for obj in stored:
            await informer.wait_for(obj, timeout=50)
        uids = {obj["metadata"]["uid"] for obj in stored}
        for obj in informer.lister().list():
            if obj.metadata.uid not in uids:
                await informer.wait_for(obj, gone=True, timeout=50)
    bench.writes()


def settings(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"size": "9"}}


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}


def names(bench: Bench, plural: str = "configmaps") -> set[str]:
    return {each["metadata"]["name"] for each in bench.server.list(plural, "default")}


@pytest.mark.behaviour("C-85")
async def test_set_is_applied_and_the_rest_deleted(bench: Bench, caches: Any) -> None:
    bench.server.create("configmaps", {"metadata": {"name": "of-somebody"}})
    first = await apply_set(await bench.request(), [settings("a"), settings("b"), secret("c")], resources=BOTH)
    assert ([each.metadata.name for each in first.objects], first.sent, first.leaving) == (["a", "b", "c"], 3, [])
    await settle(bench, caches)
    second = await apply_set(await bench.request(), [settings("b"), settings("d")], resources=BOTH)
    assert second.sent == 1
    assert [str(key) for _, key in second.leaving] == ["default/c", "default/a"]
    # Deletions come last, in the reverse order of the resources.
    assert bench.writes() == ["create", "delete c", "delete a"]
    assert names(bench) == {"b", "d", "of-somebody"}
    await settle(bench, caches)
    third = await apply_set(await bench.request(), [settings("b"), settings("d")], resources=BOTH)
    assert (third.sent, third.leaving, bench.writes()) == (0, [], [])


@pytest.mark.behaviour("C-86")
async def test_object_of_others_is_not_touched(bench: Bench, caches: Any) -> None:
    bench.server.create("configmaps", settings("taken", colour="blue"))
    await settle(bench, caches)
    with pytest.raises(ForeignObject, match="configmaps default/taken exists"):
        await apply_set(await bench.request(), [settings("a"), settings("taken")], resources=BOTH)
    assert bench.writes() == []
    assert "a" not in names(bench)


@pytest.mark.behaviour("C-86")
async def test_object_of_others_that_is_not_in_the_cache_is_not_touched(bench: Bench, caches: Any) -> None:
    async with bench.server.fault("black_hole", resources=["configmaps"], verbs=["watch"]):
        taken = bench.server.create("configmaps", settings("taken", colour="blue"))
        with pytest.raises(ForeignObject, match="configmaps default/taken exists"):
            await apply_set(await bench.request(), [settings("taken"), settings("a")], resources=BOTH)
    assert bench.writes() == ["create"]
    assert bench.server.get("configmaps", "taken") == taken
    assert "a" not in names(bench)


@pytest.mark.behaviour("C-86")
async def test_new_objects_take_one_request_each(bench: Bench, caches: Any) -> None:
    request = await bench.request()
    bench.writes()
    await apply_set(request, [settings("a"), settings("b")], resources=BOTH)
    assert [entry.verb for entry in bench.server.requests] == ["create", "create"]


@pytest.mark.behaviour("C-85")
@pytest.mark.parametrize("at_once", [1, 2, 8])
async def test_independent_objects_are_written_at_once(bench: Bench, caches: Any, client: Client, at_once: int) -> None:
    running, most = 0, 0

    class Counting(Sender):
        async def exchange(self, request: Any, settings: Any, *, safe: bool) -> bytes:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await super().exchange(request, settings, safe=safe)
            finally:
                running -= 1

    bench.use(client.with_sender(lambda sender: Counting(sender.transport)))
    made = [settings(name) for name in "abcd"]
    applied = await apply_set(await bench.request(), made, resources=BOTH, at_once=at_once)
    assert [each.metadata.name for each in applied.objects] == ["a", "b", "c", "d"]
    assert most == min(at_once, len(made))


async def test_error_of_an_object_written_at_once_is_raised(bench: Bench, caches: Any) -> None:
    wrong = {**settings("b"), "data": {"colour": 1}}
    with pytest.raises(ApiError):
        await apply_set(await bench.request(), [settings("a"), wrong], resources=BOTH, at_once=2)
    with pytest.raises(OptionError, match="at_once must be a whole number, 1 or more, not 0"):
        await apply_set(await bench.request(), [], resources=BOTH, at_once=0)


@pytest.mark.behaviour("C-86")
async def test_owner_of_the_same_name_is_another_owner(bench: Bench, caches: Any) -> None:
    await apply_set(await bench.request(), [settings("a")], resources=BOTH)
    bench.server.patch("configmaps", "a", {"metadata": {"finalizers": [CLEANUP]}})  # the garbage collector waits
    bench.server.delete("widgets", "web")
    bench.server.create("widgets", {"metadata": {"name": "web"}})
    await settle(bench, caches)
    with pytest.raises(FormerOwner, match=r"configmaps default/a belongs to the former Widget web \(uid "):
        await apply_set(await bench.request(), [settings("a")], resources=BOTH)
    assert bench.writes() == []


@pytest.mark.behaviour("C-86")
async def test_object_created_again_is_not_deleted(bench: Bench, caches: Any) -> None:
    await apply_set(await bench.request(), [settings("a")], resources=BOTH)
    await settle(bench, caches)
    request = await bench.request()
    behind = bench.owned(request.object, SETTINGS)
    bench.server.delete("configmaps", "a")
    bench.server.create("configmaps", settings("a", colour="of somebody else"))
    bench.owned = lambda owner, resource: behind if resource is SETTINGS else []  # type: ignore[method-assign]
    await apply_set(request, [], resources=BOTH)
    assert bench.server.get("configmaps", "a")["data"] == {"colour": "of somebody else"}


@pytest.mark.behaviour("C-102")
async def test_object_that_owners_share_is_not_deleted(bench: Bench, client: Client, caches: Any) -> None:
    bench.server.create("widgets", {"metadata": {"name": "other"}})
    uids = {name: bench.widget(name)["metadata"]["uid"] for name in ("web", "other")}
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    made = settings("shared")
    made["metadata"]["ownerReferences"] = [{**kind, "name": name, "uid": uid} for name, uid in uids.items()]
    await client.core.v1.configmaps.apply(made, namespace="default")
    await settle(bench, caches)
    result = await apply_set(await bench.request(), [], resources=BOTH)
    assert [reason for _, _, reason in result.kept] == ["default/web is an owner, and not its controller"]
    assert "shared" in names(bench)


@pytest.mark.behaviour("C-85")
async def test_error_deletes_nothing(bench: Bench, caches: Any) -> None:
    await apply_set(await bench.request(), [settings("a")], resources=BOTH)
    await settle(bench, caches)
    wrong = {**settings("b"), "data": {"colour": 1}}
    with pytest.raises(ApiError):
        await apply_set(await bench.request(), [wrong, settings("c")], resources=BOTH)
    assert names(bench) & {"a", "b", "c"} == {"a"}


@pytest.mark.behaviour("C-85")
async def test_labels_hold_a_set_in_other_namespaces(bench: Bench, caches: Any) -> None:
    bench.server.create("namespaces", {"metadata": {"name": "shop"}})
    there = {**settings("a"), "metadata": {"name": "a", "namespace": "shop"}}
    await apply_set(await bench.request(), [there, settings("b")], resources=BOTH, by=LABELS)
    await settle(bench, caches)
    assert bench.server.get("configmaps", "a", "shop")["metadata"]["labels"] == LABELS
    assert "ownerReferences" not in bench.server.get("configmaps", "a", "shop")["metadata"]
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": [CLEANUP]}})
    bench.server.delete("widgets", "web")
    assert len((await apply_set(await bench.request(), [], resources=BOTH, by=LABELS)).leaving) == 2
    assert bench.server.list("configmaps", "shop") == []
    await settle(bench, caches)
    assert (await apply_set(await bench.request(), [], resources=BOTH, by=LABELS)).leaving == []


@pytest.mark.behaviour("C-85")
async def test_wrong_set_sends_nothing(bench: Bench, caches: Any) -> None:
    request = await bench.request()
    for wrong, message in (
        ([settings("a"), settings("a")], "twice"),
        ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}], "none of the resources"),
    ):
        with pytest.raises(UsageError, match=message):
            await apply_set(request, wrong, resources=BOTH)
    with pytest.raises(UsageError, match="labels"):
        await apply_set(request, [settings("a")], resources=BOTH, by={})
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": [CLEANUP]}})
    bench.server.delete("widgets", "web")
    with pytest.raises(UsageError, match="being deleted"):
        await apply_set(await bench.request(), [settings("a")], resources=BOTH)
    assert [each for each in bench.writes() if not each.endswith("web")] == []


async def test_cancelled_call_sends_no_more(bench: Bench, caches: Any, client: Client) -> None:
    async with bench.server.fault("latency", verbs=["create"], seconds=5):
        task = asyncio.create_task(
            apply_set(await bench.request(), [settings("a"), settings("b")], resources=BOTH), name="run"
        )
        while not any(entry.verb == "create" for entry in bench.server.requests):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    assert "b" not in names(bench)


@pytest.mark.behaviour("C-102")
async def test_part_of_an_object_is_no_proof(bench: Bench, client: Client) -> None:
    other = bench.server.create("secrets", {"metadata": {"name": "other"}}, "default")
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "other", "uid": other["metadata"]["uid"]}
    async with SharedInformerFactory(bench.server.url) as factory:
        informer = factory.core.v1.configmaps.informer(storage="projection", fields=["metadata.managedFields"])
        bench.add_input(informer)
        factory.start()
        for name, owners in (("foreign", [{**reference, "controller": True}]), ("left", [])):
            made = settings(name)
            made["metadata"] |= {"labels": LABELS, "ownerReferences": owners}
            await informer.wait_for(await client.core.v1.configmaps.apply(made, namespace="default"), timeout=50)
        result = await apply_set(await bench.request(), [], resources=[SETTINGS], by=LABELS)
    assert [key.name for _, key, reason in result.kept if "its controller is Secret other" in reason] == ["foreign"]
    assert names(bench) == {"foreign"}


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Provide the names of the objects whose fields are compared."""
    found: list[str] = []
    compare = applied.difference

    def difference(desired: Any, live: Any, *arguments: Any) -> str:
        found.append(live["metadata"]["name"])
        return compare(desired, live, *arguments)

    monkeypatch.setattr(pruning, "difference", difference)
    return found


@pytest.mark.behaviour("C-85")
async def test_equal_objects_are_proven_once(bench: Bench, caches: Any, comparisons: list[str]) -> None:
    both = [settings("a"), secret("b")]
    request = await bench.request()
    await apply_set(request, both, resources=BOTH)
    await settle(bench, caches)
    comparisons.clear()
    first = await apply_set(request, both, resources=BOTH)
    assert (first.sent, comparisons) == (0, ["a", "b"]), "a successful write proves nothing"
    second = await apply_set(request, both, resources=BOTH)
    assert (second.sent, comparisons) == (0, ["a", "b"])
    assert [each.metadata.name for each in second.objects] == ["a", "b"]
    # One of them has another configuration, and another place in the set.
    changed = [secret("b"), settings("a", size="10"), settings("c")]
    third = await apply_set(request, changed, resources=BOTH)
    assert (third.sent, bench.writes()) == (2, ["patch a", "patch a", "create"])
    await settle(bench, caches)
    assert (await apply_set(request, both[1:], resources=BOTH)).leaving
    assert names(bench) == set()


async def test_write_that_changes_nothing_is_no_proof(
    bench: Bench, caches: Any, comparisons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await bench.request()
    await apply_set(request, [settings("a")], resources=BOTH)
    await settle(bench, caches)
    await apply_set(request, [settings("a", size="10")], resources=BOTH)
    await settle(bench, caches)
    with monkeypatch.context() as doubtful:
        doubtful.setattr(applied, "entries_of", lambda *arguments, **options: iter(()))  # no managed fields: a doubt
        assert (await apply_set(request, [settings("a", size="10")], resources=BOTH)).sent == 1
    comparisons.clear()
    assert (await apply_set(request, [settings("a", size="10")], resources=BOTH)).sent == 0
    assert comparisons == ["a"]


async def test_live_object_is_no_proof_about_the_cached_one(bench: Bench, comparisons: list[str]) -> None:
    async with SharedInformerFactory(bench.server.url) as factory:
        informer = factory.core.v1.configmaps.informer(storage="stripped")
        bench.add_input(informer)
        factory.start()
        request = await bench.request()
        await apply_set(request, [settings("a")], resources=[SETTINGS])
        await informer.wait_for(bench.server.get("configmaps", "a"), timeout=10)
        for count in (1, 2):
            await apply_set(request, [settings("a")], resources=[SETTINGS])
            assert len(comparisons) == count


@pytest.mark.parametrize("change", ["values", "managers", "deleted", "foreign", "created again"])
async def test_proof_ends_with_the_version_of_the_object(
    bench: Bench, client: Client, caches: Any, comparisons: list[str], change: str
) -> None:
    request = await bench.request()
    for _ in range(3):
        await apply_set(request, [settings("a")], resources=BOTH)
        await settle(bench, caches)
    others = client.with_options(field_manager="others").core.v1.configmaps
    match change:
        case "values":
            await others.patch("default/a", {"data": {"size": "8"}})
        case "managers":
            await others.apply(settings("a", size="9"), namespace="default", force=True)
        case "deleted" | "created again":
            await others.delete("default/a")
        case "foreign":
            await others.patch("default/a", {"metadata": {"ownerReferences": None}})
    if change == "created again":
        await others.create(settings("a"), namespace="default")
    await settle(bench, caches)
    comparisons.clear()
    if change in ("foreign", "created again"):
        with pytest.raises(ForeignObject):
            await apply_set(request, [settings("a")], resources=BOTH)
        return
    result = await apply_set(request, [settings("a")], resources=BOTH)
    assert bench.server.get("configmaps", "a")["data"] == {"size": "9"}
    assert result.sent == (change != "managers")
    assert comparisons == ([] if change == "deleted" else ["a"])


@pytest.mark.parametrize("what", ["term", "slot", "owner", "labels", "class", "definition"])
async def test_proof_ends_with_what_it_depends_on(bench: Bench, caches: Any, comparisons: list[str], what: str) -> None:
    def request_in(right: Any) -> Any:
        made.term = right
        return made

    made = await bench.request()
    by: Any = {"example.com/set": "web"} if what == "labels" else "owner"
    before = SimpleNamespace(slot=2, token=1) if what == "slot" else SimpleNamespace(token=1)
    for _ in range(3):
        await apply_set(request_in(before), [settings("a")], resources=BOTH, by=by)
        await settle(bench, caches)
    comparisons.clear()
    again = SimpleNamespace(slot=2, token=1) if what == "slot" else before
    await apply_set(request_in(again), [settings("a")], resources=BOTH, by=by)
    assert comparisons == []
    child: Any = settings("a")
    resources = [SETTINGS]
    match what:
        case "term":
            again = SimpleNamespace(token=2)
        case "slot":
            again = SimpleNamespace(slot=2, token=2)
        case "owner":
            right: Any = again
            known = bench.proofs.of(made.key, right, made.reference.uid)
            bench.proofs.note(made.key, right, "successor", known)
        case "labels":
            by = {"example.com/set": "web", "example.com/more": "yes"}
        case "class":
            child = OrderedDict(child)
        case "definition":
            resources = [replace(SETTINGS, verbs=("get", "patch"))]
    if what == "labels":
        with pytest.raises(ForeignObject):
            await apply_set(request_in(again), [child], resources=BOTH, by=by)
        return
    result = await apply_set(request_in(again), [child], resources=resources, by=by)
    assert (result.sent, comparisons) == (0, ["a"])
