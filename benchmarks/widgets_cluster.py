"""A real API server with Widgets, for `controllers_real.py`: seeded in etcd, with a log of what the controller sends.

The Widgets have the state that a Widget controller leaves behind: one ConfigMap each, a finalizer, and a status. kopf
compares each object with an annotation in which it keeps the last state, so they have that, too; and the ConfigMaps
have the managed fields of a server-side apply, which aioinformer compares. Controllers have a service account of their
own, whose requests the API server logs.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import yaml
from servers import HERE, CannotServe, client_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

#: The environment variables of the single measurements: the folder of the cluster, and the number of Widgets.
FOLDER, COUNT = "WIDGETS_CLUSTER", "WIDGETS_COUNT"
WIDGETS = "/apis/example.com/v1"
_TEAMS = 10
#: The status of an API server whose cache of a custom resource is not ready.
_STARTING = 429
#: The writing controller writes each fifth Widget. Each twentieth one changes while no controller runs.
_WRITTEN, _CHANGED = 5, 20
_ACCOUNT = {"name": "controller", "namespace": "default"}
_USER = "system:serviceaccount:default:controller"
_POLICY = f"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {{level: Metadata, users: ["{_USER}"]}}
- {{level: None}}
"""
#: The Widgets of the example, whose controller is one of those that are measured.
_DEFINITION = HERE.parent / "examples" / "widgets.yaml"


class WidgetsCluster:
    """A cluster for all measurements: `with WidgetsCluster(tools, seeder, count) as url:`.

    Attributes:
        environment: for the subjects.

    Raises:
        CannotServe: no cluster is given, or the program that seeds etcd could not be built.
    """

    def __init__(self, tools: str, seeder: str, count: int) -> None:
        self._tools, self._seeder = tools, seeder
        self._folder = tempfile.TemporaryDirectory(prefix="widgets-", ignore_cleanup_errors=True)
        self.environment = {
            **client_environment(),
            "KUBECONFIG": str(self._path / "controller.kubeconfig"),
            FOLDER: self._folder.name,
            COUNT: str(count),
        }

    @property
    def _path(self) -> Path:
        return Path(self._folder.name)

    def __enter__(self) -> str:
        if not self._tools:
            raise CannotServe("set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster (docs/contributing.md)")
        if not self._seeder:
            raise CannotServe("the program that seeds etcd could not be built")
        (self._path / "policy.yaml").write_text(_POLICY)
        audit = [f"--audit-policy-file={self._path / 'policy.yaml'}", f"--audit-log-path={self._path / 'audit.log'}"]
        self._run("up", "--detach", "--exit-with-pid", str(os.getpid()), *audit)
        Path(self.environment["KUBECONFIG"]).write_text(json.dumps(asyncio.run(self._prepare())))
        (self._path / "tools.json").write_text(json.dumps([self._tools, self._seeder]))
        return str(json.loads((self._path / "cluster.json").read_text())["server"])

    def __exit__(self, *exc: object) -> None:
        self._run("down", "--rm")

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(Path(self._tools) / tool), *arguments, "--dir", self._folder.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    async def _prepare(self) -> dict[str, Any]:
        """Define Widgets, and return the kubeconfig of the controllers."""
        async with Cluster(self._path) as cluster:
            config = await self._authorize(cluster)
            definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            await cluster.request("POST", definitions, yaml.safe_load(_DEFINITION.read_text()))
            for team in range(_TEAMS):
                await cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"team-{team}"}})
            for _ in range(100):
                if await cluster.request("GET", f"{WIDGETS}/widgets", allowed=(404, _STARTING)):
                    return config
                await asyncio.sleep(0.1)
        raise CannotServe("the API server does not serve Widgets")

    async def _authorize(self, cluster: Cluster) -> dict[str, Any]:
        """Create the service account of the controllers, and return its kubeconfig."""
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await cluster.request("POST", accounts, {"metadata": {"name": _ACCOUNT["name"]}})
        binding = {
            "metadata": {"name": "controller"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **_ACCOUNT}],
        }
        await cluster.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        answer = await cluster.request("POST", f"{accounts}/{_ACCOUNT['name']}/token", {"spec": {}})
        server = {"server": cluster.server, "certificate-authority": str(self._path / "pki" / "ca.crt")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "controller", "user": {"token": answer["status"]["token"]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "controller"}}],
            "current-context": "test",
        }


