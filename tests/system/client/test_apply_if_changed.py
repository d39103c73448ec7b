"""Server-side apply is skipped where the cached managed fields prove that it changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, HttpTransport, SharedIndexInformer, SharedInformerFactory, UsageError
from aioinformer.client.changes.applied import difference
from aioinformer.client.changes.patches import document_of
from tests.support.deployment_changes import CHANGES, DEPLOYMENT, MAIN, POD, changed
from tests.system.client.counting import Counting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cache import StorageTier
    from aioinformer.testing import ApiServer


@pytest.fixture
async def counting(own_server: ApiServer, client: Client) -> AsyncIterator[Counting]:
    async with HttpTransport(own_server.url, token="token") as transport:
        yield Counting(transport)


@pytest.fixture
def applying(counting: Counting) -> Client:
    return Client(counting, namespace="shop", field_manager="tests")


def reason_of(desired: Any, cached: Any, manager: str = "tests") -> str:
    return difference(desired, document_of(cached), manager, "shop")


async def test_second_apply_of_the_same_is_skipped(applying: Client, counting: Counting) -> None:
    deployments = applying.apps.v1.deployments
    first = await deployments.apply_if_changed(DEPLOYMENT, None)
    assert (first.skipped, first.reason) == (False, "the object is not in the cache")
    counting.requests.clear()
    second = await deployments.apply_if_changed(DEPLOYMENT, first.object)
    assert (second.skipped, second.reason) == (True, "")
    assert second.object is first.object
    assert counting.requests == []


async def test_any_change_is_sent(client: Client) -> None:
    cached = await client.apps.v1.deployments.apply(DEPLOYMENT)
    assert [desired for desired in CHANGES if not reason_of(desired, cached)] == []


async def test_default_of_a_key_is_no_change(client: Client) -> None:
    desired = changed(*MAIN, "ports", to=[{"containerPort": 80}])
    cached = await client.apps.v1.deployments.apply(desired)
    assert reason_of(desired, cached) == ""
    assert reason_of(changed(*MAIN, "ports", to=[{"containerPort": 80, "protocol": "UDP"}]), cached)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*MAIN, "env", 0, "value"), ""),
        ((*MAIN, "args"), []),
        ((*MAIN, "command"), []),
        ((*MAIN, "volumeDevices"), []),
        ((*MAIN, "resources", "limits"), {"cpu": "1000m", "memory": "1024Mi"}),
        ((*MAIN, "resources", "limits"), {"cpu": 1, "memory": "0.5Gi"}),
        ((*MAIN, "resources", "requests"), {}),
        ((*POD, "nodeSelector"), {}),
        ((*POD, "tolerations"), []),
        ((*POD, "hostNetwork"), False),
        (("metadata", "labels"), {}),
        (("metadata", "finalizers"), []),
    ],
)
async def test_values_that_the_server_stores_in_another_form_are_skipped(
    client: Client, path: tuple[Any, ...], value: Any
) -> None:
    desired = changed(*path, to=value)
    cached = await client.apps.v1.deployments.apply(desired)
    assert reason_of(desired, cached) == ""
    created = await client.apps.v1.deployments.apply_new({**desired, "metadata": {**desired["metadata"], "name": "b"}})
    assert reason_of({**desired, "metadata": {**desired["metadata"], "name": "b"}}, created) == ""


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ((*POD, "automountServiceAccountToken"), None, False),  # pointers keep what is set
        ((*POD, "terminationGracePeriodSeconds"), 30, 0),
        ((*POD, "tolerations"), ..., []),  # the manager would own the field
        (("metadata", "annotations"), {"a": "b"}, {}),
        ((*MAIN, "resources", "limits", "cpu"), "1", "1e0"),
        ((*POD, "nodeSelector"), {}, {"disk": "fast"}),
    ],
)
async def test_values_that_would_be_stored_are_sent(
    client: Client, path: tuple[Any, ...], before: Any, after: Any
) -> None:
    first = changed(*path, to=before) if before is not ... else DEPLOYMENT
    cached = await client.apps.v1.deployments.apply(first)
    assert reason_of(changed(*path, to=after), cached)


@pytest.mark.parametrize(
    ("kind", "labels", "same"),
    [
        ("ConfigMap", {}, True),  # merged with the labels of others
        ("ConfigMap", {"a": "b"}, False),  # the manager would own the label
        ("Pod", {}, True),
        ("Pod", {"a": "b"}, False),
    ],
)
def test_map_recorded_without_members_is_merged_with_those_of_others(kind: str, labels: Any, same: bool) -> None:
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {}, "f:annotations": {"f:c": {}}}}
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    metadata = {"name": "a", "annotations": {"c": ""}}
    desired = {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, "labels": labels}}
    cached = {**desired, "metadata": {**metadata, "labels": {"a": "b"}, "managedFields": [entry]}}
    assert (difference(desired, document_of(cached), "m") == "") is same


def test_fields_of_a_creation_whose_first_change_was_refused_prove_nothing() -> None:
    """They are recorded as those of a write, with the map itself."""
    fields: dict[str, Any] = {"f:data": {".": {}, "f:a": {}}}
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    desired = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
    cached = {**desired, "metadata": {"name": "a", "managedFields": [entry]}}
    assert "recorded as written" in difference(desired, document_of(cached), "m")


async def test_field_that_another_manager_took_over_is_sent(client: Client) -> None:
    deployments = client.apps.v1.deployments
    await deployments.apply(DEPLOYMENT)
    cached = await deployments.patch("web", {"spec": {"replicas": 5}}, field_manager="another")
    assert reason_of(DEPLOYMENT, cached)
    same = await deployments.patch("web", {"spec": {"replicas": 2}}, field_manager="another")
    assert reason_of(DEPLOYMENT, same)  # the field is no longer this manager's


async def test_written_but_not_applied_fields_prove_nothing(client: Client) -> None:
    made = await client.apps.v1.deployments.create(DEPLOYMENT)
    assert "no managed fields of tests" in reason_of(DEPLOYMENT, made)


async def test_status_is_proven_by_its_own_record(client: Client, applying: Client, counting: Counting) -> None:
    await client.apps.v1.deployments.apply(DEPLOYMENT)
    status = {**changed("spec"), "metadata": {"name": "web"}, "status": {"replicas": 2}}
    cached = await client.apps.v1.deployments.status.apply(status)
    assert (await applying.apps.v1.deployments.status.apply_if_changed(status, cached)).skipped
    assert reason_of(DEPLOYMENT, cached) == ""
    assert reason_of(status, cached)  # as a write of the object itself


@pytest.mark.parametrize(
    ("storage", "skipped"),
    [("bytes", True), ("compressed", True), ("dict", True), ("stripped", False), ("metadata", False)],
)
async def test_tiers_without_managed_fields_always_send(
    own_server: ApiServer, applying: Client, storage: StorageTier, skipped: bool
) -> None:
    deployments = applying.apps.v1.deployments
    await deployments.apply(DEPLOYMENT)
    async with HttpTransport(own_server.url, token="token") as transport, SharedInformerFactory(transport) as factory:
        informer: SharedIndexInformer[Any] = factory.apps.v1.deployments.informer(storage=storage)
        await factory.wait_for_cache_sync(timeout=50)
        cached = informer.lister().get("shop/web")
        assert (await deployments.apply_if_changed(DEPLOYMENT, cached)).skipped is skipped


async def test_dry_run_is_always_sent(applying: Client, counting: Counting) -> None:
    cached = await applying.apps.v1.deployments.apply(DEPLOYMENT)
    result = await applying.apps.v1.deployments.apply_if_changed(DEPLOYMENT, cached, dry_run=True)
    assert (result.skipped, result.reason) == (False, "dry run")


async def test_apply_if_changed_needs_a_field_manager(counting: Counting) -> None:
    with pytest.raises(UsageError, match=r"apply_if_changed\(\) needs a field manager"):
        await Client(counting).apps.v1.deployments.apply_if_changed(DEPLOYMENT, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"f:spec": {"f:parts": {"i:0": {}}}},
        {"f:spec": {"f:parts": {"k:{broken": {}}}},
        {"f:spec": {"f:parts": {'k:"x"': {}}}},
        {"f:spec": {"f:parts": {"v:1": {}, 'k:{"name":"p"}': {}}}},
        {"f:spec": {"f:size": {"f:deep": {}}, "f:parts": {}}},
        {"f:spec": None},
        {"f:spec": {"f:size": {}}},
        [],
        None,
    ],
)
def test_odd_records_prove_nothing(fields: Any) -> None:
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "e/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    spec = {"size": 1, "parts": [{"name": "p"}]}
    desired = {"apiVersion": "e/v1", "kind": "W", "metadata": {"name": "a"}, "spec": spec}
    cached = {**desired, "metadata": {"name": "a", "managedFields": [entry]}}
    assert difference(desired, document_of(cached), "m")


@pytest.mark.parametrize(
    ("entry", "same"),
    [
        ({}, True),
        ({"apiVersion": "e/v1beta1"}, False),
        ({"fieldsType": "FieldsV2"}, False),
        ({"operation": "Update"}, False),
        ({"manager": "another"}, False),
        ({"subresource": "status"}, False),
    ],
)
def test_record_of_this_version_and_manager_alone_is_a_proof(entry: Any, same: bool) -> None:
    own = {"manager": "m", "operation": "Apply", "apiVersion": "e/v1", "fieldsType": "FieldsV1"}
    desired = {"apiVersion": "e/v1", "kind": "W", "metadata": {"name": "a"}, "spec": {"size": 1}}
    managed = [{**own, "fieldsV1": {"f:spec": {"f:size": {}}}, **entry}]
    cached = {**desired, "metadata": {"name": "a", "managedFields": managed}}
    assert (difference(desired, document_of(cached), "m") == "") is same
