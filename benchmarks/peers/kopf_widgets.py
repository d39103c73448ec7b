"""The controller of `examples/widgets.py` on kopf. `kopf run --all-namespaces kopf_widgets.py`

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
register: dict[str, int] = {}  # in place of a system outside of the cluster


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: Any, **_: Any) -> None:
    settings.persistence.finalizer = "example.com/register"
    await config.load_config()
    memo.core, memo.custom = client.CoreV1Api(), client.CustomObjectsApi()


@kopf.on.create(*_WIDGETS)
@kopf.on.update(*_WIDGETS, field="spec")
@kopf.on.resume(*_WIDGETS)
async def converge(body: kopf.Body, patch: kopf.Patch, memo: Any, **_: Any) -> None:
    await reconcile(body, patch, memo)


@kopf.on.delete(*_WIDGETS)
async def clean_up(body: kopf.Body, name: str, **_: Any) -> None:
    register.pop(name, None)
    kopf.info(body, reason="Removed", message="Removed from the register")


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
            await apply(widget, memo)


async def reconcile(body: kopf.Body, patch: kopf.Patch, memo: Any) -> None:
    size, generation = body.spec["size"], body.metadata["generation"]
    register[body.metadata.name] = size
    message = f"{size} config maps are there"
    if await apply(body, memo):
        kopf.info(body, reason="Applied", message=message)
    old = next((each for each in body.status.get("conditions", ()) if each["type"] == "Ready"), {})
    condition = {"type": "Ready", "status": "True", "reason": "Applied", "message": message}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition["lastTransitionTime"] = old["lastTransitionTime"] if old.get("status") == "True" else now
    condition["observedGeneration"] = generation
    status = {"size": size, "observedGeneration": generation, "conditions": [condition]}
    if dict(body.status) != status:
        patch.status.update(status)


async def apply(widget: Any, memo: Any) -> bool:
    """Create and patch the children, delete those in excess, and return whether one changed."""
    namespace, owner = widget["metadata"]["namespace"], widget["metadata"]["name"]
    children = await memo.core.list_namespaced_config_map(namespace, label_selector=f"widget={owner}")
    existing = {child.metadata.name: child.data for child in children.items}
    wanted = {f"{owner}-{number}" for number in range(widget["spec"]["size"])}
    data, changed = {"colour": widget["spec"]["colour"]}, False
    for name in sorted(wanted):
        child = {"metadata": {"name": name, "labels": {"widget": owner}}, "data": data}
        if name not in existing:
            kopf.append_owner_reference(child, widget)
            await memo.core.create_namespaced_config_map(namespace, child)
        elif existing[name] != data:
            await memo.core.patch_namespaced_config_map(name, namespace, child)
        changed = changed or existing.get(name) != data
    for name in sorted(existing.keys() - wanted):
        try:
            await memo.core.delete_namespaced_config_map(name, namespace)
        except client.ApiException as error:
            if error.status != 404:
                raise
        changed = True
    return changed
