"""The detector of controllers that trigger themselves."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest

from aioinformer import SharedIndexInformer
from aioinformer.controller import Change
from aioinformer.controller.inputs import LoopDetector, Primary
from aioinformer.controller.inputs.content import differing_fields
from aioinformer.models import core_v1
from aioinformer.resources import ObjectName
from aioinformer.workqueue import Cause
from tests.support.collection import Collection
from tests.support.limits import compare_fields_of
from tests.support.virtual_time import settled
from tests.unit.controller.inputs.inputs import WIDGETS, document, view_of, widget

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer import Resource

WEB = ObjectName("shop", "web")
UPDATED = Cause("updated", "widgets.example.com", "shop/web")


def flap(detector: LoopDetector, state: Callable[[int], Any], resource: Resource[Any] = WIDGETS) -> None:
    """Run a key 10 times, each time after a change from one state to the next."""
    for number in range(10):
        detector.ran(WEB, [UPDATED], float(number), wrote=True)
        detector.saw(WEB, resource, WEB, Change("updated", state(number), state(number + 1)))


@pytest.mark.behaviour("C-35")
def test_values_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    def secret(at: int) -> Any:
        data = {"password": ("c2VjcmV0", "aHVudGVyMg==")[at % 2]}
        return view_of(document(data=data, stringData=data), core_v1.SECRETS)

    flap(LoopDetector("widgets"), secret, core_v1.SECRETS)
    assert "data.password of secrets shop/web alternates between two values" in caplog.text
    assert "aHVudGVyMg" not in caplog.text
    assert "c2VjcmV0" not in caplog.text


def test_changed_fields_are_described(caplog: pytest.LogCaptureFixture) -> None:
    def state(at: int) -> Any:
        metadata = {"annotations": {"example.com/at": str(at)}, "resourceVersion": str(at), "generation": at}
        return widget(spec={"parts": [{"image": "x" * 100}, at]}, metadata=metadata)

    flap(LoopDetector("widgets"), state)
    assert (
        "metadata.annotations['example.com/at'] of widgets.example.com shop/web takes one value after the"
        in caplog.text
    )
    assert "spec.parts.1 of widgets.example.com shop/web takes one value after the other" in caplog.text
    assert "resourceVersion" not in caplog.text
    assert "generation" not in caplog.text


@dataclass
class AsDataclass:
    metadata: dict[str, Any]


class AsStruct(msgspec.Struct):
    metadata: dict[str, Any]


class AsModel(pydantic.BaseModel):
    metadata: dict[str, Any]


@pytest.mark.behaviour("C-35")
@pytest.mark.parametrize("kind", [AsDataclass, AsStruct, AsModel])
def test_unknown_field_of_a_class_is_named_so(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    flap(LoopDetector("widgets"), lambda at: kind(metadata={"name": "web", "resourceVersion": str(at)}))
    assert (
        f"widgets.example.com shop/web changes in a field that class {kind.__name__} does not have (versions and "
        "managed fields are not compared). Write only"
    ) in caplog.text
    flap(LoopDetector("gadgets"), lambda at: object())
    assert "the changed fields are not known" in caplog.text


def run(
    detector: LoopDetector,
    times: int = 10,
    *,
    key: ObjectName = WEB,
    cause: Cause = UPDATED,
    step: float = 1.0,
    begin: float = 0.0,
    wrote: bool = True,
) -> None:
    """Run a key so often, each time after a change of the widget's size."""
    for number in range(times):
        detector.ran(key, [cause], begin + number * step, wrote=wrote)
        old, new = (widget(spec={"size": 2 + (number + at) % 2}) for at in (0, 1))
        detector.saw(key, WIDGETS, key, Change("updated", old, new))


@pytest.mark.behaviour("C-35")
def test_a_loop_is_logged_with_the_field_that_flaps(caplog: pytest.LogCaptureFixture) -> None:
    detector = LoopDetector("widgets")
    run(detector)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.message.startswith("controller widgets triggers itself: shop/web ran 10 times in 9.0 s, ")
    assert "spec.size of widgets.example.com shop/web alternates between two values. " in warning.message
    assert detector.detected == 1


