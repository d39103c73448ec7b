"""Conversion webhooks: what the API server asks, accepts and stores, ours as kube-apiserver."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ApiError, Client, Resource
from aioinformer.errors import Conflict
from aioinformer.models import apiextensions_v1
from tests.support.conversion_hooks import ConversionHooks, definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

DEFINITIONS = apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS


class Gates:
    """A resource in two versions, and its webhook."""

    def __init__(self, client: Client, hooks: ConversionHooks) -> None:
        self.group = f"g{uuid.uuid4().hex[:12]}.example.com"
        self.client = client.with_options(retry=False)
        self.hooks = hooks
        self.new, self.old = (
            self.client.resource(Resource(self.group, version, "gates", "Gate")) for version in ("v1", "v1alpha1")
        )

    async def serve(self, storage: str = "v1") -> None:
        """Create or replace the definition, and wait until its objects are stored as it says."""
        body = definition(self.group, self.hooks.client_config, storage)
        definitions = self.client.resource(DEFINITIONS)
        await definitions.apply(body, field_manager="tests")
        while True:
            try:
                self.hooks.seen.clear()
                one, other = (self.old, self.new) if storage == "v1" else (self.new, self.old)
                made = await one.create({"metadata": {"generateName": "probe-"}, "spec": {}})
                await one.delete(made)
                asked = bool(self.hooks.seen)
                self.hooks.seen.clear()
                await other.create({"metadata": {"name": "x"}, "spec": {}}, dry_run=True)
                await asyncio.sleep(0.2)
                if asked and not any(wants(self.hooks, self.api_version(storage))):
                    break
            except ApiError:  # it is not served yet
                pass
            await asyncio.sleep(0.2)
        self.hooks.seen.clear()

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}"

    async def remove(self) -> None:
        await self.client.resource(DEFINITIONS).delete(f"gates.{self.group}")


def wants(hooks: ConversionHooks, api_version: str) -> list[bool]:
    return [each["request"]["desiredAPIVersion"] == api_version for each in hooks.seen]


@pytest.fixture
async def gates(client: Client) -> AsyncIterator[Gates]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(200))
        made = Gates(client, await stack.enter_async_context(ConversionHooks()))
        stack.push_async_callback(made.remove)
        await made.serve()
        yield made


def gate(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def owners(found: Any) -> dict[tuple[str, str], Any]:
    """Return the fields of each manager, by its name and its version."""
    entries = found["metadata"].get("managedFields") or ()
    return {
        (each["manager"], each["apiVersion"].rpartition("/")[2]): {
            name.removeprefix("f:") for name in each["fieldsV1"].get("f:spec", {}) if name != "."
        }
        for each in entries
    }


async def test_each_version_has_its_own_fields(gates: Gates) -> None:
    made = await gates.old.create(gate(size=1))
    # The default of the stored version comes back, too.
    assert made["spec"] == {"size": 1, "tier": "basic"}
    assert (await gates.new.get("a"))["spec"] == {"replicas": 1, "tier": "basic"}
    changed = await gates.new.patch("a", {"spec": {"replicas": 5, "host": "web"}})
    assert changed["spec"] == {"replicas": 5, "host": "web", "tier": "basic"}
    old = await gates.old.get("a")
    assert old["spec"] == {"size": 5, "host": "web", "tier": "basic"}
    assert old["apiVersion"] == gates.api_version("v1alpha1")
    replaced = await gates.old.replace({**old, "spec": {"size": 6}})
    assert replaced["spec"] == {"size": 6, "tier": "basic"}
    assert replaced["metadata"]["generation"] == 3
    [listed] = await gates.old.list()
    assert listed == replaced
    dry = await gates.old.create(gate("dry", size=1), dry_run=True)
    assert dry["spec"] == {"size": 1, "tier": "basic"}
    await gates.old.delete(replaced)
    assert await gates.new.list() == []


async def test_writes_that_change_nothing_take_no_version(gates: Gates) -> None:
    await gates.old.create(gate(size=1))
    # kube-apiserver stores the default of the stored version with the second write.
    made = await gates.old.patch("a", {"spec": {"size": 1}})
    again = await gates.old.patch("a", {"spec": {"size": 1}})
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_generated_names(gates: Gates) -> None:
    body = {"metadata": {"generateName": "gate-"}, "spec": {"size": 3}}
    made = await gates.old.create(body)
    assert made["metadata"]["name"].startswith("gate-")
    assert (await gates.new.get(made["metadata"]["name"]))["spec"]["replicas"] == 3


async def test_scale_in_each_version(gates: Gates) -> None:
    await gates.old.create(gate(size=1))
    for resource, replicas in ((gates.old, 2), (gates.new, 3)):
        scaled = await resource.scale.patch("a", {"spec": {"replicas": replicas}})
        assert scaled.to_dict()["spec"] == {"replicas": replicas}
        assert (await gates.new.get("a"))["spec"]["replicas"] == replicas


async def test_managers_own_fields_of_their_version(gates: Gates) -> None:
    await gates.old.create(gate(size=1, host="web"), field_manager="old")
    found = await gates.new.patch("a", {"spec": {"replicas": 5}}, field_manager="new")
    assert owners(found) == {("old", "v1alpha1"): {"host"}, ("new", "v1"): {"replicas"}}
    found = await gates.old.patch("a", {"spec": {"size": 6}}, field_manager="third")
    assert owners(found) == {("old", "v1alpha1"): {"host"}, ("third", "v1alpha1"): {"size"}}


async def test_managers_apply_in_two_versions(gates: Gates) -> None:
    await gates.old.apply(gate(size=1, host="web"), field_manager="old")
    found = await gates.new.apply(gate(replicas=1), field_manager="new")
    assert owners(found) == {("old", "v1alpha1"): {"host", "size"}, ("new", "v1"): {"replicas"}}
    with pytest.raises(Conflict, match=r'conflict with "old".*: \.spec\.size'):
        await gates.new.apply(gate(replicas=2), field_manager="new")
    # What both have applied stays until both give it up.
    found = await gates.old.apply(gate(host="web"), field_manager="old")
    assert found["spec"] == {"size": 1, "host": "web", "tier": "basic"}
    found = await gates.new.apply(gate(tier="gold"), field_manager="new")
    assert found["spec"] == {"host": "web", "tier": "gold"}
    # One manager that goes on in another version.
    found = await gates.new.apply(gate(replicas=7), field_manager="old")
    assert found["spec"] == {"replicas": 7, "tier": "gold"}
    assert owners(found) == {("old", "v1"): {"replicas"}, ("new", "v1"): {"tier"}}
    forced = await gates.old.apply(gate(size=8), field_manager="third", force=True)
    assert owners(forced) == {("third", "v1alpha1"): {"size"}, ("new", "v1"): {"tier"}}


async def test_only_labels_and_annotations_change_with_the_version(gates: Gates) -> None:
    def change(answer: dict[str, Any], review: dict[str, Any]) -> None:
        for each in answer["response"]["convertedObjects"]:
            each["metadata"] |= {"labels": {"app": "web"}, "finalizers": ["example.com/x"], "generation": 77}
            each["spec"]["unknown"] = 1

    await gates.new.create(gate(replicas=1))
    gates.hooks.change = change
    found = await gates.old.get("a")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert "finalizers" not in found["metadata"]
    assert found["metadata"]["generation"] == 1
    assert found["spec"] == {"size": 1, "tier": "basic"}


def first(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["response"]["convertedObjects"][0]
    return found


WRONG: dict[str, tuple[Any, str]] = {
    "uid": (lambda answer: answer["response"].update(uid="wrong"), 'failed: expected response.uid="*", got "wrong"'),
    "name": (
        lambda answer: first(answer)["metadata"].update(name="b"),
        "returned invalid object: must have the same name: a != b",
    ),
    "namespace": (
        lambda answer: first(answer)["metadata"].update(namespace="b"),
        "returned invalid object: must have the same namespace: * != b",
    ),
    "object uid": (
        lambda answer: first(answer)["metadata"].update(uid="b"),
        "returned invalid object: must have the same UID: * != b",
    ),
    "kind": (
        lambda answer: first(answer).update(kind="Other"),
        "returned invalid object at index 0: invalid kind (expected Gate, received Other)",
    ),
    "version": (
        lambda answer: first(answer).update(apiVersion="example.com/v2"),
        "returned invalid object at index 0: invalid groupVersion (expected GROUP/v1alpha1, received example.com/v2)",
    ),
    "missing": (lambda answer: answer["response"]["convertedObjects"].pop(), "returned 0 objects, expected 1"),
    "surplus": (
        lambda answer: answer["response"]["convertedObjects"].append(first(answer)),
        "returned 2 objects, expected 1",
    ),
    "failure": (
        lambda answer: answer["response"].update(result={"status": "Failure", "message": "no way", "code": 403}),
        "failed: no way",
    ),
    "silent failure": (
        lambda answer: answer["response"].update(result={"status": "Failure"}),
        "failed: response.result.status was 'Failure', not 'Success'",
    ),
    "no response": (lambda answer: answer.pop("response"), "failed: no response provided"),
    "label": (
        lambda answer: first(answer)["metadata"].update(labels={"a": 1}),
        "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    "label's name": (
        lambda answer: first(answer)["metadata"].update(labels={"a b": "c"}),
        'returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of *',
    ),
    "no metadata": (
        lambda answer: first(answer).pop("metadata"),
        "returned invalid object: must have the same name: a != ",
    ),
}


def matches(message: str, expected: str) -> bool:
    parts = expected.split("*")
    return message.startswith(parts[0]) and message.endswith(parts[-1])


@pytest.mark.parametrize("wrong", WRONG)
async def test_wrong_answers(gates: Gates, wrong: str) -> None:
    change, expected = WRONG[wrong]
    await gates.new.create(gate(replicas=1))
    gates.hooks.change = lambda answer, review: change(answer)
    with pytest.raises(ApiError) as caught:
        await gates.old.get("a")
    assert caught.value.status == 500
    head = f"conversion webhook for {gates.api_version('v1')}, Kind=Gate "
    assert matches(caught.value.message, head + expected.replace("GROUP", gates.group)), caught.value.message
    gates.hooks.change = None
    assert (await gates.old.get("a"))["spec"]["size"] == 1


async def test_webhook_that_is_down(gates: Gates) -> None:
    made = await gates.old.create(gate(size=1))
    await gates.old.list()
    gates.hooks.down = True
    kind = f"conversion webhook for {gates.api_version('v1alpha1')}, Kind=Gate failed: Post .*"
    writes: list[Callable[[], Awaitable[Any]]] = [
        lambda: gates.old.create(gate("b", size=1)),
        lambda: gates.old.patch("a", {"spec": {"size": 2}}),
        lambda: gates.old.apply(gate(size=2), field_manager="x", force=True),
        lambda: gates.old.replace({**made, "spec": {"size": 2}}),
        lambda: gates.old.delete(made),
    ]
    for write in writes:
        with pytest.raises(ApiError, match=r"conversion webhook for .* failed: Post"):
            await write()
    with pytest.raises(ApiError, match=kind):
        await gates.old.create(gate("b", size=1))
    # The stored version needs no webhook, and what has been listed before is listed again.
    assert [each["spec"] for each in await gates.new.list()] == [{"replicas": 1, "tier": "basic"}]
    assert [each["spec"] for each in await gates.old.list()] == [{"size": 1, "tier": "basic"}]
    gates.hooks.down = False
    assert (await gates.old.get("a"))["spec"]["size"] == 1


async def test_webhook_that_answers_without_a_review(gates: Gates) -> None:
    await gates.new.create(gate(replicas=1))
    gates.hooks.status = 500
    with pytest.raises(ApiError, match=r"Kind=Gate failed: an error on the server \(.*\) has prevented the request"):
        await gates.old.get("a")


async def test_watches_in_each_version(gates: Gates) -> None:
    seen: dict[str, list[tuple[str, Any]]] = {"new": [], "old": []}
    version = (await gates.new.list()).resource_version

    async def watch(name: str, resource: Any) -> None:
        async for event in resource.watch(resource_version=version):
            seen[name].append((event.type, event.object["spec"]))

    async with asyncio.TaskGroup() as tasks:
        watches = [tasks.create_task(watch(name, getattr(gates, name))) for name in seen]
        await gates.new.create(gate(replicas=1))
        await gates.new.patch("a", {"spec": {"replicas": 2}})
        gates.hooks.down = True
        # All owners have the stored version, so this write needs no webhook.
        await gates.new.patch("a", {"spec": {"replicas": 3}})
        await asyncio.sleep(0.5)
        gates.hooks.down = False
        await gates.new.patch("a", {"spec": {"replicas": 4}})
        await gates.old.delete("a")
        while not all(each and each[-1][0] == "DELETED" for each in seen.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        for task in watches:
            task.cancel()
    assert seen["new"] == [
        ("ADDED", {"replicas": 1, "tier": "basic"}),
        ("MODIFIED", {"replicas": 2, "tier": "basic"}),
        ("MODIFIED", {"replicas": 3, "tier": "basic"}),
        ("MODIFIED", {"replicas": 4, "tier": "basic"}),
        ("DELETED", {"replicas": 4, "tier": "basic"}),
    ]
    assert seen["old"] == [(kind, {"size": spec["replicas"], "tier": "basic"}) for kind, spec in seen["new"]]


async def test_objects_in_a_version_that_was_stored_before(gates: Gates) -> None:
    await gates.new.create(gate(replicas=1))
    await gates.new.create(gate("b", replicas=2))
    await gates.serve(storage="v1alpha1")
    found = await gates.client.resource(DEFINITIONS).get(f"gates.{gates.group}")
    assert found.status is not None
    assert list(found.status.stored_versions or ()) == ["v1", "v1alpha1"]
    assert (await gates.old.get("a"))["spec"] == {"size": 1, "tier": "basic"}
    changed = await gates.new.patch("a", {"spec": {"host": "web"}})
    assert changed["spec"] == {"replicas": 1, "host": "web", "tier": "basic"}
    assert sorted(each["spec"]["size"] for each in await gates.old.list()) == [1, 2]
    assert sorted(each["spec"]["replicas"] for each in await gates.new.list()) == [1, 2]
    gates.hooks.down = True
    # It was written again, so this is its stored form now.
    assert (await gates.old.get("a"))["spec"] == {"size": 1, "host": "web", "tier": "basic"}
    with pytest.raises(ApiError, match="conversion webhook"):
        await gates.old.get("b")
