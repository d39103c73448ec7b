"""Objects by the thousand, and a busy cluster: deployments roll out, pods start and crash, jobs end, settings change.

Each step of the workload is one write, as a controller or a kubelet of a real cluster would make it, drawn from the
steps that are possible at that moment. The same seed on a fresh server gives the same sequence.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from functools import cache, partial
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

from aioinformer.concurrency import create_task
from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.server.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Callable


_AT_ONCE = 20
_PODS_IN_NAMESPACE = 500
_APPS = 97
_STARTED = "2026-01-01T00:00:00Z"
_PLACEHOLDER = re.compile("<([a-z]+)>")
_DEPLOYMENTS = (("shop", "web", 4), ("shop", "checkout", 3), ("platform", "search", 2), ("platform", "mailer", 1))
_CRASHING = ("platform", "mailer")
_NODES = ("node-a", "node-b", "node-c")
_IMAGE = "registry.example.com/{app}:{version}"


async def populate(server: ApiServer, pods: int, *, namespaces: int = 0, nodes: int = 50) -> None:
    """Fill a server with running pods of about 5.8 KB each, in small steps.

    Args:
        server: to fill; nodes, namespaces and the owners of the pods are created, too.
        pods: how many.
        namespaces: how many the pods are spread over; 0 for one per 500 pods.
        nodes: how many they run on.
    """
    namespaces = namespaces or -(-pods // _PODS_IN_NAMESPACE)
    names = [f"team-{index:03d}" for index in range(namespaces)]
    server.load("namespaces", ({"metadata": {"name": name}, "status": {"phase": "Active"}} for name in names))
    server.load("nodes", (_node(index) for index in range(nodes)))
    # The garbage collector would delete pods without their owner.
    owners = sorted({(names[index % namespaces], index % _APPS) for index in range(pods)})
    await _load(server, "replicasets.apps", (_replica_set(namespace, app) for namespace, app in owners))
    await _load(server, "pods", make_pods(pods, names, nodes))


async def _load(server: ApiServer, resource: str, objects: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(objects, _AT_ONCE)):
        server.load(resource, batch)
        await asyncio.sleep(0)


def make_pods(count: int, namespaces: list[str], nodes: int = 50) -> Iterator[dict[str, Any]]:
    """Yield running pods as a server lists them: managed fields, conditions, environment, volumes.

    Args:
        count: how many.
        namespaces: the pods are spread over these in turn; at least one.
        nodes: how many nodes they run on in turn.
    """
    for index in range(count):
        yield make_pod(namespaces[index % len(namespaces)], index, nodes)


def make_pod(namespace: str, index: int, nodes: int = 50) -> dict[str, Any]:
    """Return one running pod; the same arguments give the same pod."""
    owner = _replica_set(namespace, index % _APPS)["metadata"]
    labels = owner["labels"]
    values = {
        "namespace": namespace,
        "pod": f"{owner['name']}-{index:05d}",
        "owner": owner["name"],
        "uid": owner["uid"],
        "app": labels["app.kubernetes.io/name"],
        "revision": labels["pod-template-hash"],
        "tier": labels["tier"],
        "checksum": f"{index * 2654435761 % 16**16:016x}" * 4,
        "digest": f"{index % _APPS * 11400714819323198485 % 16**16:016x}" * 4,
        "address": f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}",
        "host": f"192.168.{index % 4}.{index % 50 + 10}",
        "node": f"node-{index % nodes:03d}",
        "version": f"1.{index % 40}.0",
        "shard": f"--shard={index % 16}",
    }
    # Every second piece is the name of a placeholder.
    pieces = [values[piece] if odd % 2 else piece for odd, piece in enumerate(_template())]
    pod: dict[str, Any] = decode("".join(pieces))
    pod["status"]["containerStatuses"][0]["restartCount"] = index % 3
    return pod


@cache
def _template() -> list[str]:
    """Return the JSON of a pod in pieces, with the names of placeholders between them."""
    text = files("aioinformer.testing").joinpath("data/pod.json").read_text("utf-8")
    return _PLACEHOLDER.split(encode_plain(decode(text)).decode())


def _replica_set(namespace: str, number: int) -> dict[str, Any]:
    """Return the owner of an application's pods in a namespace; the same arguments give the same one."""
    app = f"app-{number:02d}"
    place = crc32(namespace.encode())
    revision = f"{(place ^ number * 7919) % 16**9:09x}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-{namespace}",
        "app.kubernetes.io/part-of": "storefront",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": revision,
        "tier": ("frontend", "backend", "worker")[number % 3],
    }
    return {
        "metadata": {
            "name": f"{app}-{revision}",
            "namespace": namespace,
            "uid": f"{place:08x}-0000-4000-8000-{number:012x}",
            "creationTimestamp": _STARTED,
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": {"pod-template-hash": revision}},
            "template": {"metadata": {"labels": labels}},
        },
    }


