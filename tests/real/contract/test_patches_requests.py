"""Patch requests: content types, options, managers, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.contract.conversation import APPLY, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, YAML
from tests.real.contract.patched import deployment, setting
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
KINDS = {"merge": MERGE_PATCH, "strategic": STRATEGIC, "json": JSON_PATCH}


CONTENT_TYPES = {
    "json": JSON,
    "yaml": YAML,
    "none": "",
    "text": "text/plain",
    "merge": MERGE_PATCH,
    "merge_charset": f"{MERGE_PATCH}; charset=utf-8",
    "merge_spaces": f" {MERGE_PATCH} ",
    "merge_space_before_charset": f"{MERGE_PATCH} ;charset=utf-8",
    "merge_upper_case": "Application/Merge-Patch+JSON",
    "strategic_charset": f"{STRATEGIC};charset=UTF-8",
    "json_patch_charset": f"{JSON_PATCH}; charset=utf-8",
    "apply_json": "application/apply-patch+json",
    "apply_cbor": "application/apply-patch+cbor",
    "two": f"{MERGE_PATCH}, {STRATEGIC}",
    "any": "*/*",
    "malformed": ";",
}


@variants("content_type", CONTENT_TYPES)
async def test_content_types(api: Conversation, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    body = "[]" if content_type.startswith(JSON_PATCH) else '{"data":{"k":"v"}}'
    answer = await api("PATCH", A, body, content_type=content_type)
    assert answer.status in (200, 415)


async def test_missing_content_type_is_415(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", A)
    assert answer.status == 415


@variants("accept", {"yaml": YAML, "text": "text/plain", "any": "*/*"})
async def test_accept_header_selects_the_representation(api: Conversation, accept: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH, accept=accept)
    assert answer.status == (406 if accept == "text/plain" else 200)


OPTIONS = {
    "force": "force=true",
    "force_false": "force=false",
    "force_word": "force=maybe",
    "manager": "fieldManager=me",
    "long_manager": f"fieldManager={'m' * 129}",
    "longest_manager": f"fieldManager={'m' * 128}",
    "unprintable_manager": "fieldManager=a%0Ab",
    "empty_manager": "fieldManager=",
    "two_managers": "fieldManager=a&fieldManager=b",
    "dry_run": "dryRun=All",
    "dry_run_word": "dryRun=yes",
    "validation_word": "fieldValidation=maybe",
    "several": f"dryRun=yes&fieldValidation=maybe&force=true&fieldManager={'m' * 129}",
    "pretty": "pretty=true",
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


WRONG = {
    "words": "words",
    "cut": "{",
    "list": "[]",
    "map": "{}",
    "numbers": "[1]",
    "nothing": "",
    "operation": '[{"op":"remove","path":"/x"}]',
    "name": '{"metadata":{"name":"b"}}',
}


@variants("content_type", {**KINDS, "apply": APPLY})
@variants("text", WRONG)
async def test_missing_object_is_reported_before_a_bad_patch(api: Conversation, text: str, content_type: str) -> None:
    answer = await api("PATCH", f"{A}?fieldManager=me", text, content_type=content_type)
    assert answer.status in (400, 404)


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_all_invalid_options_are_reported(api: Conversation, method: str) -> None:
    path = CONFIGMAPS if method == "POST" else A
    answer = await api(method, f"{path}?{OPTIONS['several']}", {"metadata": {"name": "a"}})
    assert answer.status == 422


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_refused_request_also_returns_warnings(api: Conversation, method: str) -> None:
    path = CONFIGMAPS if method == "POST" else A
    answer = await api(method, path, {"metadata": {"name": "a", "labels": {"a b": ""}}, "dta": {}})
    assert "Warning" in answer.headers
