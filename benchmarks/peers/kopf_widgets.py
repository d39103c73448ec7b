"""The Widget controller on kopf: each Widget keeps `spec.size` ConfigMaps. `kopf run --all-namespaces kopf_widgets.py`

kopf adds and removes its finalizer because there is a handler for deletions. It has no handler for changes of children:
an index knows them, and a deleted one leads to its Widget by another index.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import kopf
from kubernetes_asyncio import client, config

_WIDGETS = ("example.com", "v1", "widgets")


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: Any, **_: Any) -> None:
    settings.persistence.finalizer = "example.com/cleanup"
    await config.load_config()
    memo.core = client.CoreV1Api()


@kopf.index("configmaps")
async def children(name: str, meta: kopf.Meta, **_: Any) -> dict[str, str] | None:
    owners = [each["uid"] for each in meta.get("ownerReferences", ()) if each["kind"] == "Widget"]
    return {owners[0]: name} if owners else None


@kopf.index(*_WIDGETS)
async def widgets(uid: str, body: kopf.Body, **_: Any) -> dict[str, kopf.Body]:
    return {uid: body}


@kopf.on.create(*_WIDGETS)
@kopf.on.update(*_WIDGETS, field="spec")
@kopf.on.resume(*_WIDGETS)
async def converge(body: kopf.Body, patch: kopf.Patch, memo: Any, children: Any, **_: Any) -> None:
    await reconcile(body, patch, memo, children)


@kopf.on.delete(*_WIDGETS)
async def clean_up(body: kopf.Body, memo: Any, children: Any, **_: Any) -> None:
    await make(body, 0, memo, children)


@kopf.on.event("configmaps")
async def on_child(type: str | None, meta: kopf.Meta, memo: Any, children: Any, widgets: Any, **_: Any) -> None:
    for owner in meta.get("ownerReferences", ()) if type == "DELETED" else ():
        for body in widgets.get(owner["uid"], ()):
            if not body.metadata.get("deletionTimestamp"):
                await make(body, body.spec.get("size", 0), memo, children)


async def reconcile(body: kopf.Body, patch: kopf.Patch, memo: Any, children: Any) -> None:
    size, generation = body.spec.get("size", 0), body.metadata["generation"]
    await make(body, size, memo, children)
    message = f"{size} of {size} ConfigMaps exist"
    old = next((each for each in body.status.get("conditions", ()) if each["type"] == "Ready"), {})
    condition = {"type": "Ready", "status": "True", "reason": "Complete", "message": message}
    condition["observedGeneration"] = generation
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition["lastTransitionTime"] = old["lastTransitionTime"] if old.get("status") == "True" else now
    status = {"ready": size, "observedGeneration": generation, "conditions": [condition]}
    if dict(body.status) != status:
        patch.status.update(status)
        kopf.info(body, reason="Complete", message=f"{size} ConfigMaps exist")


async def make(body: kopf.Body, size: int, memo: Any, children: Any) -> None:
    """Create the ConfigMaps that the Widget lacks, and delete those that it has in excess."""
    namespace, existing = body.metadata.namespace, set(children.get(body.metadata["uid"], ()))
    wanted = {f"{body.metadata.name}-{number}" for number in range(size)}
    for name in sorted(wanted - existing):
        child = {"metadata": {"name": name}, "data": {"widget": body.metadata.name}}
        kopf.append_owner_reference(child, body)
        try:
            await memo.core.create_namespaced_config_map(namespace, child)
        except client.ApiException as error:
            if error.status != 409:
                raise
    for name in sorted(existing - wanted):
        try:
            await memo.core.delete_namespaced_config_map(name, namespace)
        except client.ApiException as error:
            if error.status != 404:
                raise
