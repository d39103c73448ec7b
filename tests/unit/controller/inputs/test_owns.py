"""Owned objects: which of their owners run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedIndexInformer
from aioinformer.controller import Owns
from aioinformer.controller.inputs import OWNER_INDEX
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from tests.support.collection import Collection
from tests.unit.controller.inputs.inputs import FLEETS, WIDGETS, Requests, owned_by, owner

if TYPE_CHECKING:
    from aioinformer import Resource

CONFIG_MAPS: Resource[Any] = core_v1.CONFIG_MAPS


@pytest.mark.behaviour("C-28")
@pytest.mark.parametrize(
    ("kinds", "namespace", "reference", "expected"),
    [
        ((FLEETS, CONFIG_MAPS), "default", owner("north", "uid-9", kind="Fleet"), ["north added"]),
        ((WIDGETS, core_v1.NAMESPACES), "", owner("web", "uid-1"), []),
    ],
    ids=["owner", "owned"],
)
async def test_cluster_scoped_objects_have_no_namespaced_owners(
    kinds: tuple[Any, Any], namespace: str, reference: dict[str, Any], expected: list[str]
) -> None:
    async with World(*kinds) as world:
        world.children.put("a", namespace, metadata=owned_by(reference))
        assert await world.new() == expected


class World:
    """A primary with one object, "web", and an owned kind, both with their informers."""

    def __init__(self, primary: Resource[Any] = WIDGETS, owned: Resource[Any] = CONFIG_MAPS, **options: Any) -> None:
        self.primary, self.children = Collection(resource=primary), Collection(resource=owned)
        if primary.namespaced:
            self.primary.put("web")
        self.uid = "uid-1"
        self.owners = SharedIndexInformer(self.primary)
        self.owned = SharedIndexInformer(self.children, decoder=options.pop("decoder", None))
        self.requests = Requests()
        self.declared: Owns[Any] = Owns(owned, **options)
        self.declared.attach(self.owned, self.owners, self.requests)

    async def __aenter__(self) -> World:
        await self.owners.__aenter__()
        await self.owned.__aenter__()
        await self.owners.wait_for_sync()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.owned.__aexit__(None, None, None)
        await self.owners.__aexit__(None, None, None)

    async def new(self) -> list[str]:
        """Return the keys that were enqueued, with the triggers."""
        found = await self.requests.new()
        return [f"{line.partition(': ')[0]} {line.rpartition(' ')[2]}" for line in found]


@pytest.mark.behaviour("C-22", "C-25", "C-28")
async def test_changes_of_owned_objects_run_their_owner() -> None:
    world = World()
    world.children.put("first", metadata=owned_by(owner("web", "uid-1")))
    async with world:
        assert await world.new() == ["low default/web initial"]
        world.children.put("a", metadata=owned_by(owner("web", "uid-1", apiVersion="example.com/v1alpha1")))
        assert await world.new() == ["default/web added"]
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")), status={"ready": 1})
        assert await world.new() == ["default/web updated"]
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")), status={"ready": 1})
        assert await world.new() == []  # nothing but the version has changed
        world.children.delete("a")
        assert await world.new() == ["default/web deleted"]


@pytest.mark.behaviour("C-25")
@pytest.mark.parametrize(
    "reference",
    [
        owner("web", "uid-of-the-object-before"),
        owner("web", "uid-1", kind="Gadget"),
        owner("web", "uid-1", apiVersion="other.example.com/v1"),
        owner("web", "uid-1", apiVersion="v1"),
        owner("web", "uid-1", controller=False),
        owner("web", "uid-1", controller=None),
    ],
)
async def test_other_references_run_nothing(reference: dict[str, Any]) -> None:
    async with World() as world:
        world.children.put("a", metadata=owned_by(reference))
        world.children.put("a", metadata=owned_by(reference), data={"key": "value"})
        world.children.delete("a")
        assert await world.new() == []


@pytest.mark.behaviour("C-26")
async def test_owners_that_are_not_cached_run() -> None:
    async with World() as world:
        world.children.put("a", metadata=owned_by(owner("later", "uid-2")))
        assert await world.new() == ["default/later added"]


@pytest.mark.behaviour("C-26")
async def test_children_of_a_new_owner_are_not_lost() -> None:
    """The cache of the primary still has the old owner: the event of the new owner follows, and runs its key."""
    async with World() as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-3")))
        assert await world.new() == []
        world.primary.delete("web")
        world.primary.put("web")
        await world.new()
        assert world.owners.get_indexer().get_by_key("default/web").metadata.uid == "uid-3"  # type: ignore[union-attr]
        assert [each.metadata.name for each in world.declared.owned(world.owned, "uid-3")] == ["a"]


@pytest.mark.behaviour("C-27")
async def test_owners_before_and_after_a_change_run() -> None:
    async with World() as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        await world.new()
        world.children.put("a", metadata=owned_by(owner("shop", "uid-2")))
        assert await world.new() == ["default/web updated", "default/shop updated"]
        world.children.put("a")
        assert await world.new() == ["default/shop updated"]


@pytest.mark.behaviour("C-21", "C-27")
async def test_children_created_again_run_both_owners() -> None:
    async with World() as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        await world.new()
        world.children.put("a", metadata={"uid": "another", **owned_by(owner("shop", "uid-2"))})
        assert await world.new() == ["default/web deleted", "default/shop added"]


@pytest.mark.behaviour("C-22")
async def test_resyncs_of_owned_objects_run_on_request_only() -> None:
    owners = SharedIndexInformer(Collection(resource=WIDGETS))
    children = Collection(resource=CONFIG_MAPS)
    children.put("a", metadata=owned_by(owner("web", "uid-1")))
    informer, silent, asked = SharedIndexInformer(children, 10.0), Requests(), Requests()
    Owns(CONFIG_MAPS).attach(informer, owners, silent)
    Owns(CONFIG_MAPS, resync_period=10.0).attach(informer, owners, asked)
    async with informer:
        assert await silent.new() == await asked.new() == ["low default/web: configmaps default/a initial"]
        await asyncio.sleep(11)
        assert silent.taken() == []
        assert asked.taken() == ["low default/web: configmaps default/a resync"]


async def test_every_owner_runs_on_request() -> None:
    async with World(controller_only=False) as world:
        references = owned_by(owner("web", "uid-1"), owner("shop", "uid-2", controller=False))
        world.children.put("b", metadata=references)
        world.children.put("a", metadata=references)
        assert sorted(set(await world.new())) == ["default/shop added", "default/web added"]
        assert [each.metadata.name for each in world.declared.owned(world.owned, "uid-2")] == ["a", "b"]
        assert Owns(CONFIG_MAPS).owned(world.owned, "uid-2") == []
        assert len(Owns(CONFIG_MAPS).owned(world.owned, "uid-1")) == 2


async def test_another_index_under_the_name_is_refused() -> None:
    async with World() as world:
        Owns(CONFIG_MAPS).attach(world.owned, world.owners, world.requests)  # two controllers share the index
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        assert await world.new() == ["default/web added"] * 2
        assert world.owned.get_indexer().index_keys(OWNER_INDEX, "uid-1") == ["default/a"]
    informer = SharedIndexInformer(Collection(resource=CONFIG_MAPS), indexers={OWNER_INDEX: lambda obj: []})
    with pytest.raises(UsageError, match="index owner exists already, with another function"):
        Owns(CONFIG_MAPS).attach(informer, world.owners, world.requests)


BareModel = dataclasses.make_dataclass(
    "BareModel", [("metadata", dataclasses.make_dataclass("BareMeta", [("name", str), ("namespace", str)]))]
)


@pytest.mark.behaviour("C-21", "C-27")
async def test_an_undecodable_last_state_runs_the_known_owner() -> None:
    def decode(raw: bytes) -> Any:
        if b"broken" in raw:
            raise ValueError("no such model")
        return json.loads(raw)

    async with World(decoder=decode) as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")), data={"broken": "true"})
        await world.new()
        world.children.delete("a")
        assert await world.new() == ["default/web deleted"]


@dataclasses.dataclass
class Meta:
    name: str
    namespace: str
    ownerReferences: list[dict[str, Any]] | None = None


@dataclasses.dataclass
class Model:
    metadata: Meta


@pytest.mark.behaviour("C-24", "C-25")
async def test_models_of_users_have_owners_too() -> None:
    async with World(decoder=Model) as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        assert await world.new() == ["default/web added"]
        assert [each.metadata.name for each in world.declared.owned(world.owned, "uid-1")] == ["a"]


@pytest.mark.behaviour("C-30")
async def test_models_without_owners_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with World(decoder=BareModel) as world:
        world.children.put("a", metadata=owned_by(owner("web", "uid-1")))
        assert await world.new() == []
    assert world.declared.errors == 1
    assert "Owns(configmaps): default/a, its keys cannot be found" in caplog.text
    assert "BareMeta has no ownerReferences" in caplog.text
