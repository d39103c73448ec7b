"""Predicates: which updates make a controller run."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from aioinformer.controller import (
    Change,
    annotations_changed,
    fields_changed,
    generation_changed,
    labels_changed,
    predicate,
)
from aioinformer.controller.inputs import content
from aioinformer.controller.predicates import condition_changed, content_changed, object_changed, version_changed
from aioinformer.errors import UsageError
from tests.unit.controller.inputs.inputs import document, update, view_of, widget


def small_only(change: Change) -> bool:
    return bool(change.new.spec["size"] < 2)


FINALIZED = {"finalizers": ["example.com/cleanup"]}


@pytest.mark.behaviour("C-19")
@pytest.mark.parametrize(
    "members",
    [
        {"status": {"ready": 1}},
        {"metadata": {"generation": 2}},
        {"metadata": {"managedFields": [{"manager": "other"}]}},
        {"metadata": {"managedFields": None}},
        {"status": {"ready": 1}, "metadata": {"generation": 2, "managedFields": []}},
    ],
)
def test_updates_without_new_content_do_not_count(members: dict[str, Any]) -> None:
    assert not content_changed(update(**members))


@pytest.mark.behaviour("C-20")
@pytest.mark.parametrize(
    "members",
    [
        {"spec": {"size": 2, "image": "a"}},
        {"spec": {"size": 1}},
        {"data": {"key": "value"}},
        {"metadata": {"labels": {"app": "shop"}}},
        {"metadata": {"annotations": None}},
        {"metadata": FINALIZED},
        {"metadata": {"deletionTimestamp": "2026-03-01T09:10:11Z"}},
        {"metadata": {"ownerReferences": [{"uid": "a"}]}},
        {"spec": {"size": True, "image": "a"}},
        {"spec": {"size": 1.0, "image": "a"}},
        {"spec": {"size": 1, "image": "a", "template": {"metadata": {"managedFields": []}}}},
    ],
)
def test_new_content_counts(members: dict[str, Any]) -> None:
    assert content_changed(update(**members))
    assert content_changed(update(**members, status={"ready": 1}))


@pytest.mark.behaviour("C-19")
@pytest.mark.parametrize("encoding", [{"sort_keys": True}, {"indent": 2}])
def test_formatting_of_the_json_is_no_content(encoding: dict[str, Any]) -> None:
    new = view_of(document(status={"ready": 1}, metadata={"resourceVersion": "2"}), **encoding)
    assert not content_changed(Change("updated", widget(), new))


@pytest.mark.behaviour("C-24")
def test_other_predicates_compare_their_part() -> None:
    status = update(status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert object_changed(status)
    assert version_changed(status)
    assert condition_changed("Ready")(status)
    assert not condition_changed("Available")(status)
    assert not generation_changed(status)
    assert generation_changed(update(metadata={"generation": 2}))
    assert labels_changed(update(metadata={"labels": None}))
    assert not labels_changed(status)
    assert annotations_changed(update(metadata={"annotations": {"note": "b"}}))
    assert not annotations_changed(status)
    assert fields_changed("spec.size")(update(spec={"size": 2, "image": "a"}))
    assert not fields_changed("spec.size", "metadata.labels['app']")(update(spec={"size": 1, "image": "b"}))
    assert not object_changed(update(metadata={"managedFields": []}))


@pytest.mark.behaviour("C-19")
def test_members_with_equal_bytes_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    monkeypatch.setattr(content, "decode", decoded.append)
    assert not content_changed(update(status={"ready": 1}))
    assert object_changed(update(status={"ready": 1}))
    assert decoded == []


@pytest.mark.behaviour("C-20")
def test_managed_fields_of_an_object_within_the_object_count() -> None:
    def state(manager: str) -> Any:
        template = {"metadata": {"name": "a", "managedFields": [{"manager": manager, "fieldsV1": {}}]}}
        return widget(metadata={"managedFields": None}, spec={"template": template})

    assert content_changed(Change("updated", state("kubectl"), state("other")))


@pytest.mark.behaviour("C-20")
def test_managed_fields_of_an_object_before_the_metadata_count() -> None:
    def state(manager: str) -> Any:
        metadata = {"name": "a", "managedFields": [{"manager": manager, "fieldsV1": {}}]}
        return {"data": {"metadata": metadata, "spec": {}}, "metadata": {"name": "web"}, "spec": {}}

    assert content_changed(Change("updated", state("kubectl"), state("other")))
    assert not fields_changed("spec")(Change("updated", state("kubectl"), state("other")))


@pytest.mark.behaviour("C-19", "C-20")
@pytest.mark.parametrize(
    ("member", "value", "counts"),
    [
        ("labels", {"a": "2"}, True),
        ("spec", 2, True),
        ("status", 2, False),
        ("generation", 2, False),
        ("time", 2, False),
    ],
)
def test_object_in_the_form_of_the_server_is_compared(member: str, value: Any, counts: bool) -> None:
    def state(**members: Any) -> Any:
        own = {"name": "web", "resourceVersion": str(members), "generation": members.get("generation", 1)}
        managed = [{"manager": "a", "time": members.get("time", 1), "fieldsV1": {"f:spec": {'k:{"a":"b"}': {}}}}]
        metadata = {**own, "labels": members.get("labels", {"a": "1"}), "managedFields": managed}
        rest = {"spec": members.get("spec", 1), "status": members.get("status", 1)}
        return {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": metadata, **rest}

    assert content_changed(Change("updated", state(), state(**{member: value}))) == counts


@pytest.mark.behaviour("C-24")
def test_paths_lead_through_lists() -> None:
    def state(*images: str) -> Any:
        return widget(spec={"containers": [{"image": each} for each in images]})

    second = fields_changed("spec.containers.1.image")
    assert second(Change("updated", state("a", "b"), state("a", "c")))
    assert not second(Change("updated", state("a", "b"), state("c", "b")))
    assert second(Change("updated", state("a"), state("a", "b")))
    assert not fields_changed("spec.containers.image")(Change("updated", state("a"), state("b")))


@pytest.mark.behaviour("C-24")
def test_steps_of_digits_lead_through_objects_too() -> None:
    def state(**data: str) -> Any:
        return widget(data=data)

    first = fields_changed("data.0")
    assert first(Change("updated", state(**{"0": "a"}), state(**{"0": "b"})))
    assert not first(Change("updated", state(**{"0": "a"}), state(**{"0": "a", "1": "b"})))
    assert not first(Change("updated", widget(data="a"), widget(data="b"))), "a text has no members"
    assert not first(Change("updated", widget(data=None), widget(data={})))
    assert fields_changed("data")(Change("updated", widget(data=None), widget(data={})))


@pytest.mark.behaviour("C-19", "C-20")
def test_members_that_are_omitted_by_lists_are_no_content() -> None:
    """A list has no kind and apiVersion of its items, and a new object no status."""
    listed = document(spec={"size": 1})
    del listed["status"]
    watched = {"kind": "Widget", "apiVersion": "example.com/v1", **listed}
    watched["metadata"] = {**watched["metadata"], "resourceVersion": "2", "generation": 2, "managedFields": []}
    for old, new in ((listed, watched), (watched, listed)):
        same = Change("updated", view_of(old), view_of(new))
        assert not content_changed(same)
        assert not object_changed(same)
        status = Change("updated", view_of(old), view_of({**new, "status": {}}))
        assert not content_changed(status)
        assert object_changed(status)


@pytest.mark.behaviour("C-24")
@pytest.mark.parametrize("storage", ["whole", "in part"])
def test_what_is_not_stored_may_have_changed(storage: str) -> None:
    def state(status: Any) -> Change:
        return Change("updated", widget(status=status), widget(status=status), whole=storage == "whole")

    dropped = storage == "in part"
    assert content_changed(state(None)) == object_changed(state(None)) == dropped
    assert condition_changed("Ready")(state({"conditions": []})) == dropped
    assert not condition_changed("Ready")(state({"conditions": [{"type": "Ready", "status": "True"}]}))
    assert fields_changed("spec.none")(state(None)) == dropped
    assert not fields_changed("spec.none", "spec.size")(state(None)), "one of them is stored"


@pytest.mark.behaviour("C-24")
def test_kinds_without_a_generation_pass() -> None:
    old, new = (widget(metadata={"generation": None}, data={"key": value}) for value in "ab")
    assert generation_changed(Change("updated", old, new))


@pytest.mark.behaviour("C-23")
def test_predicates_are_combined() -> None:
    both = update(metadata={"labels": {}, "generation": 2})
    labels = update(metadata={"labels": {}})
    assert (labels_changed & generation_changed)(both)
    assert not (labels_changed & generation_changed)(labels)
    assert (labels_changed | generation_changed)(labels)
    assert not (~labels_changed)(labels)


@pytest.mark.behaviour("C-23")
def test_added_objects_and_resyncs_pass_any_combination() -> None:
    obj = widget()
    for change in (Change("added", None, obj), Change("resync", obj, obj)):
        for each in (
            labels_changed,
            labels_changed | generation_changed,
            ~labels_changed,
            labels_changed & ~generation_changed,
            ~(labels_changed | object_changed),
        ):
            assert each(change), (each, change.trigger)


@pytest.mark.behaviour("C-23")
def test_a_function_decides_about_added_objects_too() -> None:
    small = predicate(lambda change: change.new.spec["size"] < 2)
    assert not (content_changed & small)(Change("added", None, widget(spec={"size": 2})))
    assert (content_changed & ~small)(Change("added", None, widget(spec={"size": 2})))


@pytest.mark.behaviour("C-23")
@pytest.mark.parametrize("trigger", ["added", "initial", "resync"])
@pytest.mark.parametrize("answer", [True, False])
def test_combination_with_a_function_knows_what_has_no_answer(trigger: Any, answer: bool) -> None:
    """The three values of Kleene's logic: no answer, with True or with False."""
    decided = predicate(lambda change: answer)
    change = Change(trigger, None if trigger != "resync" else widget(), widget())
    for unknown in labels_changed, ~labels_changed:
        for both in unknown & decided, decided & unknown:
            assert both(change) == answer
            assert (~both)(change), "the opposite has no answer, or passes"
        for either in unknown | decided, decided | unknown:
            assert either(change)
            assert (~either)(change) == (not answer)


@pytest.mark.behaviour("C-31")
def test_wrong_uses_are_refused() -> None:
    async def asynchronous(change: Change) -> bool:
        return True

    with pytest.raises(UsageError, match="coroutine function"):
        predicate(asynchronous)
    with pytest.raises(UsageError, match="combine predicates with &"):
        bool(labels_changed and generation_changed)
    with pytest.raises(UsageError, match="wrap a function"):
        labels_changed & (lambda change: True)  # type: ignore[operator]
    with pytest.raises(UsageError, match="returned NoneType; return True or False"):
        predicate(lambda change: None)(update())
    with pytest.raises(UsageError, match="returned coroutine; return True or False"):
        predicate(lambda change: asyncio.sleep(0))(update())
    with pytest.raises(UsageError, match="name the type of the condition"):
        condition_changed("")
    with pytest.raises(UsageError, match="name at least one field"):
        fields_changed()
    named = predicate(small_only)
    assert predicate(named) is named
    assert re.fullmatch(r"~\(small_only at .* & labels_changed\)", repr(~(named & labels_changed)))
