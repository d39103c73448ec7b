"""JSON patches: operations and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON_PATCH, MERGE_PATCH
from tests.real.contract.tables import CONFIGMAPS, DEPLOYMENTS, PODS, variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


A = f"{CONFIGMAPS}/a"
CONFIGMAP: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "1", "example.com/y": "2"}, "finalizers": ["x/a", "x/b"]},
    "data": {"k": "v", "l": "w"},
}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def expect(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def move(start: str, path: str) -> dict[str, Any]:
    return {"op": "move", "from": start, "path": path}


def copy(start: str, path: str) -> dict[str, Any]:
    return {"op": "copy", "from": start, "path": path}


OPERATIONS: dict[str, list[Any]] = {
    "nothing": [],
    "add": [add("/data/n", "1")],
    "add_over": [add("/data/k", "1")],
    "add_map": [add("/metadata/annotations", {"a": "b"})],
    "add_without_a_value": [{"op": "add", "path": "/data/n"}],
    "add_below_nothing": [add("/metadata/annotations/a", "b")],
    "add_below_text": [add("/data/k/l", "b")],
    "add_escaped": [add("/metadata/labels/example.com~1z", "1"), add("/data/a~0c", "1")],
    "add_to_root": [add("", {"metadata": {"name": "a"}})],
    "append": [add("/metadata/finalizers/-", "x/c")],
    "insert_first": [add("/metadata/finalizers/0", "x/c")],
    "insert_at_the_end": [add("/metadata/finalizers/2", "x/c")],
    "insert_from_the_end": [add("/metadata/finalizers/-1", "x/c")],
    "remove": [remove("/data/k")],
    "remove_escaped": [remove("/metadata/labels/example.com~1y"), remove("/data/l")],
    "remove_nothing": [remove("/data/n")],
    "remove_below_nothing": [remove("/metadata/annotations/a")],
    "remove_twice": [remove("/data/k"), remove("/data/k")],
    "remove_all_data": [remove("/data")],
    "replace": [replace("/data/k", "1")],
    "replace_nothing": [replace("/data/n", "1")],
    "replace_below_nothing": [replace("/metadata/annotations/a", "1")],
    "replace_element": [replace("/metadata/finalizers/1", "x/c")],
    "replace_by_null": [replace("/data/k", None)],
    "replace_list": [replace("/metadata/finalizers", ["x/c"])],
    "replace_root": [replace("", {"metadata": {"name": "a"}, "data": {"r": "1"}})],
    "test": [expect("/data/k", "v"), add("/data/n", "1")],
    "test_other": [expect("/data/k", "w"), add("/data/n", "1")],
    "test_type": [expect("/data/k", 1)],
    "test_missing": [expect("/data/n", "w")],
    "test_list": [expect("/metadata/finalizers", ["x/a", "x/b"])],
    "test_map": [expect("/metadata/labels", {"example.com/y": "2", "x": "1"})],
    "test_kind": [expect("/kind", "ConfigMap"), expect("/apiVersion", "v1"), add("/data/n", "1")],
    "test_what_came_before": [add("/data/n", "1"), expect("/data/n", "1")],
    "move": [move("/data/k", "/data/n")],
    "move_element": [move("/metadata/finalizers/0", "/metadata/finalizers/1")],
    "move_into_itself": [move("/data", "/data/n")],
    "move_nothing": [move("/data/n", "/data/m")],
    "move_without_from": [{"op": "move", "path": "/data/n"}],
    "copy": [copy("/data/k", "/data/n")],
    "copy_list": [copy("/metadata/labels", "/metadata/annotations")],
    "several": [expect("/data/k", "v"), replace("/data/k", "w"), copy("/data/k", "/data/n"), remove("/data/l")],
    "unknown": [{"op": "frob", "path": "/data/k"}],
    "no_path": [{"op": "add", "value": "1"}],
    "more_fields": [add("/data/n", "1") | {"why": "because", "from": "/x"}],
}


@pytest.mark.conformance("FK-02")
@variants("operations", OPERATIONS)
async def test_operations_apply_in_order_or_not_at_all(api: Conversation, operations: list[Any]) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    answer = await api("PATCH", A, operations, content_type=JSON_PATCH)
    assert answer.status in (200, 400, 422, 500)
    await api("GET", A)
    await api("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False)


POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}}
DEEP: dict[str, list[Any]] = {
    "image": [replace("/spec/containers/1/image", "k")],
    "env": [add("/spec/template/spec/containers/0/env", [{"name": "A", "value": "1"}])],
    "env_below_nothing": [add("/spec/template/spec/containers/0/env/-", {"name": "A", "value": "1"})],
    "replicas": [expect("/spec/replicas", 1), replace("/spec/replicas", 3)],
    "container": [remove("/spec/template/spec/containers/1")],
    "nothing_changes": [replace("/spec/replicas", 1)],
}


@variants("operations", DEEP)
async def test_operations_on_list_elements(api: Conversation, operations: list[Any]) -> None:
    path = PODS if operations[0]["path"].startswith("/spec/containers") else DEPLOYMENTS
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    deployment = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    await api.create(path, POD if path == PODS else deployment)
    answer = await api("PATCH", f"{path}/a", operations, content_type=JSON_PATCH)
    assert answer.status in (200, 422)


FORMS: dict[str, str] = {
    "an_object": '{"op":"add"}',
    "null": "null",
    "words": "garbage",
    "nothing": "",
    "cut": '[{"op":"add"',
    "twice": '[{"op":"remove","op":"add","path":"/data/n","path":"/data/m","value":"1"}]',
}


@variants("text", FORMS)
async def test_json_patch_must_be_a_list(api: Conversation, text: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    answer = await api("PATCH", A, text, content_type=JSON_PATCH)
    assert answer.status in (200, 400, 422)


@pytest.mark.parametrize("count", [10_000, 10_001])
async def test_limit_of_10000_operations(api: Conversation, count: int) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", A, [expect("/metadata/name", "a")] * count, content_type=JSON_PATCH)
    assert answer.status == (200 if count == 10_000 else 413)
