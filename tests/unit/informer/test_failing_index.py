"""Index functions that raise: the state is degraded until all objects can be indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Indexer, SharedIndexInformer
from aioinformer.factory.multi_namespace import MultiNamespaceInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.reflector.state import InformerState

pytestmark = pytest.mark.usefixtures("queue")


def by_owner(pod: Any) -> list[str]:
    return [pod.metadata.labels["owner"]]


class Unhashable(str):
    __hash__ = None  # type: ignore[assignment]


def owned(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"owner": "x"}}}


NAME = f"index owner ({__name__}.by_owner)"


def states_of(informer: SharedIndexInformer[Any]) -> list[str]:
    seen: list[str] = []

    def note(state: InformerState) -> None:
        seen.append(str(state))

    informer.add_state_handler(note)
    return seen


async def test_state_names_function_and_keys_until_indexed() -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, indexers={"owner": by_owner})
    states = states_of(informer)
    async with informer:
        await settled()
        degraded = f"degraded: {NAME} raises for 2 objects (default/a, default/b)"
        assert str(informer.state) == states[-1] == degraded
        pods.put("a", metadata={"labels": {"owner": "x"}})
        await settled()
        assert str(informer.state) == states[-1] == f"degraded: {NAME} raises for 1 object (default/b)"
        assert [pod.metadata.name for pod in informer.get_indexer().by_index("owner", "x")] == ["a"]
        pods.delete("b")
        await settled()
        assert str(informer.state) == states[-1] == "watching"
        assert informer.state.healthy


async def test_state_names_a_few_of_many_keys() -> None:
    pods = Collection(*"abcde")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, indexers={"owner": by_owner})
    async with informer:
        await settled()
        assert informer.state.reason == f"{NAME} raises for 5 objects (default/a, default/b, default/c, …)"
        phase = informer.state.phase
        pods.end_watches(ConnectionError())
        assert informer.state.phase == phase


@pytest.mark.parametrize(
    "function",
    [
        lambda pod: [[]],
        lambda pod: [{}],
        lambda pod: "text",
        lambda pod: [1],
        lambda pod: 1 / 0,
        lambda pod: (_ for _ in ()).throw(GeneratorExit),
    ],
    ids=["list", "dict", "text", "number", "raises", "exits"],
)
async def test_invalid_index_values_degrade(function: Callable[[Any], Any]) -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"), indexers={"bad": function})
    async with informer:
        await settled()
        assert informer.state.phase == "degraded"
        assert "default/a" in informer.state.reason
        assert [pod.metadata.name for pod in informer.get_indexer().list()] == ["a"]


async def test_strings_of_an_unhashable_class_are_strings() -> None:
    indexers = {"odd": lambda pod: [Unhashable("x")]}
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"), indexers=indexers)
    async with informer:
        await settled()
        assert informer.state.healthy
        assert informer.get_indexer().index_keys("odd", "x") == ["default/a"]


@pytest.mark.parametrize("sliced", [True, False])
async def test_failing_index_added_later_degrades_at_once(sliced: bool) -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"))
    states = states_of(informer)
    async with informer:
        await settled()
        if sliced:
            await informer.add_indexers_in_slices({"owner": by_owner})
        else:
            informer.add_indexers({"owner": by_owner})
        assert str(informer.state) == states[-1] == f"degraded: {NAME} raises for 1 object (default/a)"


async def test_multi_namespace_informer_is_degraded() -> None:
    pods = Collection("a")
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(
        lambda namespace: pods, ["default"], indexers={"owner": by_owner}
    )
    states = states_of(informer)
    async with informer:
        await settled()
        assert str(informer.state) == states[-1] == f"degraded: {NAME} raises for 1 object (default/a)"


async def test_reader_with_an_invalid_object_degrades_nothing() -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": {"owner": "x"}})
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, indexers={"owner": by_owner})
    async with informer:
        await settled()
        assert informer.get_indexer().index("owner", {"metadata": {"name": "z"}}) == []
        assert informer.state.healthy


def test_manual_store_reports_failing_indices() -> None:
    store: Indexer[Any] = Indexer(indexers={"tag": lambda item: [item["tag"]]})
    store.add({"metadata": {"name": "a"}})
    store.add({"metadata": {"name": "b"}, "tag": "x"})
    [(name, (_, keys, count))] = store.store.failing().items()
    assert (name, keys, count) == ("tag", ["a"], 1)
    store.replace([{"metadata": {"name": "a"}, "tag": "y"}])
    assert store.store.failing() == {}
