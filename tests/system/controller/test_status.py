"""The status as one patch: complete, with the observed generation, and nothing if nothing changes."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, Condition, Conflict, SharedInformerFactory, UsageError
from aioinformer.controller import set_status
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec reads the annotations
from tests.support.bench import WIDGETS, Bench, WithUUID, definition, with_class

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

READY = Condition("Ready", "True", "AllThere", "3 of 3")
WAITING = Condition("Ready", "False", "Waiting", "1 of 3")


class Spec(msgspec.Struct, frozen=True):
    size: int


class WithoutStatus(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


class Status(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    replicas: int = 0
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()


class WithStatus(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec
    status: Status | None = None


def status(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = bench.widget().get("status", {})
    return found


def requests(bench: Bench) -> list[str]:
    """Return the requests since the last call, discovery apart."""
    found = [f"{each.method} {each.path.rpartition('/')[2]}" for each in bench.server.requests if "/web" in each.path]
    bench.server.requests.clear()
    return found


@pytest.mark.behaviour("C-83")
async def test_status_is_one_patch_and_then_none(bench: Bench) -> None:
    written = await set_status(request := await bench.request(), [READY], replicas=3)
    assert request.object is written
    assert written is not None
    assert written.to_dict() == bench.widget()
    time = status(bench)["conditions"][0]["lastTransitionTime"]
    expected = {"type": "Ready", "status": "True", "reason": "AllThere", "message": "3 of 3", "observedGeneration": 1}
    assert status(bench) == {
        "replicas": 3,
        "observedGeneration": 1,
        "conditions": [{**expected, "lastTransitionTime": time}],
    }
    assert requests(bench) == ["GET web", "PATCH status"]
    await set_status(await bench.request(), [READY], replicas=3)
    assert requests(bench) == ["GET web"]


@pytest.mark.behaviour("C-83")
async def test_time_of_a_transition_that_a_condition_states_is_written(bench: Bench) -> None:
    since = datetime(2026, 1, 1, 12, tzinfo=UTC)
    await set_status(await bench.request(), [Condition("Ready", "True", "AllThere", last_transition_time=since)])
    assert status(bench)["conditions"][0]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


@pytest.mark.behaviour("C-83")
async def test_generation_is_that_of_the_run(bench: Bench) -> None:
    behind = await bench.request()
    bench.server.patch("widgets", "web", {"spec": {"size": 5}})
    await set_status(behind, [READY])
    assert status(bench)["observedGeneration"] == 1
    await set_status(await bench.request(), [READY])
    assert (status(bench)["observedGeneration"], status(bench)["conditions"][0]["observedGeneration"]) == (2, 2)


@pytest.mark.behaviour("C-83")
async def test_members_are_replaced_and_removed(bench: Bench) -> None:
    await set_status(await bench.request(), shards={"a": 1, "b": 2}, phase="Starting")
    await set_status(await bench.request(), shards={"a": 1}, phase=None)
    assert status(bench) == {"shards": {"a": 1}, "observedGeneration": 1}


@pytest.mark.behaviour("C-83")
async def test_conditions_of_others_are_kept(bench: Bench) -> None:
    behind = await bench.request()
    other = Condition("Backed-Up", "True", "Nightly")
    await set_status(await bench.request(), [other])
    await set_status(behind, [READY])
    assert [each["type"] for each in status(bench)["conditions"]] == ["Backed-Up", "Ready"]


@pytest.mark.behaviour("C-84")
@pytest.mark.parametrize("stated", [(), ("get", "patch")])
async def test_status_without_subresource(api_server: ApiServer, client: Client, stated: tuple[str, ...]) -> None:
    api_server.create("customresourcedefinitions", definition(subresource=False))
    api_server.create("widgets", {"metadata": {"name": "web"}, "spec": {"size": 3}})
    bench = Bench(api_server, client, msgspec.structs.replace(WIDGETS, verbs=stated))
    for condition in (WAITING, READY):
        await set_status(await bench.request(), [condition])
        generation = bench.widget()["metadata"]["generation"]
        assert status(bench)["observedGeneration"] == generation
        assert status(bench)["conditions"][0]["observedGeneration"] == generation
    attempt = [] if stated else ["PATCH status", "GET web"]  # the first answer leads to a look at the discovery
    assert requests(bench) == ["GET web", *attempt, "PATCH web", "GET web", "PATCH web"]
    await set_status(await bench.request(), [READY])
    assert requests(bench) == ["GET web"]


@pytest.mark.behaviour("C-84")
async def test_vanished_object_has_no_status(bench: Bench) -> None:
    behind = await bench.request()
    bench.server.delete("widgets", "web")
    assert await set_status(behind, [READY]) is None
    bench.server.create("widgets", {"metadata": {"name": "web"}})
    await set_status(await bench.request(), [READY])
    assert status(bench)["conditions"]
    with pytest.raises(UsageError, match="gone"):
        await set_status(await bench.request(object=None), [READY])


def dropping() -> dict[str, Any]:
    """Return a definition whose schema of the status has some members of conditions alone."""
    condition = {name: {"type": "string"} for name in ("type", "status", "reason", "message")}
    conditions = {"type": "array", "items": {"type": "object", "properties": condition}}
    return definition(status={"type": "object", "properties": {"conditions": conditions}})


@pytest.fixture
def dropped(api_server: ApiServer, client: Client) -> Bench:
    """Provide a server whose schema drops `replicas`, `observedGeneration` and the times of transitions."""
    api_server.create("customresourcedefinitions", dropping())
    for name in ("web", "other"):
        api_server.create("widgets", {"metadata": {"name": name}, "spec": {"size": 3}})
    return Bench(api_server, client)


async def patches(bench: Bench, name: str, *conditions: Condition, **members: Any) -> int:
    """Return how many requests it takes to set a status."""
    before = len(bench.server.requests)
    await set_status(await bench.request(name), conditions, **members)
    return sum(each.method == "PATCH" for each in list(bench.server.requests)[before:])


@pytest.mark.behaviour("C-84")
async def test_member_that_the_schema_drops_is_sent_once(dropped: Bench) -> None:
    assert [await patches(dropped, "web", READY, replicas=3) for _ in range(3)] == [1, 0, 0]
    assert [await patches(dropped, "web", WAITING, replicas=3) for _ in range(2)] == [1, 0]
    assert status(dropped)["conditions"][0]["status"] == "False"


@pytest.mark.behaviour("C-84")
async def test_member_that_the_schema_changes_is_sent_once(api_server: ApiServer, client: Client) -> None:
    size = {"type": "object", "properties": {"width": {"type": "integer"}, "unit": {"type": "string", "default": "cm"}}}
    api_server.create("customresourcedefinitions", definition(status={"type": "object", "properties": {"size": size}}))
    api_server.create("widgets", {"metadata": {"name": "web"}, "spec": {"size": 3}})
    bench = Bench(api_server, client)
    assert [await patches(bench, "web", READY, size={"width": 3, "depth": 1}) for _ in range(3)] == [1, 0, 0]
    assert status(bench) == {"size": {"width": 3, "unit": "cm"}}
    assert await patches(bench, "web", READY, size={"width": 4, "depth": 1}) == 1


@pytest.mark.behaviour("C-84")
async def test_several_calls_of_a_run_know_what_is_dropped(dropped: Bench) -> None:
    for expected in ([1, 1], [0, 0]):
        assert [await patches(dropped, "web", **{name: 3}) for name in ("replicas", "size")] == expected


@pytest.mark.behaviour("C-84")
@pytest.mark.parametrize("change", ["value", "generation", "object", "time"])
async def test_dropped_member_is_sent_again(dropped: Bench, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await set_status(await dropped.request(), replicas=3)
    whole = definition()["spec"]["versions"]
    dropped.server.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": whole}})
    assert await patches(dropped, "web", replicas=3) == 0
    name, value = ("other", 3) if change == "object" else ("web", 4 if change == "value" else 3)
    if change == "generation":
        dropped.server.patch("widgets", "web", {"spec": {"size": 5}})
    if change == "time":
        later = monotonic() + 601
        monkeypatch.setattr("aioinformer.controller.answers.monotonic", lambda: later)
    assert await patches(dropped, name, replicas=value) == 1
    assert dropped.widget(name)["status"]["replicas"] == value


@pytest.mark.behaviour("C-83")
@pytest.mark.parametrize(("kind", "reads"), [(WithStatus, ["GET web"]), (WithoutStatus, ["GET web"])])
async def test_class_that_leaves_out_the_status_loses_none(
    api_server: ApiServer, bench: Bench, client: Client, kind: type[Any], reads: list[str]
) -> None:
    await set_status(await bench.request(), [Condition("Other", "True", "There")], size=7)
    mine = Bench(api_server, client, with_class(kind))
    requests(bench)
    written = await set_status(request := await mine.request(), [READY], replicas=3)
    assert requests(bench) == ["GET web", *reads, "PATCH status"]
    assert written is not None
    assert isinstance(written, kind)
    assert request.object is written
    assert [each["type"] for each in status(bench)["conditions"]] == ["Other", "Ready"]
    assert status(bench)["size"] == 7


async def test_uid_may_be_a_uuid(bench: Bench, client: Client) -> None:
    await set_status(await Bench(bench.server, client, with_class(WithUUID)).request(), [READY])
    assert status(bench)["conditions"]


@pytest.mark.behaviour("C-84")
@pytest.mark.parametrize("kind", [None, WithStatus, WithoutStatus])
async def test_successor_does_not_get_the_status(bench: Bench, client: Client, kind: type[Any] | None) -> None:
    behind = await Bench(bench.server, client, with_class(kind) if kind else WIDGETS).request()
    bench.server.delete("widgets", "web")
    bench.server.create("widgets", {"metadata": {"name": "web"}, "spec": {"size": 1}})
    with pytest.raises(Conflict):
        await set_status(behind, [READY])
    assert "status" not in bench.widget()


async def test_view_of_a_stored_object_leaves_the_cache_the_class(
    api_server: ApiServer, bench: Bench, client: Client
) -> None:
    async with SharedInformerFactory(api_server.url) as factory:
        informer = factory.informer_for(with_class(WithStatus))
        await factory.wait_for_cache_sync()
        mine = Bench(api_server, client, with_class(WithStatus))
        mine.add_input(informer)
        request = await mine.request()
        view = request.as_stored()
        body = view["spec"], view._load()  # kept, as by the traceback of an error
        assert isinstance(informer.lister().get("default/web"), WithStatus)
        assert body[0] == {"size": 3}
