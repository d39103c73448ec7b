"""The core of the ReplicaSet controller, for a resource of its own: PodSets keep a number of pods.

Their names are made by the server, so a pod cannot be found by its name. No run counts before the
cache shows all pods that earlier runs have created and deleted with `request.client`.

kubectl apply -f examples/replicas.yaml && python examples/replicas.py
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from aioinformer import ApiNotFound, Resource
from aioinformer.client import set_controller_reference
from aioinformer.controller import Manager, Request, set_status
from aioinformer.models import core_v1

POD_SETS = Resource[Any]("example.com", "v1", "podsets", "PodSet")
WRITES = {POD_SETS: ("patch",), core_v1.PODS: ("create", "delete")}
MOST_AT_ONCE = 50

manager = Manager("replicas")


@manager.controller(POD_SETS, owns=[core_v1.PODS], writes=WRITES)
async def pod_sets(request: Request[Any]) -> None:
    pod_set = request.object
    if pod_set is None or pod_set.metadata.deletion_timestamp:
        return
    pods = [pod for pod in request.owned(core_v1.PODS) if is_active(pod)]
    missing = pod_set["spec"]["replicas"] - len(pods)
    if missing > 0:
        await create_pods(request, pod_set["spec"]["template"], min(missing, MOST_AT_ONCE))
    async with asyncio.TaskGroup() as deletions:
        for pod in sorted(pods, key=worth)[: max(-missing, 0)]:
            deletions.create_task(delete_pod(request, pod))
    await set_status(request, replicas=len(pods))


async def create_pods(request: Request[Any], template: Any, count: int) -> None:
    """Create pods in batches of 1, 2, 4 …: if the server refuses one, few requests are in vain."""
    metadata = {"generateName": f"{request.name}-", "namespace": request.namespace}
    metadata |= {"labels": template["metadata"]["labels"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    pod = set_controller_reference(body, request.reference)
    created = 0
    while created < count:
        batch = min(max(created, 1), count - created)
        async with asyncio.TaskGroup() as creations:
            for _ in range(batch):
                creations.create_task(request.client.core.v1.pods.create(pod))
        created += batch


async def delete_pod(request: Request[Any], pod: core_v1.Pod) -> None:
    with suppress(ApiNotFound):
        await request.client.core.v1.pods.delete(pod, uid=pod.metadata.uid or "")


def is_active(pod: core_v1.Pod) -> bool:
    phase = pod.status.phase if pod.status else None
    return phase not in ("Succeeded", "Failed") and not pod.metadata.deletion_timestamp


def worth(pod: core_v1.Pod) -> tuple[bool, bool, str]:
    """Return the order of deletion: pods without a node first, then those that do not run."""
    has_node = bool(pod.spec and pod.spec.node_name)
    is_running = bool(pod.status and pod.status.phase == "Running")
    return has_node, is_running, pod.metadata.name or ""


if __name__ == "__main__":
    manager.main()
