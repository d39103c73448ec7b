"""Creates and updates: bodies, names, versions, preconditions, immutable fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH, YAML
from tests.real.contract.tables import CONFIGMAPS, DEPLOYMENT, DEPLOYMENTS, PODS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


A = f"{CONFIGMAPS}/a"


def configmap(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"metadata": {"name": "a", **metadata}}
    return said if data is None else said | {"data": data}


@pytest.mark.conformance("FK-02")
async def test_create(api: Conversation) -> None:
    answer = await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert answer.status == 201


@pytest.mark.conformance("FK-02")
async def test_create_of_an_existing_name_is_409(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert answer.status == 409


async def test_generate_name(api: Conversation) -> None:
    answer = await api("POST", CONFIGMAPS, {"metadata": {"generateName": "gen-"}})
    assert answer.metadata["name"].startswith("gen-")


METADATA: dict[str, dict[str, Any]] = {
    "no_name": {},
    "label_key": {"name": "a", "labels": {"a b": "c"}},
    "finalizer": {"name": "a", "finalizers": ["z"]},
    "version": {"name": "a", "resourceVersion": "1"},
    "self": {"name": "a", "uid": "x", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"},
}


@pytest.mark.parametrize("case", METADATA)
async def test_metadata_is_validated(api: Conversation, case: str) -> None:
    await api("POST", CONFIGMAPS, {"metadata": METADATA[case]})


async def test_create_in_another_namespace_is_400(api: Conversation) -> None:
    answer = await api("POST", CONFIGMAPS, configmap(namespace="other"))
    assert answer.status == 400


async def test_create_in_a_missing_namespace_is_404(api: Conversation) -> None:
    answer = await api("POST", "/api/v1/namespaces/{ns}-none/configmaps", configmap())
    assert answer.status == 404


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_put_at_an_old_version_conflicts(api: Conversation) -> None:
    first = await api.create(CONFIGMAPS, configmap())
    await api("PUT", A, configmap({"k": "v"}), recorded=False)
    answer = await api("PUT", A, first | {"data": {"k": "w"}})
    assert answer.status == 409


async def test_put_without_a_version_is_unconditional(api: Conversation) -> None:
    await api.create(CONFIGMAPS, configmap())
    answer = await api("PUT", A, configmap({"k": "v"}))
    assert answer.body["data"] == {"k": "v"}


async def test_put_with_another_uid_conflicts(api: Conversation) -> None:
    await api.create(CONFIGMAPS, configmap())
    answer = await api("PUT", A, configmap({"k": "v"}, uid="another"))
    assert answer.status == 409


async def test_unchanged_put_keeps_the_version(api: Conversation) -> None:
    await api("POST", CONFIGMAPS, configmap({"k": "v"}))
    await api("PUT", A, configmap({"k": "v"}))
    await api("PATCH", A, {}, content_type=MERGE_PATCH)


async def test_put_and_patch_of_a_missing_object_are_404(api: Conversation) -> None:
    await api("PUT", A, configmap())
    answer = await api("PATCH", A, {}, content_type=MERGE_PATCH)
    assert answer.status == 404


async def test_immutable_configmap_rejects_changes(api: Conversation) -> None:
    await api.create(CONFIGMAPS, configmap({"k": "v"}) | {"immutable": True})
    answer = await api("PUT", A, configmap({"k": "w"}))
    assert answer.status == 422


async def test_status_subresource_separates_spec_and_status(api: Conversation) -> None:
    await api("POST", DEPLOYMENTS, DEPLOYMENT | {"status": {"replicas": 9}})
    both = {"spec": {"replicas": 5}, "status": {"replicas": 1}}
    await api("PATCH", f"{DEPLOYMENTS}/a/status", both, content_type=MERGE_PATCH)
    answer = await api("PATCH", f"{DEPLOYMENTS}/a", both | {"status": {"replicas": 7}}, content_type=MERGE_PATCH)
    assert (answer.body["spec"]["replicas"], answer.body["status"]["replicas"]) == (5, 1)


async def test_put_of_status_ignores_the_spec(api: Conversation) -> None:
    made = await api.create(DEPLOYMENTS, DEPLOYMENT)
    await api("PUT", f"{DEPLOYMENTS}/a/status", made | {"status": {"replicas": 3}, "spec": {}})


@pytest.mark.parametrize(("change", "generation"), [("spec", 2), ("labels", 1), ("annotations", 2)])
async def test_generation_counts_spec_changes(api: Conversation, change: str, generation: int) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    said = {"spec": {"spec": {"replicas": 4}}}.get(change, {"metadata": {change: {"x": "y"}}})
    answer = await api("PATCH", f"{DEPLOYMENTS}/a", said, content_type=MERGE_PATCH)
    assert answer.metadata["generation"] == generation


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_dry_run_stores_nothing(api: Conversation, method: str) -> None:
    if method != "POST":
        await api("POST", CONFIGMAPS, configmap({"k": "v"}))
    path = CONFIGMAPS if method == "POST" else A
    content_type = MERGE_PATCH if method == "PATCH" else JSON
    body = None if method == "DELETE" else configmap({"k": "w"})
    await api(method, f"{path}?dryRun=All", body, content_type=content_type)
    answer = await api("GET", A)
    assert answer.status == (404 if method == "POST" else 200)


CONFIGMAP = {"metadata": {"name": "a"}}
TEXT = '{"metadata":{"name":"a"}}'


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


MALFORMED: dict[str, tuple[str, str]] = {
    "nothing": ("", JSON),
    "a_key": ("{broken", JSON),
    "no_type": (TEXT, ""),
    "plain_text": (TEXT, "text/plain"),
    "yaml": ("metadata:\n  name: a\ndata:\n  k: v\n", YAML),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_request_body_is_decoded(api: Conversation, case: str) -> None:
    text, content_type = MALFORMED[case]
    await api("POST", CONFIGMAPS, text, content_type=content_type)


TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "metadata": (CONFIGMAPS, {"metadata": "a"}),
    "labels": (CONFIGMAPS, {"metadata": {"name": "a", "labels": []}}),
    "data": (CONFIGMAPS, {"metadata": {"name": "a"}, "data": []}),
    "value": (CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": 1}}),
    "containers": (PODS, pod(containers={})),
    "quantity": (PODS, container(resources={"limits": {"cpu": "lots"}})),
    "int_or_string": (PODS, container(livenessProbe={"tcpSocket": {"port": True}})),
}


@pytest.mark.parametrize("case", TYPES)
async def test_field_types_are_checked_on_create(api: Conversation, case: str) -> None:
    path, body = TYPES[case]
    await api("POST", path, body)


MISTAKEN = pod(extra=1, containers=[{"name": "c", "image": "i", "env": [{"name": "E", "valu": "1"}]}]) | {"more": {}}


@pytest.mark.parametrize(
    "directive", ["", "Strict", "Warn", "Ignore", "Loud"], ids=["default", "strict", "warn", "ignore", "loud"]
)
async def test_field_validation_of_unknown_fields(api: Conversation, directive: str) -> None:
    answer = await api("POST", f"{PODS}?fieldValidation={directive}", MISTAKEN)
    assert answer.status == {"Strict": 400, "Loud": 422}.get(directive, 201)
