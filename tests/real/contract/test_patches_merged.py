"""JSON merge patches, and strategic merge patches with the same effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH, STRATEGIC
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
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
    "same": {"data": {"k": "v"}},
    "new": {"data": {"n": "1"}, "binaryData": {"b": "AA=="}},
    "null": {"data": {"k": None}},
    "null_of_nothing": {"data": {"n": None}, "binaryData": None},
    "null_in_a_new_map": {"metadata": {"annotations": {"a": None, "b": "1"}}},
    "all_null": {"data": None, "metadata": {"labels": None}},
    "empty_map": {"data": {}},
    "empty_new_map": {"binaryData": {}},
    "list": {"metadata": {"finalizers": ["x/b", "x/a"]}},
    "empty_list": {"metadata": {"finalizers": []}},
    "text_for_a_map": {"data": "x"},
    "list_for_a_map": {"data": []},
    "map_for_a_text": {"data": {"k": {}}},
    "number_for_a_text": {"data": {"k": 1}},
    "map_for_a_list": {"metadata": {"finalizers": {}}},
    "text_for_a_list": {"metadata": {"finalizers": "x/a"}},
    "text_for_metadata": {"metadata": "x"},
    "no_metadata": {"metadata": None},
    "false": {"immutable": False},
    "true": {"immutable": True},
    "owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]}},
    "label": {"metadata": {"labels": {"a b": "c"}}},
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
    "null_in_an_element": {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "k", "tty": None}]}}}},
    "strategy": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    "surge": {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}},
    "surge_in_percent": {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": None}}}},
    "default": {"spec": {"replicas": None, "revisionHistoryLimit": None}},
    "replicas": {"spec": {"replicas": 0}},
    "large_replicas": {"spec": {"replicas": 2**40}},
    "fraction": {"spec": {"replicas": 1.5}},
    "whole_fraction": {"spec": {"replicas": 2.0}},
    "status": {"status": {"replicas": 3}},
    "annotation": {"metadata": {"annotations": {"a": "b"}}},
    "directive": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "k", "$patch": "merge"}]}}}},
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
    "a_number": "1",
    "null": "null",
    "words": "garbage",
    "nothing": "",
    "cut": '{"data":{"k"',
    "a_comma": '{"data":{"k":"v",}}',
    "two_values": "{}{}",
    "large_number": '{"data":{"k":1e999}}',
    "escape": '{"data":{"k":"\\x"}}',
    "half_a_pair": '{"data":{"k":"\\ud800"}}',
    "yaml": "data: {k: v}",
    "no_number": '{"data":{"k":NaN}}',
    "minus_infinity": '{"data":{"k":-Infinity}}',
    "minus": '{"data":{"k":-}}',
    "decimal_point": '{"data":{"k":1.}}',
    "exponent": '{"data":{"k":1e}}',
    "leading_zero": '{"data":{"k":01}}',
    "literal": '{"data":{"k":nul}}',
    "control": '{"data":{"k":"a\tb"}}',
    "hexadecimal": '{"data":{"k":"\\u12x4"}}',
    "open_text": '{"data":{"k":"a',
    "key_without_quotes": "{data:{}}",
    "key_alone": '{"data"}',
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


@variants("content_type", EITHER)
@pytest.mark.parametrize("case", ["a_list", "a_text", "null", "words", "nothing"])
async def test_non_object_patch_with_validation_ignore(api: Conversation, case: str, content_type: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", f"{A}?fieldValidation=Ignore", FORMS[case], content_type=content_type)
    assert answer.status in (200, 400, 422)
