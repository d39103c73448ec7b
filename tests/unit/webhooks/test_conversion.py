"""Conversion reviews: one result for all objects, named failures, and no wait for caches."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from aioinformer import UsageError
from aioinformer.controller import Manager
from aioinformer.crds import custom_resource
from aioinformer.serving import WebRequest
from aioinformer.webhooks.conversion import Conversions
from tests.support.converted_classes import Gate, gates
from tests.support.managers import Server

GATES, OLD_GATES = gates("example.com")


def gate(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1alpha1", "kind": "Gate", "metadata": {"name": name}, "spec": spec}


def review(*objects: Any, desired: str = "example.com/v1", kind: str = "ConversionReview") -> bytes:
    request = {"uid": "u1", "desiredAPIVersion": desired, "objects": objects}
    return json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "request": request}).encode()


def declared() -> Conversions:
    conversions = Conversions()
    conversions.declare(GATES)
    return conversions


async def answered(body: bytes, conversions: Conversions | None = None) -> dict[str, Any]:
    conversions = conversions or declared()
    status, answer, _ = await conversions.answer(body)
    assert status == 200, answer
    found: dict[str, Any] = json.loads(answer)["response"]
    assert found["uid"] == "u1"
    return found


async def test_objects_come_back_in_their_order() -> None:
    found = await answered(review(*(gate(str(at), size=at) for at in range(100))))
    assert found["result"] == {"status": "Success"}
    assert [each["spec"]["replicas"] for each in found["convertedObjects"]] == list(range(100))


async def test_failure_names_each_object_version_and_field(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    large = {f"key{at}": "x" * 1000 for at in range(80)}
    new = {**gate("large", extra=large), "apiVersion": "example.com/v1"}
    objects = [gate("fits", size=1), new, {**new, "metadata": {"name": "other", "namespace": "shop"}}]
    found = await answered(review(*objects, desired="example.com/v1alpha1"))
    assert found["convertedObjects"] == []
    assert found["result"]["status"] == "Failure"
    message = found["result"]["message"]
    assert message.startswith(
        "2 of 3 objects cannot be converted: large: example.com/v1 to example.com/v1alpha1: spec."
    )
    assert "shop/other: " in message
    assert "xxx" not in message


async def test_kind_of_others_is_a_failure_and_what_is_no_review_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    found = await answered(review({**gate("a"), "kind": "Door"}))
    assert "this manager converts Gate of example.com, not Door of example.com" in found["result"]["message"]
    conversions = Conversions()
    for body in (b"", b"[]", review(kind="AdmissionReview")):
        assert (await conversions.answer(body)).status == 400


async def test_objects_that_cannot_be_decoded_are_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    broken = json.dumps(gate("broken", tier="?")).encode().replace(b"?", b"\xff")
    found = await answered(review(gate("fits"), "BROKEN", 1).replace(b'"BROKEN"', broken))
    message = found["result"]["message"]
    assert message.startswith("2 of 3 objects cannot be converted: broken: it cannot be decoded: ")
    assert "; objects[2]: it cannot be decoded: " in message


async def test_failed_conversion_is_counted_and_shown_as_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    manager = Manager("gates", client=Server())
    manager.convert(GATES)

    def problems() -> list[dict[str, Any]]:
        return [each for each in manager.report()["problems"] if each["see"] == "webhook-fails"]

    async def ask(document: Any) -> int:
        async def body() -> bytes:
            return review(document)

        return (await manager.admission.respond(WebRequest("POST", "/convert", read=body))).status

    def counted() -> dict[str, int]:
        [counters] = manager.admission.counters()
        return dict(counters.statistics().answers)

    async with manager:
        assert await ask(gate("a")) == 200
        assert counted() == {"200": 1, "500": 0}
        assert await ask({**gate("b"), "kind": "Door"}) == 200  # so that the API server reads the reason
        assert counted() == {"200": 1, "500": 1}
        assert manager.admission.counters()[0].statistics().panics == 0
        [problem] = problems()
        assert problem["text"].startswith(
            "The webhook /convert failed its last review, 0 s ago; 1 of 1 objects cannot be"
        )
        assert "lists, watches and writes of the kind fail" in problem["remedy"]
        assert await ask(gate("a")) == 200
        assert problems() == []


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "a", "namespace": "shop"}, "shop/a"),
        ({"name": "a"}, "a"),
        ({"namespace": "shop"}, "shop/<unnamed>"),
        ({"name": None, "namespace": None}, "<unnamed>"),
        (None, "<unnamed>"),
        ([], "<unnamed>"),
    ],
)
async def test_objects_with_any_metadata_are_named_and_converted(
    caplog: pytest.LogCaptureFixture, metadata: Any, name: str
) -> None:
    caplog.set_level(logging.CRITICAL)
    other = {**gate("a"), "metadata": metadata}
    found = await answered(review({**other, "kind": "Door"}))
    assert found["result"]["message"].startswith(f"1 of 1 objects cannot be converted: {name}: ")
    found = await answered(review({**other, "spec": {"size": 3}}))
    assert found["convertedObjects"][0]["spec"] == {"replicas": 3}


async def test_unread_annotations_are_logged_for_each_object(caplog: pytest.LogCaptureFixture) -> None:
    objects = [gate("a"), gate("b")]
    for each in objects:
        each["metadata"]["annotations"] = {"aioinformer/lost-v1": "edited"}
    conversions = declared()
    for _ in range(3):
        await answered(review(*objects), conversions)
    lines = [each.getMessage() for each in caplog.records]
    assert [" of Gate a " in line for line in lines] == [True, False]
    assert " of Gate b " in lines[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("edited", "has been edited; repair or remove it"),
        ('{"version":2}', "has format 2, and this version of aioinformer knows 1; run the version that has written it"),
    ],
)
async def test_unread_annotation_is_logged_once_with_its_object(
    caplog: pytest.LogCaptureFixture, text: str, reason: str
) -> None:
    unread = gate("a")
    unread["metadata"]["annotations"] = {"aioinformer/lost-v1": text}
    conversions = declared()
    for _ in range(3):
        answer = await answered(review(unread), conversions)
        assert answer["result"]["status"] == "Success"
        assert answer["convertedObjects"][0]["metadata"]["annotations"]["aioinformer/lost-v1"] == text
    [line] = [each.getMessage() for each in caplog.records]
    assert line.startswith(f"example.com/v1: metadata.annotations[aioinformer/lost-v1] of Gate a {reason}")


async def test_manager_converts_what_its_controllers_use_and_before_it_runs() -> None:
    manager = Manager("gates")

    @manager.controller(GATES)
    async def gates(request: Any) -> None: ...

    status, answer = await manager.admission.answer("/convert", review(gate("a", size=2)))
    assert status == 200
    assert json.loads(answer)["response"]["convertedObjects"][0]["spec"] == {"replicas": 2}
    assert (await manager.admission.answer("/mounted/convert", review()))[0] == 200


def test_resource_without_conversion_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no version of it declares conversion=\[…\]"):
        Manager("gates").convert(custom_resource(Gate, "other.example.com", "v1"))
