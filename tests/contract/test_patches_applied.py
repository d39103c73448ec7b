"""Apply patches: YAML and its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.conversation import APPLY
from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"

APPLIED: dict[str, str] = {
    "json": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}',
    "yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n",
    "yaml_types": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: yes, l: ~}\n",
    "twice": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n  k: w\n",
    "json_twice": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"}}',
    "twice_two": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, name: a}\ndata:\n  k: v\n  k: w\n",
    "two_documents": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Secret\n",
    "anchors": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: &x v, l: *x}\n",
    "a_list": "- a\n",
    "a_text": "x",
    "a_number": "1",
    "null": "null",
    "nothing": "",
    "tab": "a:\n\t- b",
    "cut": '{"apiVersion":',
    "no_kind": "apiVersion: v1\nmetadata: {name: a}\n",
    "no_name": "apiVersion: v1\nkind: ConfigMap\ndata: {k: v}\n",
    "metadata_is_a_list": "apiVersion: v1\nkind: ConfigMap\nmetadata: []\n",
    "name_is_a_number": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n",
    "version_is_a_number": "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "kind_is_a_list": "apiVersion: v1\nkind: []\nmetadata: {name: a}\n",
    "data_is_a_list": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: []\n",
    "namespace": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n",
    "number_for_a_text": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 1.5}\n",
    "map_for_a_text": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: {b: x, a: [1]}}\n",
    "text_for_a_map": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: x\n",
    "text_for_a_flag": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: 'yes'\n",
    "block_end": "apiVersion: v1\nkind: ConfigMap\n metadata: {}\n",
    "flow_end": "apiVersion: v1\nkind: {a: b\nmetadata: {}\n",
    "colon": "apiVersion: v1: v2\n",
    "alias": "apiVersion: *x\n",
    "uid": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: b1a0d1a8-0000-0000-0000-000000000000}\n",
    "version": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: '1'}\n",
    "unknown": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {k: v}\n",
}


@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
@variants("text", APPLIED)
async def test_apply_body_is_yaml(api: Conversation, text: str, there: bool) -> None:
    if there:
        await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("PATCH", f"{A}?fieldManager=me", text, content_type=APPLY)
    assert answer.status in (200, 201, 400, 409, 422, 500)


@pytest.mark.parametrize("directive", ["Strict", "Ignore"])
@pytest.mark.parametrize("case", ["twice", "json_twice", "unknown"])
async def test_field_validation_of_apply(api: Conversation, case: str, directive: str) -> None:
    query = f"fieldManager=me&fieldValidation={directive}"
    answer = await api("PATCH", f"{A}?{query}", APPLIED[case], content_type=APPLY)
    assert answer.status in (201, 400, 500)
