from __future__ import annotations

from typing import Any

from tests.support.api import DEFINITION, DEFINITIONS, WIDGETS, Api


def widget(name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **content}


async def test_deleting_a_crd_deletes_objects_and_ends_watches(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, widget("w"))
    async with api.session.get(f"{WIDGETS}?watch=true") as watch:
        assert b'"ADDED"' in await watch.content.readline()
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        assert b'"DELETED"' in await watch.content.readline()
        assert await watch.content.read() == b""
    assert await api("GET", WIDGETS) == (404, "404 page not found\n")


async def test_unsupported_rule_is_501(api: Api) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "'%e'.format([1.5]) != ''"}]}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    await api("POST", DEFINITIONS, {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": versions}})
    status, body = await api("POST", WIDGETS, widget("w"))
    assert (status, body["reason"]) == (501, "NotImplemented")
    assert body["message"].endswith("the rule `'%e'.format([1.5]) != ''` of <nil>: `format` with `%e`")
