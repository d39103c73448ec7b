"""Patches: requests, merge patches, strategic merge patches with the same effect, custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, YAML
from tests.real.contract.tables import CONFIGMAPS, DEFINITIONS, DEPLOYMENTS, deployment, setting, variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Conversation


A = f"{CONFIGMAPS}/a"
KINDS = {"merge": MERGE_PATCH, "strategic": STRATEGIC, "json": JSON_PATCH}


CONTENT_TYPES = {
    "json": JSON,
    "yaml": YAML,
    "none": "",
    "merge": MERGE_PATCH,
    "merge_charset": f"{MERGE_PATCH}; charset=utf-8",
    "merge_upper_case": "Application/Merge-Patch+JSON",
    "strategic_charset": f"{STRATEGIC};charset=UTF-8",
    "json_patch_charset": f"{JSON_PATCH}; charset=utf-8",
    "malformed": ";",
}


@variants("content_type", CONTENT_TYPES)
async def test_content_types(api: Conversation, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    body = "[]" if content_type.startswith(JSON_PATCH) else '{"data":{"k":"v"}}'
    answer = await api("PATCH", A, body, content_type=content_type)
    assert answer.status in (200, 415)


OPTIONS = {
    "force": "force=true",
    "manager": "fieldManager=me",
    "long_manager": f"fieldManager={'m' * 129}",
    "unprintable_manager": "fieldManager=a%0Ab",
    "dry_run": "dryRun=All",
    "dry_run_word": "dryRun=yes",
    "validation_word": "fieldValidation=maybe",
    "unknown": "what=ever",
}


@variants("query", OPTIONS)
async def test_query_options(api: Conversation, query: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", f"{A}?{query}", {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    assert answer.status in (200, 400, 422)
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
CONTAINERS = [{"name": "c", "image": "i", "tty": True}, {"name": "d", "image": "j"}]
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}},
    },
}
EITHER = {"merge": MERGE_PATCH, "strategic": STRATEGIC}

PATCHES: dict[str, Any] = {
    "nothing": {},
    "value": {"data": {"k": "1"}},
    "null": {"data": {"k": None}},
    "null_in_a_new_map": {"metadata": {"annotations": {"a": None, "b": "1"}}},
    "list": {"metadata": {"finalizers": ["x/b", "x/a"]}},
    "text_for_a_map": {"data": "x"},
    "list_for_a_map": {"data": []},
    "number_for_a_text": {"data": {"k": 1}},
    "true": {"immutable": True},
    "many": {"metadata": {"labels": {"x": None, "z": "3"}}, "data": {"k": None, "l": "u", "m": "t"}},
}


@pytest.mark.conformance("FK-02")
@variants("content_type", EITHER)
@variants("patch", PATCHES)
async def test_merge_and_strategic_patch_of_a_configmap(api: Conversation, patch: Any, content_type: str) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    answer = await api("PATCH", A, patch, content_type=content_type)
    assert answer.status in (200, 400, 422)
    await api("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False)


DEEP: dict[str, Any] = {
    "containers": {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "k"}]}}}},
    "strategy": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    "surge_in_percent": {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": None}}}},
    "default": {"spec": {"replicas": None, "revisionHistoryLimit": None}},
    "replicas": {"spec": {"replicas": 0}},
    "fraction": {"spec": {"replicas": 1.5}},
    "status": {"status": {"replicas": 3}},
}


@variants("content_type", EITHER)
@variants("patch", DEEP)
async def test_merge_and_strategic_patch_of_a_spec(api: Conversation, patch: Any, content_type: str) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    answer = await api("PATCH", f"{DEPLOYMENTS}/a", patch, content_type=content_type)
    assert answer.status in (200, 422, 500)


FORMS: dict[str, str] = {
    "a_list": "[]",
    "a_text": '"x"',
    "null": "null",
    "words": "garbage",
    "nothing": "",
    "cut": '{"data":{"k"',
    "two_values": "{}{}",
    "no_number": '{"data":{"k":NaN}}',
}


@variants("content_type", EITHER)
@variants("text", FORMS)
async def test_merge_patch_must_be_an_object(api: Conversation, text: str, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", A, text, content_type=content_type)
    assert answer.status in (200, 400, 422)


@variants("content_type", EITHER)
@pytest.mark.parametrize("directive", ["Strict", "Warn", "Ignore"])
@variants("text", {"twice": '{"data":{"k":"1","k":"2"},"data":{"l":"3"}}', "case": '{"Data":{"k":"1"},"dta":{"m":1}}'})
async def test_field_validation_of_duplicate_and_unknown_fields(
    api: Conversation, text: str, directive: str, content_type: str
) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", f"{A}?fieldValidation={directive}", text, content_type=content_type)
    assert answer.status == (422 if directive == "Strict" else 200)


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "name": {"type": "string"},
                "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


@pytest.fixture
async def widget(api: Conversation) -> AsyncIterator[str]:
    """The path of a widget."""
    group = f"{api.namespace}.example.com"
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    }
    definition = f"{DEFINITIONS}/widgets.{group}"
    await api.create(DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": spec})
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await api.poll(path, lambda answer: answer.status == 200, recorded=False)
    content = {"items": [{"name": "x"}], "free": {"a": None, "b": {"c": "d"}}}
    await api.create(
        path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {**content}}
    )
    yield f"{path}/a"
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
