"""`Client.apply_all`: the order, and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, HttpTransport, UsageError, load_manifests
from aioinformer.client import ApplyFailed
from aioinformer.crds import custom_resource
from aioinformer.testing import ApiServer
from tests.support.declared_classes import Website

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WEBSITES = custom_resource(Website, "example.com", "v1")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with HttpTransport(server.url) as transport:
        yield Client(transport, field_manager="test")


def website(name: str = "web", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": {"image": "nginx", **spec}}


def config_map(name: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "web"}}}


async def test_namespaces_and_definitions_come_first(server: ApiServer, client: Client) -> None:
    report = await client.apply_all([website(), config_map("c"), WEBSITES.crd(), NAMESPACE], namespace="shop")
    assert [each.title for each in report.of("created")] == [
        "Namespace shop",
        "CustomResourceDefinition websites.example.com",
        "Website shop/web",
        "ConfigMap c",
    ]
    assert server.get("configmaps", "c", namespace="shop")


async def test_second_run_reports_what_it_changed(client: Client) -> None:
    objects = [NAMESPACE, WEBSITES.crd(), website(), config_map("c", a="1")]
    await client.apply_all(objects, namespace="shop")
    report = await client.apply_all([*objects[:3], config_map("c", a="2")], namespace="shop")
    assert [each.title for each in report.of("changed")] == ["ConfigMap c"]
    assert len(report.of("unchanged")) == 3
    assert str(report).splitlines()[-1] == "ConfigMap c changed"


async def test_refused_object_does_not_keep_the_others_from_being_applied(client: Client) -> None:
    text = f"{config_map('Wrong')}\n---\n{config_map('right')}\n"
    with pytest.raises(
        ApplyFailed, match=r"1 of 2 objects were not applied; the first: line 1: ConfigMap Wrong"
    ) as caught:
        await client.apply_all(load_manifests(text), namespace="default")
    assert [each.change for each in caught.value.report.objects] == ["failed", "created"]
    assert caught.value.report.failed[0].error is not None


async def test_field_of_another_manager_is_a_conflict_unless_forced(client: Client) -> None:
    await client.with_options(field_manager="other").apply_all([config_map("c", a="1")], namespace="default")
    with pytest.raises(ApplyFailed, match="conflict"):
        await client.apply_all([config_map("c", a="2")], namespace="default")
    report = await client.apply_all([config_map("c", a="2")], namespace="default", force=True)
    assert report.objects[0].object.data == {"a": "2"}


async def test_definition_whose_names_are_taken_is_reported(client: Client) -> None:
    await client.apply_all([WEBSITES.crd()])
    other = custom_resource(Website, "example.com", "v1", plural="sites", kind="Website")
    with pytest.raises(ApplyFailed, match=r"sites\.example\.com failed: the server does not serve it after 0\.2 s: "):
        await client.apply_all([other.crd()], wait=0.2)


async def test_kind_that_is_not_served_is_named(client: Client) -> None:
    with pytest.raises(ApplyFailed, match="Website shop/web failed"):
        await client.apply_all([website()])


async def test_nothing_is_sent_without_a_field_manager_or_a_kind(server: ApiServer, client: Client) -> None:
    with pytest.raises(UsageError, match="field_manager"):
        await client.with_options(field_manager=None).apply_all([config_map("c")])
    with pytest.raises(UsageError, match="needs apiVersion and kind"):
        await client.apply_all([NAMESPACE, {"metadata": {"name": "x"}}])
    assert "shop" not in [each["metadata"]["name"] for each in server.list("namespaces")]


async def test_server_that_does_not_answer_is_asked_once(server: ApiServer, client: Client) -> None:
    await server.stop()
    with pytest.raises(ApplyFailed) as caught:
        await client.with_options(retry=False).apply_all([config_map("a"), config_map("b")], namespace="default")
    errors = {id(each.error) for each in caught.value.report.failed}
    assert len(errors) == 1


@pytest.mark.parametrize("metadata", [None, "shop", []])
async def test_nothing_is_sent_with_an_object_without_metadata(
    server: ApiServer, client: Client, metadata: Any
) -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    with pytest.raises(UsageError, match="ConfigMap: an object to apply needs metadata with a name"):
        await client.apply_all([NAMESPACE, nameless])
    assert "shop" not in [each["metadata"]["name"] for each in server.list("namespaces")]


async def test_one_object_instead_of_a_list_is_refused(client: Client) -> None:
    with pytest.raises(UsageError, match="expected a list of objects, and it has str"):
        await client.apply_all(NAMESPACE)