class Sent(NamedTuple):
    """The kind of a request of the controller."""

    verb: str
    resource: str
    code: int


class Cluster:
    """The cluster as a single measurement uses it, as an administrator.

    Attributes:
        server: the URL of the API server.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        addresses = json.loads((folder / "cluster.json").read_text())
        self.server, self._etcd, self._token = addresses["server"], addresses["etcd"], addresses["adminToken"]
        self._read = 0

    async def __aenter__(self) -> Self:
        authority = ssl.create_default_context(cafile=str(self._folder / "pki" / "ca.crt"))
        self._session = aiohttp.ClientSession(
            self.server,
            headers={"Authorization": f"Bearer {self._token}"},
            connector=aiohttp.TCPConnector(ssl=authority),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()

    async def request(self, method: str, path: str, body: Any = None, allowed: tuple[int, ...] = ()) -> Any:
        """Send a request and return the answer, None for an allowed error."""
        kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with self._session.request(method, path, json=body, headers=kind) as response:
            if response.status in allowed:
                return None
            response.raise_for_status()
            return await response.json()

    async def seed(self, count: int, *, changed: bool = False) -> None:
        """Replace all Widgets and their ConfigMaps, or change some of them, as if it had happened a while ago."""
        seeder = json.loads((self._folder / "tools.json").read_text())[1]
        lines = _changes(count) if changed else _seeds(count)
        seeding = await asyncio.create_subprocess_exec(seeder, "seed", self._etcd, stdin=asyncio.subprocess.PIPE)
        assert seeding.stdin is not None
        for number, line in enumerate(lines):
            seeding.stdin.write(line.encode())
            if not number % 100:
                await seeding.stdin.drain()
        seeding.stdin.close()
        if await seeding.wait():
            raise RuntimeError("etcd could not be seeded")
        if not changed:
            for path in (f"{WIDGETS}/widgets", "/api/v1/configmaps"):
                await self._wait_for(path, count)

    async def _wait_for(self, path: str, count: int) -> None:
        """Wait until the API server has as many objects; it has some ConfigMaps of its own."""
        while True:
            page = await self.request("GET", f"{path}?limit=1")
            if count <= len(page["items"]) + page["metadata"].get("remainingItemCount", 0) < count + 100:
                return
            await asyncio.sleep(0.2)

    async def version(self) -> str:
        """Return the current resourceVersion of the Widgets."""
        page = await self.request("GET", f"{WIDGETS}/widgets?limit=1")
        return str(page["metadata"]["resourceVersion"])

    async def wait_until_converged(self, count: int, version: str, **selectors: str) -> None:
        """Watch the selected Widgets since a version, until so many of them are converged."""
        query = {"watch": "true", "resourceVersion": version, **selectors}
        done: set[str] = set()
        while True:
            async with self._session.get(f"{WIDGETS}/widgets", params=query) as response:
                if response.status == _STARTING:
                    await asyncio.sleep(0.1)
                    continue
                response.raise_for_status()
                async for line in response.content:
                    widget = json.loads(line)["object"]
                    (done.add if is_converged(widget) else done.discard)(widget["metadata"]["name"])
                    if len(done) == count:
                        return
            raise RuntimeError("the watch of the Widgets has ended")

    async def fault(self, name: str) -> None:
        """Inject a fault, and return when it is done."""
        tools = json.loads((self._folder / "tools.json").read_text())[0]
        command = [str(Path(tools) / "fault"), "--dir", str(self._folder), name]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        if await process.wait():
            raise RuntimeError(f"{name} has failed")

    def sent(self) -> Counter[Sent]:
        """Return what the controller has sent since the last call; a watch counts when it is opened."""
        with (self._folder / "audit.log").open("rb") as file:
            file.seek(self._read)
            lines = file.readlines()
            self._read = file.tell()
        found: Counter[Sent] = Counter()
        for event in map(json.loads, lines):
            target = event.get("objectRef", {})
            if event["verb"] == "watch" and event["stage"] == "ResponseComplete":
                continue
            resource = "/".join(filter(None, (target.get("resource", ""), target.get("subresource", ""))))
            found[Sent(event["verb"], resource, event["responseStatus"]["code"])] += 1
        return found


def is_converged(widget: dict[str, Any]) -> bool:
    """Return whether the controller has brought the Widget to its present specification."""
    status = widget.get("status", {})
    observed = status.get("observedGeneration") == widget["metadata"]["generation"]
    return bool(observed and status.get("size") == widget["spec"]["size"])


def widget(name: str, size: int, group: str) -> dict[str, Any]:
    """Return a new Widget, for the API server."""
    metadata = {"name": name, "labels": {"group": group}}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def changed_count(count: int) -> int:
    """Return how many Widgets change while no controller runs."""
    return len(range(0, count, _CHANGED))


def written_count(count: int) -> int:
    """Return how many Widgets have names for the writing controller."""
    return len(range(1, count, _WRITTEN))


def _seeds(count: int) -> Iterator[str]:
    yield "delete /registry/example.com/widgets/\n"
    for team in range(_TEAMS):
        yield f"delete /registry/configmaps/team-{team}/\n"
        yield f"delete /registry/events/team-{team}/\n"
    for number in range(count):
        namespace, owner = f"team-{number % _TEAMS}", _seed(number, 1)
        name = owner["metadata"]["name"]
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": owner["metadata"]["uid"]}
        fields = {
            "f:data": {"f:colour": {}},
            "f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{reference["uid"]}"}}': {}}},
        }
        child = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": f"{name}-0",
                "namespace": namespace,
                "uid": f"8f1d2c3b-4a59-4687-9c0e-{number:012x}",
                "creationTimestamp": _TIME,
                "labels": {"widget": name},
                "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
                "managedFields": [{**_APPLIED, "fieldsV1": fields}],
            },
            "data": {"colour": "grey"},
        }
        yield f"put /registry/configmaps/{namespace}/{name}-0 {json.dumps(child)}\n"
        yield f"put /registry/example.com/widgets/{namespace}/{name} {json.dumps(owner)}\n"


def _changes(count: int) -> Iterator[str]:
    for number in range(0, count, _CHANGED):
        changed = _seed(number, 2)
        namespace, name = changed["metadata"]["namespace"], changed["metadata"]["name"]
        yield f"put /registry/example.com/widgets/{namespace}/{name} {json.dumps(changed)}\n"


_TIME = "2026-03-01T09:10:11Z"
_APPLIED = {
    "manager": "widgets",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": _TIME,
    "fieldsType": "FieldsV1",
}


def _seed(number: int, generation: int) -> dict[str, Any]:
    """Return a Widget that is converged in its first generation, and has another size in the second."""
    group = "changed" if number % _CHANGED == 0 else "same"
    name = f"{'write' if number % _WRITTEN == 1 else 'keep'}-{number:05}"
    handled = json.dumps({"spec": {"size": 1, "colour": "grey"}, "metadata": {"labels": {"group": group}}}) + "\n"
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Applied",
        "message": "1 config maps are there",
        "lastTransitionTime": _TIME,
        "observedGeneration": 1,
    }
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": name,
            "namespace": f"team-{number % _TEAMS}",
            "uid": f"8f1d2c3b-4a59-4687-9c0d-{number:012x}",
            "generation": generation,
            "creationTimestamp": _TIME,
            "labels": {"group": group},
            "annotations": {"kopf.zalando.org/last-handled-configuration": handled},
            "finalizers": ["example.com/register"],
        },
        "spec": {"size": generation, "colour": "grey"},
        "status": {"size": 1, "observedGeneration": 1, "conditions": [condition]},
    }