def _node(index: int) -> dict[str, Any]:
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index:03d}", "labels": {"kubernetes.io/hostname": f"node-{index:03d}"}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        },
    }


class Workload:
    """Change the objects of a server continuously while it is entered.

    Args:
        server: the server whose objects change.
        rate: changes per second.
        seed: of the sequence.

    Attributes:
        changes: the number of changes so far.

    Raises:
        ValueError: the rate is not positive.
    """

    def __init__(self, server: ApiServer, *, rate: float = 5.0, seed: int = 1) -> None:
        if rate <= 0:
            raise ValueError(f"rate must be more than 0 changes per second, not {rate!r}")
        self.changes = 0
        self._server = server
        self._pause = 1.0 / rate
        self._rng = random.Random(seed)
        self._serial = 0
        self._versions: dict[tuple[str, str], int] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.begin()
        self._task = create_task(self._run(), name="aioinformer.testing: workload")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not self._task.cancelled():
            self._task.result()

    def begin(self) -> None:
        """Create the initial objects: namespaces, nodes, deployments with their replica sets."""
        for namespace in sorted({namespace for namespace, _, _ in _DEPLOYMENTS}):
            self._server.create("namespaces", {"metadata": {"name": namespace}})
            self._server.create("configmaps", _named(namespace, "settings", data={"level": "info"}))
        for name in _NODES:
            condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            self._server.create("nodes", {"metadata": {"name": name}, "status": {"conditions": [condition]}})
        for namespace, app, replicas in _DEPLOYMENTS:
            self._versions[namespace, app] = 1
            spec = {"replicas": replicas, **_pod_set(app, 1)}
            self._server.create("deployments.apps", _named(namespace, app, spec=spec))
            self._new_replica_set(namespace, app)

    def step(self) -> None:
        """Make one change."""
        possible: list[tuple[int, Callable[[], None]]] = [(2, self._change_settings), (1, self._heartbeat)]
        for namespace, app, replicas in _DEPLOYMENTS:
            pods = self._pods(namespace, app)
            version = self._versions[namespace, app]
            old = [pod for pod in pods if pod["metadata"]["labels"]["version"] != f"v{version}"]
            new = [pod for pod in pods if pod not in old]
            if len(new) < replicas:
                possible.append((8, partial(self._start_pod, namespace, app)))
            elif old:
                possible.append((8, partial(self._delete_pod, old[0])))
            else:
                possible.append((1, partial(self._roll, namespace, app)))
            possible += [(6, partial(self._advance, pod)) for pod in new if pod["status"].get("phase") == "Pending"]
            if (namespace, app) == _CRASHING and new and new[0]["status"].get("phase") == "Running":
                possible.append((2, partial(self._crash, new[0])))
        jobs = self._server.list("jobs.batch", "platform")
        if len(jobs) < 3:
            possible.append((1, self._start_job))
        possible += [(2, partial(self._advance_job, job)) for job in jobs]
        actions = [action for _, action in possible]
        self._rng.choices(actions, [weight for weight, _ in possible])[0]()
        self.changes += 1

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + self._pause, loop.time() - 1.0)
            await asyncio.sleep(max(0.0, due - loop.time()))
            self.step()

    def _pods(self, namespace: str, app: str) -> list[dict[str, Any]]:
        return [pod for pod in self._server.list("pods", namespace) if pod["metadata"]["labels"].get("app") == app]

    def _start_pod(self, namespace: str, app: str) -> None:
        version = self._versions[namespace, app]
        owner = self._server.get("replicasets.apps", f"{app}-v{version}", namespace)
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["metadata"]["name"]}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True}
        template = _pod_set(app, version)["template"]
        self._serial += 1
        name = f"{app}-v{version}-{self._serial:04d}"
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [reference], **template["metadata"]}
        self._server.create("pods", {"metadata": metadata, "spec": template["spec"]})

    def _advance(self, pod: dict[str, Any]) -> None:
        if not pod["spec"].get("nodeName"):
            pod["spec"]["nodeName"] = self._rng.choice(_NODES)
            self._server.update("pods", pod)
            return
        name = pod["spec"]["containers"][0]["name"]
        container = {"name": name, "ready": True, "restartCount": 0, "state": {"running": {}}}
        pod["status"] = {
            **pod["status"],
            "phase": "Running",
            "podIP": f"10.0.{self._serial >> 8 & 255}.{self._serial & 255}",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container],
        }
        self._server.update("pods", pod, subresource="status")

    def _crash(self, pod: dict[str, Any]) -> None:
        container = pod["status"]["containerStatuses"][0]
        if container["ready"]:
            container |= {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            container["restartCount"] += 1
        else:
            container |= {"ready": True, "state": {"running": {}}}
        pod["status"]["conditions"] = [{"type": "Ready", "status": str(container["ready"])}]
        self._server.update("pods", pod, subresource="status")

    def _delete_pod(self, pod: dict[str, Any]) -> None:
        self._server.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _roll(self, namespace: str, app: str) -> None:
        """Roll out a new version: change the deployment, create its replica set, delete that of two versions ago."""
        self._versions[namespace, app] += 1
        version = self._versions[namespace, app]
        deployment = self._server.get("deployments.apps", app, namespace)
        deployment["spec"] |= {"template": _pod_set(app, version)["template"]}
        self._server.update("deployments.apps", deployment)
        self._new_replica_set(namespace, app)
        if version > 2:
            self._server.delete("replicasets.apps", f"{app}-v{version - 2}", namespace)

    def _new_replica_set(self, namespace: str, app: str) -> None:
        version = self._versions[namespace, app]
        self._server.create("replicasets.apps", _named(namespace, f"{app}-v{version}", spec=_pod_set(app, version)))

    def _start_job(self) -> None:
        self._serial += 1
        spec = {"template": {"spec": {"containers": [{"name": "report", "image": "report"}], "restartPolicy": "Never"}}}
        self._server.create("jobs.batch", _named("platform", f"report-{self._serial:04d}", spec=spec))

    def _advance_job(self, job: dict[str, Any]) -> None:
        if job.get("status", {}).get("succeeded"):
            self._server.delete("jobs.batch", job["metadata"]["name"], "platform", propagation_policy="Background")
            return
        job["status"] = {"active": 1} if not job.get("status") else {"succeeded": 1}
        self._server.update("jobs.batch", job, subresource="status")

    def _change_settings(self) -> None:
        namespace = self._rng.choice([namespace for namespace, _, _ in _DEPLOYMENTS])
        settings = self._server.get("configmaps", "settings", namespace)
        settings["data"]["revision"] = str(int(settings["data"].get("revision", "0")) + 1)
        self._server.update("configmaps", settings)

    def _heartbeat(self) -> None:
        node = self._server.get("nodes", self._rng.choice(_NODES))
        count = int(node["metadata"].get("annotations", {}).get("heartbeats", "0")) + 1
        node["metadata"].setdefault("annotations", {})["heartbeats"] = str(count)
        self._server.update("nodes", node)


def _named(namespace: str, name: str, **content: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **content}


def _pod_set(app: str, version: int) -> dict[str, Any]:
    labels = {"app": app, "version": f"v{version}"}
    container = {"name": app, "image": _IMAGE.format(app=app, version=version)}
    return {
        "selector": {"matchLabels": {"app": app}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
