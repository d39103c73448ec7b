"""MutationDetector: which changes of cached objects it reports, and when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from aioinformer import Indexer, SharedIndexInformer
from aioinformer.cache import CacheMutated, MutationDetector
from aioinformer.errors import UsageError
from tests.support.collection import Collection


def labelled(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"secret": "password"}}, "list": [1, {"a": 2}]}


def stored(*objects: Any) -> Indexer[Any]:
    made: Indexer[Any] = Indexer()
    made.replace(objects)
    return made


def test_replaced_objects_are_not_reported() -> None:
    cells = stored(labelled("a"))
    detector = MutationDetector(cells, enabled=True)
    detector.compare()
    changed = labelled("a")
    changed["list"].append(3)
    cells.update(changed)
    cells.add(labelled("b"))
    detector.compare()
    detector.compare()


@pytest.mark.conformance("DET-01")
def test_changed_object_is_reported_without_values() -> None:
    mine = labelled("a")
    detector = MutationDetector(stored(mine, labelled("b")), "pods", enabled=True)
    detector.compare()
    mine["metadata"]["labels"]["secret"] = "other"
    mine["list"][1]["b"] = 1
    with pytest.raises(CacheMutated) as caught:
        detector.compare()
    assert caught.value.key == "a"
    assert caught.value.paths == ("metadata.labels.secret", "list[1].b")
    assert "pods: a was changed in place" in str(caught.value)
    assert "password" not in str(caught.value)


@pytest.mark.conformance("DET-01")
@pytest.mark.parametrize(("after", "found"), [(119, True), (121, False)])
def test_deleted_objects_are_compared_for_a_while(after: float, found: bool) -> None:
    now = [0.0]
    mine = labelled("a")
    cells = stored(mine)
    detector = MutationDetector(cells, enabled=True, retain=120, clock=lambda: now[0])
    detector.compare()
    cells.delete(mine)
    now[0] = after
    detector.compare()
    del mine["list"]
    if found:
        with pytest.raises(CacheMutated, match="at list;"):
            detector.compare()
    else:
        detector.compare()


@dataclass
class Model:
    metadata: dict[str, str]
    tags: list[str] = field(default_factory=list)


@pytest.mark.conformance("DET-01")
async def test_objects_of_a_decoder_are_compared() -> None:
    informer = SharedIndexInformer(Collection("a"), decoder=lambda raw: Model({"name": "a"}))
    detector = MutationDetector(informer.get_indexer(), enabled=True)
    async with informer:
        await informer.wait_for_sync()
        watch = asyncio.create_task(detector.run())
        await asyncio.sleep(5)
        model = informer.get_store().get_by_key("default/a")
        assert model is not None
        model.tags.append("x")
        with pytest.raises(CacheMutated, match="default/a was changed in place at tags"):
            await watch


@pytest.mark.conformance("DET-01")
async def test_writes_that_bypass_frozen_dicts_are_detected() -> None:
    informer = SharedIndexInformer(Collection("a"), storage="dict")
    detector = MutationDetector(informer.get_indexer(), enabled=True)
    async with informer:
        await informer.wait_for_sync()
        detector.compare()
        detector.compare()
        pod = informer.get_store().get_by_key("default/a")
        assert pod is not None
        dict.update(pod["metadata"], name="b")
        with pytest.raises(CacheMutated, match=r"default/a was changed in place at metadata\.name;"):
            detector.compare()


@pytest.mark.conformance("DET-01")
@pytest.mark.parametrize(
    ("value", "enabled"), [("true", True), ("1", True), ("false", False), ("0", False), ("", False)]
)
def test_environment_variable_is_the_default(monkeypatch: pytest.MonkeyPatch, value: str, enabled: bool) -> None:
    monkeypatch.setenv("AIOINFORMER_CACHE_MUTATION_DETECTOR", value)
    assert MutationDetector(stored()).enabled is enabled
    assert MutationDetector(stored(), enabled=False).enabled is False


async def test_disabled_detector_does_nothing() -> None:
    mine = labelled("a")
    detector = MutationDetector(stored(mine))
    detector.compare()
    del mine["list"]
    detector.compare()
    await detector.run()


def test_invalid_period_is_refused() -> None:
    with pytest.raises(UsageError, match="period=0"):
        MutationDetector(stored(), period=0)
