"""Changes of what a class makes of a document, carried over to the document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.client.changes.carrying import carried, json_patch
from aioinformer.testing.patches import json_patches

JSON = st.recursive(
    st.integers(0, 2) | st.booleans() | st.sampled_from(["", "a", "b/c~"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c~", ""]), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), JSON))
def test_json_patch_turns_one_document_into_another(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json_patches.same(json_patches.json_patch(old, json_patch(old, old, new)), new)


def test_json_patch_keeps_what_the_class_leaves_out() -> None:
    sent: dict[str, Any] = {"items": [{"name": "a", "other": 1}, {"name": "b", "other": 2}], "unknown": {}}
    old: dict[str, Any] = {"items": [{"name": "a", "size": 1}, {"name": "b", "size": 1}], "limits": {"most": 1}}
    new = {"items": [{"name": "c", "size": 1}, *old["items"]], "limits": {"most": 1}}
    changed = {"items": [old["items"][0], {"name": "b", "size": 2}], "limits": {"most": 2}}
    grown = {**sent, "items": [{"name": "c", "size": 1}, *sent["items"]]}
    assert json_patches.json_patch(sent, json_patch(sent, old, new)) == grown
    second = {"name": "b", "other": 2, "size": 2}
    expected = {**sent, "items": [sent["items"][0], second], "limits": {"most": 2}}
    assert json_patches.json_patch(sent, json_patch(sent, old, changed)) == expected


@pytest.mark.behaviour("C-130")
def test_json_patch_keeps_changed_neighbours_in_lists() -> None:
    names = "abcd"
    sent: dict[str, Any] = {"items": [{"name": name, "other": name} for name in names], "ports": [{"of": 1}, {"of": 2}]}
    old: dict[str, Any] = {"items": [{"name": name} for name in names], "ports": [{"port": 1}, {"port": 2}]}
    items = [{"name": "b", "size": 1}, {"name": "x"}, {"name": "c", "size": 2}, {"name": "d", "size": 3}]
    new = {"items": items, "ports": [{"port": 3}, {"port": 4}]}
    patch = json_patch(sent, old, new)
    assert json_patches.json_patch(sent, patch) == {
        "items": [
            {"name": "b", "other": "b", "size": 1},
            {"name": "x"},
            {"name": "c", "other": "c", "size": 2},
            {"name": "d", "other": "d", "size": 3},
        ],
        "ports": [{"of": 1, "port": 3}, {"of": 2, "port": 4}],
    }


@pytest.mark.behaviour("C-130")
def test_json_patch_keeps_the_unknown_fields_of_a_moved_element() -> None:
    sent = {"items": [{"name": "a", "other": 1}, {"name": "b", "other": 2}], "ports": [{"p": 1, "of": 1}, {"of": 2}]}
    old = {"items": [{"name": "a"}, {"name": "b"}], "ports": [{"p": 1}, {"p": 0}]}
    new = {"items": [{"name": "b", "size": 3}, {"name": "a"}], "ports": [{"p": 0}, {"p": 1}, {"p": 2}]}
    assert json_patches.json_patch(sent, json_patch(sent, old, new)) == {
        "items": [{"name": "b", "other": 2, "size": 3}, {"name": "a", "other": 1}],
        "ports": [{"of": 2}, {"p": 1, "of": 1}, {"p": 2}],
    }


def test_json_patch_does_not_give_an_element_the_fields_of_another() -> None:
    sent = {"items": [{"name": "a", "other": 1}]}
    patch = json_patch(sent, {"items": [{"name": "a"}]}, {"items": [{"name": "b"}]})
    assert json_patches.json_patch(sent, patch) == {"items": [{"name": "b"}]}


def recorded(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an object with the fields of one manager."""
    return {"managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": fields}]}


def of_spec(metadata: dict[str, Any], sent: list[Any], old: list[Any], new: list[Any]) -> Any:
    """Return what becomes of a list of a document."""
    document = {"metadata": metadata, "spec": {"ports": sent}}
    return carried(document, {"spec": {"ports": old}}, {"spec": {"ports": new}})["spec"]["ports"]


TCP: dict[str, Any] = {f'k:{{"port":{port},"protocol":"TCP"}}': {".": {}, "f:port": {}} for port in (80, 443, 53)}
PORTS = recorded({"f:spec": {"f:ports": TCP}})
SENT = [{"port": port, "protocol": "TCP", "nodePort": 30000 + port} for port in (80, 443, 53)]


