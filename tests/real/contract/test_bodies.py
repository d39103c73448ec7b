"""Request bodies: encoding, size, unknown fields, field types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, YAML
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS, PODS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
CONFIGMAP = {"metadata": {"name": "a"}}
TEXT = '{"metadata":{"name":"a"}}'


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


MALFORMED: dict[str, tuple[str, str]] = {
    "nothing": ("", JSON),
    "a_key": ("{broken", JSON),
    "a_comma": ('{"metadata":{"name":"a",}}', JSON),
    "an_end": ('{"metadata":{"name":"a"}', JSON),
    "a_value": ('{"metadata": nope}', JSON),
    "a_list": ("[]", JSON),
    "a_text": ('"x"', JSON),
    "a_number": ("1", JSON),
    "a_null": ("null", JSON),
    "two_values": (TEXT + TEXT, JSON),
    "no_type": (TEXT, ""),
    "a_charset": (TEXT, "application/json; charset=utf-8"),
    "plain_text": (TEXT, "text/plain"),
    "xml": (TEXT, "application/xml"),
    "patch": (TEXT, MERGE_PATCH),
    "yaml": ("metadata:\n  name: a\ndata:\n  k: v\n", YAML),
    "yaml_number": ("metadata:\n  name: a\ndata:\n  k: 1\n", YAML),
    "yaml_list": ("- a\n", YAML),
    "kind_is_a_number": ('{"kind":1,"metadata":{"name":"a"}}', JSON),
    "version_is_a_list": ('{"apiVersion":[],"metadata":{"name":"a"}}', JSON),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_request_body_is_decoded(api: Conversation, case: str) -> None:
    text, content_type = MALFORMED[case]
    answer = await api("POST", CONFIGMAPS, text, content_type=content_type)
    assert answer.status in (201, 400, 415, 422)


async def test_patch_with_unknown_content_type_is_415(api: Conversation) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    answer = await api("PATCH", A, "{}", content_type=JSON)
    assert answer.status == 415


async def test_put_with_unknown_content_type_is_415(api: Conversation) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    answer = await api("PUT", A, TEXT, content_type="text/plain")
    assert answer.status == 415


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_oversized_patch_is_413(api: Conversation) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    answer = await api("PATCH", A, {"data": {"a": "x" * 3_200_000}}, content_type=MERGE_PATCH)
    assert answer.status == 413


async def test_json_patch_over_10000_operations_is_413(api: Conversation) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    operation = {"op": "test", "path": "/metadata/name", "value": "a"}
    answer = await api("PATCH", A, [operation] * 10_001, content_type=JSON_PATCH)
    assert answer.status == 413


TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "metadata": (CONFIGMAPS, {"metadata": "a"}),
    "name": (CONFIGMAPS, {"metadata": {"name": 1}}),
    "label": (CONFIGMAPS, {"metadata": {"name": "a", "labels": {"a": 1}}}),
    "null_label": (CONFIGMAPS, {"metadata": {"name": "a", "labels": {"a": None}}}),
    "labels": (CONFIGMAPS, {"metadata": {"name": "a", "labels": []}}),
    "finalizers": (CONFIGMAPS, {"metadata": {"name": "a", "finalizers": "x"}}),
    "owners": (CONFIGMAPS, {"metadata": {"name": "a", "ownerReferences": {}}}),
    "time": (CONFIGMAPS, {"metadata": {"name": "a", "creationTimestamp": "yesterday"}}),
    "data": (CONFIGMAPS, {"metadata": {"name": "a"}, "data": []}),
    "value": (CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": 1}}),
    "flag": (CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": True}}),
    "bytes": (CONFIGMAPS, {"metadata": {"name": "a"}, "binaryData": {"k": "%"}}),
    "boolean": (CONFIGMAPS, {"metadata": {"name": "a"}, "immutable": "yes"}),
    "spec": (PODS, {"metadata": {"name": "a"}, "spec": []}),
    "containers": (PODS, pod(containers={})),
    "container": (PODS, pod(containers=["c"])),
    "image": (PODS, container(image=1)),
    "port": (PODS, container(ports=[{"containerPort": "80"}])),
    "large_port": (PODS, container(ports=[{"containerPort": 2**40}])),
    "fraction": (PODS, pod(activeDeadlineSeconds=1.5)),
    "quantity": (PODS, container(resources={"limits": {"cpu": "lots"}})),
    "quantity_number": (PODS, container(resources={"limits": {"cpu": 1}})),
    "int_or_string": (PODS, container(livenessProbe={"tcpSocket": {"port": True}})),
    "args": (PODS, container(args=[1])),
    "environment": (PODS, container(env=[{"name": "a", "value": 1}])),
    "replicas": (DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": {"replicas": "3"}}),
}


@pytest.mark.parametrize("case", TYPES)
async def test_field_types_are_checked_on_create(api: Conversation, case: str) -> None:
    path, body = TYPES[case]
    answer = await api("POST", path, body)
    assert answer.status in (201, 400)


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC, JSON_PATCH], ids=["merge", "strategic", "json"])
async def test_field_types_are_checked_on_patch(api: Conversation, content_type: str) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    body: Any = {"data": {"k": 1}}
    if content_type == JSON_PATCH:
        body = [{"op": "add", "path": "/data", "value": {"k": 1}}]
    answer = await api("PATCH", A, body, content_type=content_type)
    assert answer.status in (400, 422)


MISTAKEN = pod(extra=1, containers=[{"name": "c", "image": "i", "env": [{"name": "E", "valu": "1"}]}]) | {"more": {}}


@pytest.mark.parametrize(
    "directive", ["", "Strict", "Warn", "Ignore", "Loud"], ids=["default", "strict", "warn", "ignore", "loud"]
)
async def test_field_validation_of_unknown_fields(api: Conversation, directive: str) -> None:
    answer = await api("POST", f"{PODS}?fieldValidation={directive}", MISTAKEN)
    assert answer.status == {"Strict": 400, "Loud": 422}.get(directive, 201)


@pytest.mark.parametrize("directive", ["", "Strict"], ids=["default", "strict"])
async def test_field_validation_of_duplicate_yaml_keys(api: Conversation, directive: str) -> None:
    text = "metadata: {name: a}\ndata:\n  k: v\n  k: w\n"
    answer = await api("POST", f"{CONFIGMAPS}?fieldValidation={directive}", text, content_type=YAML)
    assert answer.status == (400 if directive == "Strict" else 201)


@pytest.mark.parametrize("directive", ["", "Strict"], ids=["default", "strict"])
async def test_field_names_are_case_sensitive(api: Conversation, directive: str) -> None:
    body = {"metadata": {"Name": "b", "name": "a"}, "Data": {"k": "v"}}
    answer = await api("POST", f"{CONFIGMAPS}?fieldValidation={directive}", body)
    assert answer.status == (400 if directive == "Strict" else 201)


async def test_put_reports_unknown_fields(api: Conversation) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    await api("PUT", A, CONFIGMAP | {"dta": {}})
    answer = await api("PUT", f"{A}?fieldValidation=Strict", CONFIGMAP | {"dta": {}})
    assert answer.status == 400


@pytest.mark.parametrize("directive", ["", "Strict"], ids=["default", "strict"])
@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC, JSON_PATCH], ids=["merge", "strategic", "json"])
async def test_strict_patch_error_shows_the_unknown_field(api: Conversation, content_type: str, directive: str) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    body: Any = {"dta": {"k": "v"}}
    if content_type == JSON_PATCH:
        body = [{"op": "add", "path": "/dta", "value": {"k": "v"}}]
    # With a field manager, the error would contain managed fields.
    answer = await api("PATCH", f"{A}?fieldValidation={directive}", body, content_type=content_type)
    assert answer.status == (422 if directive else 200)


async def test_field_manager_is_recorded(api: Conversation) -> None:
    answer = await api("POST", f"{CONFIGMAPS}?fieldManager=me", CONFIGMAP)
    assert answer.metadata["managedFields"][0]["manager"] == "me" if "managedFields" in answer.metadata else True


async def test_field_manager_must_be_printable(api: Conversation) -> None:
    answer = await api("POST", f"{CONFIGMAPS}?fieldManager=a%09b", CONFIGMAP)
    assert answer.status == 422
