from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.testing.api import DEFINITION, DEFINITIONS, MERGE, WIDGETS, Api

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


def widget(name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **content}


@pytest.mark.conformance("FK-06")
async def test_a_definition_is_established_and_served_at_once(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    _, definition = await api("GET", f"{DEFINITIONS}/widgets.example.com")
    _, resources = await api("GET", "/apis/example.com/v1")
    _, groups = await api("GET", "/apis")
    conditions = {item["type"]: item["status"] for item in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert [row["name"] for row in resources["resources"]] == ["widgets", "widgets/status"]
    assert "example.com" in [group["name"] for group in groups["groups"]]


async def test_custom_objects_are_created_patched_and_watched(api: Api, server: ApiServer) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    _, created = await api("POST", WIDGETS, widget("w", spec={"size": 1}, status={"x": 1}))
    _, patched = await api("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, content_type=MERGE)
    events = await api.events(f"resourceVersion={created['metadata']['resourceVersion']}", WIDGETS)
    assert "status" not in created
    assert [event["object"] for event in events] == [patched]
    assert patched["metadata"]["generation"] == 2


async def test_an_update_needs_a_version(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, widget("w"))
    status, body = await api("PUT", f"{WIDGETS}/w", widget("w"))
    assert status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in body["message"]


async def test_a_strategic_merge_patch_is_not_for_custom_resources(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, widget("w"))
    status, _ = await api("PATCH", f"{WIDGETS}/w", {}, content_type="application/strategic-merge-patch+json")
    assert status == 415


async def test_removing_a_definition_removes_its_objects_and_ends_their_watches(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, widget("w"))
    async with api.session.get(f"{WIDGETS}?watch=true") as watch:
        assert b'"ADDED"' in await watch.content.readline()
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        assert b'"DELETED"' in await watch.content.readline()
        assert await watch.content.read() == b""
    assert await api("GET", WIDGETS) == (404, "404 page not found\n")


async def test_a_definition_is_named_by_its_plural_and_group(api: Api) -> None:
    status, body = await api("POST", DEFINITIONS, {**DEFINITION, "metadata": {"name": "bad"}})
    assert status == 422
    assert 'must be spec.names.plural+"."+spec.group' in body["message"]


async def test_what_rules_say_is_not_passed_over(api: Api) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "has(self.spec)"}]}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    await api("POST", DEFINITIONS, {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": versions}})
    status, body = await api("POST", WIDGETS, widget("w"))
    assert (status, body["reason"]) == (501, "NotImplemented")


async def test_discovery_knows_both_of_its_forms(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    _, aggregated = await api("GET", "/apis", accept=accept)
    _, legacy = await api("GET", "/apis")
    assert aggregated["kind"] == "APIGroupDiscoveryList"
    assert [item["metadata"]["name"] for item in aggregated["items"]] == [group["name"] for group in legacy["groups"]]


async def test_what_is_not_served_is_told_apart(api: Api) -> None:
    assert await api("GET", "/apis/none.io/v1/things") == (404, "404 page not found\n")
    status, body = await api("GET", "/apis/apps/v1/things")
    assert (status, body["message"]) == (404, "the server could not find the requested resource")