@pytest.mark.behaviour("C-130")
def test_elements_are_known_by_the_recorded_keys() -> None:
    old = [{"port": 80}, {"port": 443}, {"port": 53}]
    new = [{"port": 53, "name": "dns"}, {"port": 443, "name": "https"}, {"port": 8080}]
    assert of_spec(PORTS, SENT, old, new) == [
        {"port": 53, "protocol": "TCP", "nodePort": 30053, "name": "dns"},
        {"port": 443, "protocol": "TCP", "nodePort": 30443, "name": "https"},
        {"port": 8080},
    ]


@pytest.mark.behaviour("C-130")
def test_recorded_key_precedes_the_name() -> None:
    old = [{"port": 80, "name": "a"}, {"port": 443, "name": "b"}]
    new = [{"port": 443, "name": "a"}]
    assert of_spec(PORTS, SENT[:2], old, new) == [{"port": 443, "protocol": "TCP", "nodePort": 30443, "name": "a"}]


def test_keys_of_lists_inside_of_elements_are_known() -> None:
    metadata = recorded({"f:spec": {"f:parts": {'k:{"name":"a"}': {"f:ports": {'k:{"port":1}': {}}}}}})
    sent = {
        "metadata": metadata,
        "spec": {"parts": [{"name": "a", "ports": [{"port": 1, "x": 1}, {"port": 2, "x": 2}]}]},
    }
    old = {"spec": {"parts": [{"name": "a", "ports": [{"port": 1, "type": "a"}, {"port": 2, "type": "b"}]}]}}
    new = {"spec": {"parts": [{"name": "a", "ports": [{"port": 2, "type": "a"}]}]}}
    assert carried(sent, old, new)["spec"]["parts"] == [{"name": "a", "ports": [{"port": 2, "x": 2, "type": "a"}]}]


@pytest.mark.behaviour("C-130")
def test_changed_element_beside_a_removed_one_keeps_its_fields() -> None:
    sent = [{"from": "a", "to": "x", "weight": 1}, {"from": "b", "to": "x", "weight": 2}]
    old = [{"from": "a", "to": "x"}, {"from": "b", "to": "x"}]
    assert of_spec({}, sent, old, [{"from": "b", "to": "y"}]) == [{"from": "b", "to": "y", "weight": 2}]
    grown = of_spec({}, sent, old, [{"from": "c", "to": "z"}, {"from": "a", "to": "y"}, {"from": "b", "to": "y"}])
    assert grown == [
        {"from": "c", "to": "z"},
        {"from": "a", "to": "y", "weight": 1},
        {"from": "b", "to": "y", "weight": 2},
    ]


def test_class_may_write_a_set_in_another_order() -> None:
    assert of_spec({}, ["a", "b", "c"], ["c", "a", "b"], ["c", "a"]) == ["c", "a"]
    sent = [{"name": "a", "x": 1}, {"name": "b", "x": 2}]
    old, new = [{"name": "b"}, {"name": "a"}], [{"name": "b", "y": 1}]
    assert of_spec({}, sent, old, new) == [{"name": "b", "x": 2, "y": 1}]


def test_class_may_drop_elements() -> None:
    sent = [{"name": "a", "x": 1}, {"name": "b", "x": 2}]
    assert of_spec({}, sent, [{"name": "b"}], [{"name": "b", "y": 1}]) == [{"name": "b", "x": 2, "y": 1}]


def test_maps_of_classes_keep_what_the_class_lacks() -> None:
    sent = {"spec": {"parts": {"a": {"x": 1, "size": 1}, "b": {"x": 2, "size": 1}}}}
    old = {"spec": {"parts": {"a": {"size": 1}, "b": {"size": 1}}}}
    new = {"spec": {"parts": {"b": {"size": 2}, "c": {"size": 3}}}}
    assert carried(sent, old, new) == {"spec": {"parts": {"b": {"x": 2, "size": 2}, "c": {"size": 3}}}}


ELEMENTS = st.lists(
    st.fixed_dictionaries({"port": st.integers(0, 9), "size": st.integers(0, 2), "other": st.integers(0, 99)}),
    unique_by=lambda each: each["port"],
    max_size=5,
)


@given(ELEMENTS, ELEMENTS)
def test_elements_with_keys_keep_exactly_their_own_fields(sent: list[Any], wanted: list[Any]) -> None:
    """Whatever is removed, added, moved and changed: each key keeps what the class lacks, and a new one has nothing."""
    metadata = recorded({"f:spec": {"f:ports": {f'k:{{"port":{each["port"]}}}': {} for each in sent}}})
    others = {each["port"]: each["other"] for each in sent}
    old, new = ([{"port": one["port"], "size": one["size"]} for one in several] for several in (sent, wanted))
    expected = [each | ({"other": others[each["port"]]} if each["port"] in others else {}) for each in new]
    assert of_spec(metadata, sent, old, new) == expected