@pytest.mark.behaviour("C-35")
def test_one_warning_a_minute_and_all_runs_counted(caplog: pytest.LogCaptureFixture) -> None:
    detector = LoopDetector("widgets")
    for number in range(130):
        for name in ("web", "shop"):
            detector.ran(ObjectName("shop", name), [UPDATED], float(number), wrote=True)
    assert len(caplog.records) == 3
    assert detector.detected == 2 * (130 - 9)


@pytest.mark.behaviour("C-35")
@pytest.mark.parametrize(
    "differently",
    [
        {"times": 9},
        {"step": 7.0},
        {"wrote": False},
        {"cause": Cause("result")},
        {"cause": Cause("retry")},
        {"cause": Cause("resync", "every 60 s")},
        {"cause": Cause("requested")},
    ],
)
def test_other_repeated_runs_are_no_loop(differently: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    detector = LoopDetector("widgets")
    run(detector, **differently)
    assert detector.detected == 0
    assert caplog.records == []


@pytest.mark.behaviour("C-35")
@pytest.mark.parametrize("between", [{"wrote": False}, {"wrote": True, "causes": [UPDATED, Cause("requested")]}])
def test_a_run_of_another_kind_ends_the_streak(between: dict[str, Any]) -> None:
    detector = LoopDetector("widgets")
    run(detector, 9)
    detector.ran(WEB, between.get("causes", [UPDATED]), 9.0, wrote=between["wrote"])
    run(detector, 8, begin=10.0)
    assert detector.detected == 0
    run(detector, 2, begin=18.0)
    assert detector.detected == 1 + between["wrote"]


class State:
    """A state of an object that counts how often it is read."""

    read = 0

    def to_dict(self) -> dict[str, Any]:
        State.read += 1
        return document()


@pytest.mark.behaviour("C-35")
def test_fields_are_compared_for_hot_keys_only() -> None:
    detector = LoopDetector("widgets")
    for number in range(10):
        detector.saw(WEB, WIDGETS, WEB, Change("updated", State(), State()))
        assert bool(State.read) == (number >= 5), number
        detector.ran(WEB, [UPDATED], float(number), wrote=True)


@pytest.mark.behaviour("C-35")
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    compare_fields_of(monkeypatch, 32)
    detector = LoopDetector("widgets", keys=100)
    for number in range(1000):
        run(detector, 6, key=ObjectName("shop", f"web-{number}"), begin=number / 100, step=0.001)
    assert len(detector._streaks) <= 100
    assert len(detector.followed) <= 32
    detector.ran(WEB, [UPDATED], 200.0, wrote=True)
    detector.ran(WEB, [UPDATED], 201.0, wrote=False)
    for number in range(200):
        detector.ran(ObjectName("shop", "other"), [UPDATED], 202.0 + number, wrote=True)
    assert len(detector._streaks) == 1
    assert not detector.followed or list(detector.followed) == [ObjectName("shop", "other")]


def test_differing_fields_are_limited_and_typed() -> None:
    old, new = (widget(spec={f"field-{at}": value for at in range(50)}) for value in (1, True))
    assert differing_fields(old, new, 3) == {f"spec.field-{at}": (1, True) for at in (0, 1, 10)}


@pytest.mark.behaviour("C-35")
async def test_inputs_pass_the_states_of_updates_on(caplog: pytest.LogCaptureFixture) -> None:
    collection = Collection("web", resource=WIDGETS)
    informer, detector = SharedIndexInformer(collection), LoopDetector("widgets")

    times = count()

    def enqueue(key: ObjectName, cause: Cause, priority: int) -> None:
        detector.ran(key, [cause], float(next(times)), wrote=True)

    Primary(WIDGETS).attach(informer, informer, enqueue, loops=detector)
    async with informer:
        await settled()
        for number in range(10):
            collection.put("web", spec={"size": number % 2})
        await settled()
    assert "default/web ran 10 times" in caplog.text
    assert "spec.size of widgets.example.com default/web alternates between two values" in caplog.text
