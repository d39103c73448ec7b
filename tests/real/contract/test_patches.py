"""Patches: requests, merge patches, JSON patches, strategic merge patches, custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, YAML
from tests.real.contract.custom_resources import define, version, with_spec
from tests.real.contract.custom_resources import path as path_of
from tests.real.contract.custom_resources import widget as widget_of
from tests.real.contract.tables import (
    CONFIGMAPS,
    DEPLOYMENTS,
    NO_FINALIZERS,
    Row,
    deployment,
    in_deployment,
    in_metadata,
    setting,
    variants,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Conversation


A = f"{CONFIGMAPS}/a"
KINDS = {"merge": MERGE_PATCH, "strategic": STRATEGIC, "json": JSON_PATCH}


CONTENT_TYPES = {
    "json": JSON,
    "yaml": YAML,
    "merge": MERGE_PATCH,
    "merge_charset": f"{MERGE_PATCH}; charset=utf-8",
    "strategic_charset": f"{STRATEGIC};charset=UTF-8",
    "json_patch_charset": f"{JSON_PATCH}; charset=utf-8",
}


@variants("content_type", CONTENT_TYPES)
async def test_content_types(api: Conversation, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    body = "[]" if content_type.startswith(JSON_PATCH) else '{"data":{"k":"v"}}'
    await api("PATCH", A, body, content_type=content_type)


OPTIONS = {
    "long_manager": f"fieldManager={'m' * 129}",
    "dry_run": "dryRun=All",
    "unknown": "what=ever",
}


@variants("query", OPTIONS)
async def test_query_options(api: Conversation, query: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    await api("PATCH", f"{A}?{query}", {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    await api("GET", A)


@variants("content_type", KINDS)
async def test_field_manager_owns_patched_fields(api: Conversation, content_type: str) -> None:
    await api.create(f"{CONFIGMAPS}?fieldManager=one", {"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}})
    await api("PATCH", f"{A}?fieldManager=two", setting("/data/k", "x", content_type), content_type=content_type)
    answer = await api(
        "PATCH", f"{A}?fieldManager=two", setting("/data/k", "v", content_type), content_type=content_type
    )
    assert len(answer.metadata["managedFields"]) == 2


@variants("content_type", KINDS)
async def test_no_op_patch_keeps_version_and_managers(api: Conversation, content_type: str) -> None:
    await api.create(f"{DEPLOYMENTS}?fieldManager=one", deployment())
    path = f"{DEPLOYMENTS}/a?fieldManager=two"
    await api("GET", f"{DEPLOYMENTS}/a")
    answer = await api("PATCH", path, setting("/spec/replicas", 1, content_type), content_type=content_type)
    assert answer.metadata["generation"] == 1


CONFIGMAP: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}, "finalizers": ["x/a"]},
    "data": {"k": "v", "l": "w"},
}
CONTAINERS: list[dict[str, Any]] = [{"name": "c", "image": "i", "tty": True}, {"name": "d", "image": "j"}]
EITHER = {"merge": MERGE_PATCH, "strategic": STRATEGIC}

PATCHES: dict[str, Any] = {
    "value": {"data": {"k": "1"}},
    "null": {"data": {"k": None}},
    "list": {"metadata": {"finalizers": ["x/b", "x/a"]}},
    "text_for_a_map": {"data": "x"},
    "number_for_a_text": {"data": {"k": 1}},
    "many": {"metadata": {"labels": {"x": None, "z": "3"}}, "data": {"k": None, "l": "u", "m": "t"}},
}


@pytest.mark.conformance("FK-02")
@variants("content_type", EITHER)
@variants("patch", PATCHES)
async def test_merge_and_strategic_patch_of_a_configmap(api: Conversation, patch: Any, content_type: str) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    await api("PATCH", A, patch, content_type=content_type)
    await api("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False)


DEEP: dict[str, Any] = {
    "containers": {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "k"}]}}}},
    "strategy": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    "surge_in_percent": {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": None}}}},
    "default": {"spec": {"replicas": None, "revisionHistoryLimit": None}},
    "replicas": {"spec": {"replicas": 0}},
    "status": {"status": {"replicas": 3}},
}


@variants("content_type", EITHER)
@variants("patch", DEEP)
async def test_merge_and_strategic_patch_of_a_spec(api: Conversation, patch: Any, content_type: str) -> None:
    await api.create(DEPLOYMENTS, deployment(*CONTAINERS))
    await api("PATCH", f"{DEPLOYMENTS}/a", patch, content_type=content_type)


FORMS: dict[str, str] = {
    "a_list": "[]",
    "null": "null",
    "words": "garbage",
    "nothing": "",
    "cut": '{"data":{"k"',
    "no_number": '{"data":{"k":NaN}}',
}


@variants("content_type", EITHER)
@variants("text", FORMS)
async def test_merge_patch_must_be_an_object(api: Conversation, text: str, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    await api("PATCH", A, text, content_type=content_type)


TWO = deployment(*CONTAINERS)
ORDER = {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}
FINALIZERS = {"finalizers": ["x/a", "x/b", "x/c"]}
STRATEGIC_PATCHES: dict[str, Row] = {
    "containers": in_deployment(TWO, containers=[{"name": "d", "image": "k"}, {"name": "e", "image": "l"}]),
    "delete": in_deployment(TWO, containers=[{"name": "c", "$patch": "delete"}]),
    "replace_list": in_deployment(TWO, containers=[{"$patch": "replace"}, {"name": "e", "image": "k"}]),
    "retain": (DEPLOYMENTS, TWO, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    "delete_finalizers": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/z"]}),
    "order": in_deployment(TWO, containers=[{"name": "d", "tty": True}], **ORDER),
}


@variants("row", STRATEGIC_PATCHES)
async def test_strategic_merge_patch(api: Conversation, row: Row) -> None:
    path, made, patch = row
    await api.create(path, made)
    await api("PATCH", f"{path}/a", patch, content_type=STRATEGIC)
    await api("PATCH", f"{path}/a", NO_FINALIZERS, content_type=MERGE_PATCH, recorded=False)


@variants("content_type", EITHER)
@pytest.mark.parametrize("directive", ["Strict", "Warn", "Ignore"])
@variants("text", {"twice": '{"data":{"k":"1","k":"2"},"data":{"l":"3"}}', "case": '{"Data":{"k":"1"},"dta":{"m":1}}'})
async def test_field_validation_of_duplicate_and_unknown_fields(
    api: Conversation, text: str, directive: str, content_type: str
) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", f"{A}?fieldValidation={directive}", text, content_type=content_type)
    assert answer.status == (422 if directive == "Strict" else 200)


PATCHED: dict[str, Any] = {
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
    "add_map": [add("/metadata/annotations", {"a": "b"})],
    "add_below_nothing": [add("/metadata/annotations/a", "b")],
    "add_escaped": [add("/metadata/labels/example.com~1z", "1"), add("/data/a~0c", "1")],
    "append": [add("/metadata/finalizers/-", "x/c")],
    "remove": [remove("/data/k")],
    "remove_nothing": [remove("/data/n")],
    "replace": [replace("/data/k", "1")],
    "replace_nothing": [replace("/data/n", "1")],
    "test": [expect("/data/k", "v"), add("/data/n", "1")],
    "test_other": [expect("/data/k", "w"), add("/data/n", "1")],
    "move": [move("/data/k", "/data/n")],
    "copy": [copy("/data/k", "/data/n")],
    "several": [expect("/data/k", "v"), replace("/data/k", "w"), copy("/data/k", "/data/n"), remove("/data/l")],
    "no_path": [{"op": "add", "value": "1"}],
    "unknown": [{"op": "frob", "path": "/data/k"}],
}


@pytest.mark.conformance("FK-02")
@variants("operations", OPERATIONS)
async def test_operations_apply_in_order_or_not_at_all(api: Conversation, operations: list[Any]) -> None:
    await api.create(CONFIGMAPS, PATCHED)
    await api("PATCH", A, operations, content_type=JSON_PATCH)
    await api("GET", A)
    await api("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False)


SCHEMA = with_spec(
    size={"type": "integer", "default": 1},
    name={"type": "string"},
    items={"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
SCHEMA["properties"]["status"] = {"type": "object", "properties": {"phase": {"type": "string"}}}


@pytest.fixture
async def widget(api: Conversation) -> AsyncIterator[str]:
    """The path of a widget."""
    definition = await define(api, version(schema=SCHEMA, subresources={"status": {}}))
    content = {"items": [{"name": "x"}], "free": {"a": None, "b": {"c": "d"}}}
    await api.create(path_of(api), widget_of(api, spec=content))
    yield path_of(api, "a")
    await api("DELETE", definition, recorded=False)


CHANGES: dict[str, tuple[str, Any]] = {
    "size": ("/spec/size", 2),
    "type": ("/spec/size", "x"),
    "default": ("/spec/size", None),
    "list": ("/spec/items", [{"name": "y"}]),
    "type_of_element": ("/spec/items", ["y"]),
    "unknown": ("/spec/frob", 1),
    "free": ("/spec/free", {"e": {"f": [None, {"g": None}]}}),
    "status": ("/status", {"phase": "x"}),
    "kind": ("/kind", "Gadget"),
    "version": ("/apiVersion", "example.com/v1"),
    "name": ("/metadata/name", "b"),
    "namespace": ("/metadata/namespace", "other"),
    "uid": ("/metadata/uid", "b1a0d1a8-0000-0000-0000-000000000000"),
    "object_version": ("/metadata/resourceVersion", "1"),
    "label": ("/metadata/labels", {"a b": ""}),
    "finalizers": ("/metadata/finalizers", ["x/a"]),
}


@pytest.mark.parametrize("directive", ["Strict", "Warn"])
@variants("content_type", {"merge": MERGE_PATCH, "json": JSON_PATCH})
async def test_merge_and_json_patch(api: Conversation, widget: str, content_type: str, directive: str) -> None:
    for path, value in CHANGES.values():
        patch = setting(path, value, content_type)
        await api("PATCH", f"{widget}?dryRun=All&fieldValidation={directive}", patch, content_type=content_type)
    answer = await api("GET", widget)
    assert answer.body["spec"]["size"] == 1


async def test_unsupported_patch_types_are_415(api: Conversation, widget: str) -> None:
    for content_type in (STRATEGIC, JSON, "", "text/plain", f"{STRATEGIC}; charset=utf-8"):
        answer = await api("PATCH", widget, "{}", content_type=content_type)
        assert answer.status == 415


@variants("content_type", {"merge": MERGE_PATCH, "json": JSON_PATCH})
async def test_status_subresource_separates_patches(api: Conversation, widget: str, content_type: str) -> None:
    for path, value in (("/status", {"phase": "x"}), ("/spec/size", 5), ("/metadata/labels", {"x": "y"})):
        await api("PATCH", f"{widget}/status", setting(path, value, content_type), content_type=content_type)
    answer = await api("GET", widget)
    assert (answer.body["status"], answer.body["spec"]["size"]) == ({"phase": "x"}, 1)
