"""Patches of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.real.contract.patched import setting
from tests.real.contract.paths import DEFINITIONS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Conversation

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
    "nothing": ("/spec/size", 1),
    "size": ("/spec/size", 2),
    "whole_fraction": ("/spec/size", 2.0),
    "type": ("/spec/size", "x"),
    "default": ("/spec/size", None),
    "list": ("/spec/items", [{"name": "y"}]),
    "type_of_element": ("/spec/items", ["y"]),
    "unknown": ("/spec/frob", 1),
    "free": ("/spec/free", {"e": {"f": [None, {"g": None}]}}),
    "status": ("/status", {"phase": "x"}),
    "kind": ("/kind", "Gadget"),
    "no_kind": ("/kind", None),
    "version": ("/apiVersion", "example.com/v1"),
    "malformed_version": ("/apiVersion", "a/b/c"),
    "no_version": ("/apiVersion", None),
    "name": ("/metadata/name", "b"),
    "namespace": ("/metadata/namespace", "other"),
    "uid": ("/metadata/uid", "b1a0d1a8-0000-0000-0000-000000000000"),
    "no_uid": ("/metadata/uid", None),
    "object_version": ("/metadata/resourceVersion", "1"),
    "no_object_version": ("/metadata/resourceVersion", None),
    "managers": ("/metadata/managedFields", []),
    "metadata": ("/metadata", None),
    "label": ("/metadata/labels", {"a b": ""}),
    "label_is_a_number": ("/metadata/labels", {"a": 1}),
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


FORMS = ["garbage", "null", '"x"', "[]", '{"spec":{"size":2,"size":3}}', '{"spec":{"free":{"a":1,"a":2}}}']


@variants("content_type", {"merge": MERGE_PATCH, "json": JSON_PATCH, "apply": APPLY})
async def test_malformed_patches_are_refused(api: Conversation, widget: str, content_type: str) -> None:
    for text in FORMS:
        query = "dryRun=All&fieldValidation=Strict" + ("&fieldManager=me" if content_type == APPLY else "")
        answer = await api("PATCH", f"{widget}?{query}", text, content_type=content_type)
        assert answer.status in (200, 400, 422)


@variants("content_type", {"merge": MERGE_PATCH, "json": JSON_PATCH})
async def test_status_subresource_separates_patches(api: Conversation, widget: str, content_type: str) -> None:
    for path, value in (("/status", {"phase": "x"}), ("/spec/size", 5), ("/metadata/labels", {"x": "y"})):
        await api("PATCH", f"{widget}/status", setting(path, value, content_type), content_type=content_type)
    answer = await api("GET", widget)
    assert (answer.body["status"], answer.body["spec"]["size"]) == ({"phase": "x"}, 1)
