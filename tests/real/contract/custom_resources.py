"""Definitions of widgets, and paths to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.tables import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.real.contract.conversation import Answer, Conversation


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", schema: Mapping[str, Any] = ANYTHING, **fields: Any) -> dict[str, Any]:
    stored = {"served": True, "storage": name == "v1"}
    return {"name": name, **stored, "schema": {"openAPIV3Schema": schema}, **fields}


def with_spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def definition(api: Conversation, *versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    group = f"{api.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    told = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **spec}
    return {"metadata": {"name": f"{told['names']['plural']}.{told['group']}"}, "spec": told}


def path(api: Conversation, name: str = "", api_version: str = "v1") -> str:
    base = f"/apis/{api.namespace}.example.com/{api_version}/namespaces/{{ns}}/widgets"
    return f"{base}/{name}" if name else base


def widget(api: Conversation, api_version: str = "v1", **content: Any) -> dict[str, Any]:
    named = {"apiVersion": f"{api.namespace}.example.com/{api_version}", "kind": "Widget", "metadata": {"name": "a"}}
    return named | content


async def define(api: Conversation, *versions: dict[str, Any], **spec: Any) -> str:
    """Create a CRD for widgets, and return the path of the CRD."""
    made = await api.create(DEFINITIONS, definition(api, *versions, **spec))
    where = f"{DEFINITIONS}/{made['metadata']['name']}"
    await api.poll(where, _is_established, recorded=False)
    for each in versions or [version()]:
        if each["served"]:
            served = f"/apis/{api.namespace}.example.com/{each['name']}/widgets"
            await api.poll(served, lambda answer: answer.status == 200, recorded=False)
    return where


def _is_established(answer: Answer) -> bool:
    conditions = (answer.body.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
