"""The Widget controller on kopf: each Widget keeps `spec.size` ConfigMaps. `kopf run --all-namespaces kopf_widgets.py`

kopf adds and removes its finalizer because there is a handler for deletions. It has no cache for children, and no
handler for their changes: they are listed by a label, and an event of a deleted one leads to its Widget. An index of
kopf could hold the children, but at the start all handlers wait for it, and each indexed object wakes all that wait.
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
    memo.core, memo.custom = client.CoreV1Api(), client.CustomObjectsApi()


@kopf.on.create(*_WIDGETS)
@kopf.on.update(*_WIDGETS, field="spec")
@kopf.on.resume(*_WIDGETS)
async def converge(body: kopf.Body, patch: kopf.Patch, memo: Any, **_: Any) -> None:
    await reconcile(body, patch, memo)


@kopf.on.delete(*_WIDGETS)
async def clean_up(body: kopf.Body, memo: Any, **_: Any) -> None:
    await make(body, 0, memo)


@kopf.on.event("configmaps", labels={"widget": kopf.PRESENT})
async def on_child(type: str | None, namespace: str, labels: kopf.Labels, memo: Any, **_: Any) -> None:
    if type != "DELETED":
        return
    try:
        widget = await memo.custom.get_namespaced_custom_object(*_WIDGETS[:2], namespace, "widgets", labels["widget"])
    except client.ApiException as error:
        if error.status != 404:
            raise
    else:
        if "deletionTimestamp" not in widget["metadata"]:
            await make(widget, widget["spec"].get("size", 0), memo)


async def reconcile(body: kopf.Body, patch: kopf.Patch, memo: Any) -> None:
    size, generation = body.spec.get("size", 0), body.metadata["generation"]
    await make(body, size, memo)
    old = next((each for each in body.status.get("conditions", ()) if each["type"] == "Ready"), {})
    condition = {"type": "Ready", "status": "True", "reason": "Complete", "observedGeneration": generation}
    condition["message"] = f"{size} of {size} ConfigMaps exist"
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition["lastTransitionTime"] = old["lastTransitionTime"] if old.get("status") == "True" else now
    status = {"ready": size, "observedGeneration": generation, "conditions": [condition]}
    if dict(body.status) != status:
        patch.status.update(status)
        kopf.info(body, reason="Complete", message=f"{size} ConfigMaps exist")


async def make(widget: Any, size: int, memo: Any) -> None:
    """Create the ConfigMaps that the Widget lacks, and delete those that it has in excess."""
    namespace, owner = widget["metadata"]["namespace"], widget["metadata"]["name"]
    children = await memo.core.list_namespaced_config_map(namespace, label_selector=f"widget={owner}")
    existing = {child.metadata.name for child in children.items}
    wanted = {f"{owner}-{number}" for number in range(size)}
    for name in sorted(wanted - existing):
        child = {"metadata": {"name": name, "labels": {"widget": owner}}, "data": {"widget": owner}}
        kopf.append_owner_reference(child, widget)
        await memo.core.create_namespaced_config_map(namespace, child)
    for name in sorted(existing - wanted):
        try:
            await memo.core.delete_namespaced_config_map(name, namespace)
        except client.ApiException as error:
            if error.status != 404:
                raise
