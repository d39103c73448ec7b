"""JSON patches: operations and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON_PATCH, MERGE_PATCH
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS, PODS
from tests.real.contract.tables import variants

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
    "add_null": [add("/data/n", None)],
    "add_null_map": [add("/data", None)],
    "add_empty_map": [add("/data", {})],
    "add_without_a_value": [{"op": "add", "path": "/data/n"}],
    "add_below_nothing": [add("/metadata/annotations/a", "b")],
    "add_below_text": [add("/data/k/l", "b")],
    "add_escaped": [add("/metadata/labels/example.com~1z", "1"), add("/data/a~0c", "1")],
    "add_half_escaped": [add("/data/a~c", "1")],
    "add_escaped_twice": [add("/data/a~01c", "1"), move("/data/a~01c", "/data/n")],
    "remove_escaped_tilde": [add("/data/a~0c", "1"), remove("/data/a~0c")],
    "add_empty_key": [add("/data/", "1")],
    "add_to_root": [add("", {"metadata": {"name": "a"}})],
    "add_without_a_slash": [add("data/n", "1")],
    "add_with_two_slashes": [add("//data/n", "1")],
    "append": [add("/metadata/finalizers/-", "x/c")],
    "insert_first": [add("/metadata/finalizers/0", "x/c")],
    "insert_at_the_end": [add("/metadata/finalizers/2", "x/c")],
    "insert_behind_the_end": [add("/metadata/finalizers/3", "x/c")],
    "insert_from_the_end": [add("/metadata/finalizers/-1", "x/c")],
    "insert_before_the_start": [add("/metadata/finalizers/-4", "x/c")],
    "insert_at_a_word": [add("/metadata/finalizers/one", "x/c")],
    "insert_with_a_plus": [add("/metadata/finalizers/+1", "x/c")],
    "insert_with_zeros": [add("/metadata/finalizers/01", "x/c")],
    "insert_at_nothing": [add("/metadata/finalizers/", "x/c")],
    "remove": [remove("/data/k")],
    "remove_escaped": [remove("/metadata/labels/example.com~1y"), remove("/data/l")],
    "remove_nothing": [remove("/data/n")],
    "remove_below_nothing": [remove("/metadata/annotations/a")],
    "remove_last": [remove("/metadata/finalizers/-1")],
    "remove_dash": [remove("/metadata/finalizers/-")],
    "remove_behind_the_end": [remove("/metadata/finalizers/2")],
    "remove_root": [remove("")],
    "remove_twice": [remove("/data/k"), remove("/data/k")],
    "remove_all_data": [remove("/data")],
    "replace": [replace("/data/k", "1")],
    "replace_nothing": [replace("/data/n", "1")],
    "replace_below_nothing": [replace("/metadata/annotations/a", "1")],
    "replace_element": [replace("/metadata/finalizers/1", "x/c")],
    "replace_dash": [replace("/metadata/finalizers/-", "x/c")],
    "replace_behind_the_end": [replace("/metadata/finalizers/2", "x/c")],
    "replace_by_null": [replace("/data/k", None)],
    "replace_list": [replace("/metadata/finalizers", ["x/c"])],
    "replace_root": [replace("", {"metadata": {"name": "a"}, "data": {"r": "1"}})],
    "replace_root_by_a_list": [replace("", [])],
    "replace_root_by_text": [replace("", "x")],
    "replace_root_by_null": [replace("", None)],
    "test": [expect("/data/k", "v"), add("/data/n", "1")],
    "test_other": [expect("/data/k", "w"), add("/data/n", "1")],
    "test_other_late": [add("/data/n", "1"), expect("/data/k", "w")],
    "test_type": [expect("/data/k", 1)],
    "test_missing": [expect("/data/n", "w")],
    "test_missing_is_null": [expect("/data/n", None), add("/data/n", "1")],
    "test_null": [expect("/data/k", None)],
    "test_below_nothing": [expect("/metadata/annotations/a", None)],
    "test_list": [expect("/metadata/finalizers", ["x/a", "x/b"])],
    "test_list_in_another_order": [expect("/metadata/finalizers", ["x/b", "x/a"])],
    "test_map": [expect("/metadata/labels", {"example.com/y": "2", "x": "1"})],
    "test_without_a_value": [{"op": "test", "path": "/data/n"}],
    "test_root": [expect("", {})],
    "test_kind": [expect("/kind", "ConfigMap"), expect("/apiVersion", "v1"), add("/data/n", "1")],
    "test_what_came_before": [add("/data/n", "1"), expect("/data/n", "1")],
    "move": [move("/data/k", "/data/n")],
    "move_element": [move("/metadata/finalizers/0", "/metadata/finalizers/1")],
    "move_element_to_the_end": [move("/metadata/finalizers/0", "/metadata/finalizers/-")],
    "move_onto_itself": [move("/data/k", "/data/k")],
    "move_into_itself": [move("/data", "/data/n")],
    "move_nothing": [move("/data/n", "/data/m")],
    "move_without_from": [{"op": "move", "path": "/data/n"}],
    "move_with_a_value": [move("/data/k", "/data/n") | {"value": "x"}],
    "copy": [copy("/data/k", "/data/n")],
    "copy_list": [copy("/metadata/labels", "/metadata/annotations")],
    "copy_nothing": [copy("/data/n", "/data/m")],
    "copy_below_nothing": [copy("/metadata/annotations/a", "/data/m")],
    "copy_without_from": [{"op": "copy", "path": "/data/n"}],
    "copy_behind_the_end": [copy("/metadata/finalizers/2", "/metadata/finalizers/-")],
    "several": [expect("/data/k", "v"), replace("/data/k", "w"), copy("/data/k", "/data/n"), remove("/data/l")],
    "unknown": [{"op": "frob", "path": "/data/k"}],
    "upper_case": [{"op": "ADD", "path": "/data/n", "value": "1"}],
    "no_operation": [{"path": "/data/k"}],
    "empty": [{}],
    "no_path": [{"op": "add", "value": "1"}],
    "null_path": [{"op": "remove", "path": None}],
    "path_is_a_number": [{"op": "remove", "path": 5}],
    "operation_is_a_list": [{"op": [], "path": "/data"}],
    "from_is_a_map": [{"op": "move", "from": {}, "path": "/data"}],
    "more_fields": [add("/data/n", "1") | {"why": "because", "from": "/x"}],
    "upper_case_fields": [{"OP": "add", "Path": "/data/n", "value": "1"}],
    "a_number": [1],
    "a_null": [None],
    "a_list": [[]],
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
    "replicas_are_no_text": [expect("/spec/replicas", "1")],
    "replicas_are_no_fraction": [expect("/spec/replicas", 1.0), replace("/spec/replicas", 2.0)],
    "container": [remove("/spec/template/spec/containers/1")],
    "status": [add("/status/replicas", 3)],
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
    "a_text": '"x"',
    "a_number": "1",
    "null": "null",
    "words": "garbage",
    "nothing": "",
    "spaces": "  ",
    "cut": '[{"op":"add"',
    "a_comma": '[{"op":"add","path":"/data/n","value":"1"},]',
    "two_lists": "[][]",
    "twice": '[{"op":"remove","op":"add","path":"/data/n","path":"/data/m","value":"1"}]',
    "large_number": '[{"op":"add","path":"/data/n","value":1e999}]',
    "yaml": "- {op: add, path: /data/n, value: '1'}",
}


@variants("text", FORMS)
async def test_json_patch_must_be_a_list(api: Conversation, text: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    answer = await api("PATCH", A, text, content_type=JSON_PATCH)
    assert answer.status in (200, 400, 422)


@pytest.mark.parametrize("directive", ["Strict", "Ignore"])
@pytest.mark.parametrize(
    "case", ["more_fields", "upper_case_fields", "a_number", "path_is_a_number", "twice", "words", "null", "a_list"]
)
async def test_unknown_operation_fields(api: Conversation, case: str, directive: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    body = FORMS[case] if case in FORMS else OPERATIONS[case]
    answer = await api("PATCH", f"{A}?fieldValidation={directive}", body, content_type=JSON_PATCH)
    assert answer.status in (200, 400, 422)


@pytest.mark.parametrize("count", [10_000, 10_001])
async def test_limit_of_10000_operations(api: Conversation, count: int) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", A, [expect("/metadata/name", "a")] * count, content_type=JSON_PATCH)
    assert answer.status == (200 if count == 10_000 else 413)


REPEATED: dict[str, str] = {
    "map": '[{"op":"add","path":"/data","value":{"k":"1","k":"2"}}]',
    "map_in_map": '[{"op":"add","path":"/metadata/labels","value":{"x":"1","y":"2","x":"3"}}]',
    "operation_and_map": '[{"op":"add","path":"/x","path":"/data","more":1,"value":{"k":"1","k":"2"}}]',
    "into_it": '[{"op":"add","path":"/data","value":{"k":"1","k":"2"}},{"op":"add","path":"/data/n","value":"3"}]',
    "in_a_list": '[{"op":"add","path":"/metadata/ownerReferences","value":[{"uid":"u","uid":"v"}]}]',
    "unknown": '[{"op":"add","path":"/dta","value":{"k":"1","k":"2"}}]',
    "tested": '[{"op":"test","path":"/data","value":{"k":"1","k":"v"}}]',
    "twice_around": '[{"path":"/data","op":"remove","value":1,"value":2,"op":"add","value":{"k":"1"}}]',
}


@variants("directive", {"default": "", "strict": "Strict", "ignore": "Ignore"})
@variants("text", REPEATED)
async def test_duplicate_keys(api: Conversation, text: str, directive: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    answer = await api("PATCH", f"{A}?fieldValidation={directive}", text, content_type=JSON_PATCH)
    assert answer.status in (200, 422)
