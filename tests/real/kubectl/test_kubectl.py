"""kubectl with the API server for tests: in this process, and as `aioinformer serve` starts it.

The scripts beside this file compare what kubectl prints; here are effects on the server, and `kubectl get` of each
resource that a server serves.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
from typing import TYPE_CHECKING

import pytest

from tests.real.kubectl.objects import deployment, holds, pod
from tests.real.kubectl.running import Kubectl, environment, for_namespace, next_line
from tests.real.kubectl.script import write_files
from tests.support.shell import Shell
from tests.support.sized_widgets import WIDGETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.testing import ApiServer


async def test_explain_follows_a_changed_crd(kubectl: Kubectl, server: ApiServer) -> None:
    server.create("customresourcedefinitions", WIDGETS)
    await kubectl("explain", "widget.spec")
    changed = server.get("customresourcedefinitions", "widgets.example.com")
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["weight"] = {"type": "integer", "description": "In tons."}
    server.update("customresourcedefinitions", changed)

    assert "In tons." in await kubectl("explain", "widget.spec.weight")


@pytest.mark.parametrize(
    ("command", "gvr"),
    [
        ("deployment made --image=example.com/main --replicas=0", "apps/v1/deployments"),
        ("cronjob made --image=example.com/main --schedule=@daily", "batch/v1/cronjobs"),
        ("ingress made --rule=example.com/=made:80", "networking.k8s.io/v1/ingresses"),
        ("poddisruptionbudget made --selector=a=b --min-available=50%", "policy/v1/poddisruptionbudgets"),
    ],
)
async def test_create_subcommands(kubectl: Kubectl, server: ApiServer, command: str, gvr: str) -> None:
    """kubectl sends protobuf; the stored object must equal the JSON of a client-side dry run."""
    made = await kubectl.json("create", *command.split(), "--dry-run=client")
    await kubectl("create", *command.split())

    sent = {key: value for key, value in made.items() if key not in ("metadata", "status")}
    assert holds(server.get(gvr, "made"), sent)


async def test_apply_is_a_strategic_merge(kubectl: Kubectl, server: ApiServer) -> None:
    await kubectl("apply", "-f", "-", stdin=deployment("web", 1, "main", "side"))
    injected = [{"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "injected"}}]
    server.patch("deployments", "web", injected, content_type="application/json-patch+json")

    await kubectl("apply", "-f", "-", stdin=deployment("web", 2, "main", "late"))

    spec = server.get("deployments", "web")["spec"]
    assert spec["replicas"] == 2
    assert [each["name"] for each in spec["template"]["spec"]["containers"]] == ["injected", "main", "late"]


async def test_watch_pods(kubectl: Kubectl, server: ApiServer) -> None:
    server.create("pods", pod("a"))
    async with kubectl.running("get", "pods", "--watch", "--output-watch-events", "--no-headers") as watch:
        seen = [(await next_line(watch)).split()[:4]]
        server.create("pods", pod("b"))
        seen.append((await next_line(watch)).split()[:4])
        running = '{"status": {"phase": "Running"}}'
        await kubectl("patch", "pod", "b", "--subresource=status", "--type=merge", "-p", running)
        seen.append((await next_line(watch)).split()[:4])
        server.delete("pods", "a")
        seen += [(await next_line(watch)).split()[:4] for _ in range(2)]

    assert seen == [
        ["ADDED", "a", "0/1", "Pending"],
        ["ADDED", "b", "0/1", "Pending"],
        ["MODIFIED", "b", "0/1", "Running"],
        ["MODIFIED", "a", "0/1", "Terminating"],
        ["DELETED", "a", "0/1", "Terminating"],
    ]


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    running = Shell(tmp_path)
    yield running
    await running.close()


async def test_kubectl_works_with_the_kubeconfig_of_serve(shell: Shell, kubectl_program: str) -> None:
    command = await shell.start("serve", "--host", "0.0.0.0", "--tls")
    kubeconfig = (await command.line()).partition("=")[2]
    done = await asyncio.create_subprocess_exec(
        *(kubectl_program, "--kubeconfig", kubeconfig, "create", "configmap", "a", "-o", "name"),
        cwd=shell.home,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await done.communicate()
    assert (said.decode(), done.returncode) == ("configmap/a\n", 0)
    await command.finish(signal.SIGTERM)


FORMS = {
    "default": [],
    "wide": ["-o", "wide"],
    "yaml": ["-o", "yaml", "--show-managed-fields"],
    "all_namespaces": ["-A"],
    "label_selector": ["-l", "app=web"],
    "in_chunks": ["--chunk-size=20"],
}
# kubectl logs the status of each response with `-v=6`: `… status="200 OK" …`, or `GET https://… 200 OK in …` before.
STATUS = re.compile(r'(?: |status=")([1-5]\d\d) [A-Z]')


@pytest.fixture
async def talk(kubeconfig: Path, kubectl_program: str, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """kubectl in a namespace with pods, a deployment and a config map."""
    namespace, config = f"row-{secrets.token_hex(4)}", tmp_path / "kubeconfig"
    for_namespace(kubeconfig, namespace, config)
    kubectl = Kubectl(kubectl_program, environment(tmp_path, config), tmp_path / "files")
    write_files(tmp_path / "files")
    await kubectl("create", "namespace", namespace)
    await kubectl("create", "-f", "pods.yaml", "-f", "deployment.yaml", "-f", "configmap.yaml")
    yield kubectl
    await kubectl("delete", "namespace", namespace, "--wait=false")


async def statuses(kubectl: Kubectl, *arguments: str) -> set[str]:
    """Run a command until it ends, or for a second if it watches, and return the statuses of all responses."""
    async with kubectl.running(*arguments, "-v=6") as process:
        _, said = await process.communicate()
    assert b"NotImplemented" not in said, said.decode()
    return {status for line in said.decode().splitlines() for status in STATUS.findall(line) if "GET" in line}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_get_answers_for_each_resource(talk: Kubectl, form: list[str]) -> None:
    listable = (await talk("api-resources", "--verbs=list", "-o", "name")).split()
    assert len(listable) > 50
    assert await statuses(talk, "get", ",".join(listable), *form) == {"200"}


async def test_get_watches_some_resources(talk: Kubectl) -> None:
    listable = (await talk("api-resources", "--verbs=list,watch", "-o", "name")).split()[::6]

    async def watch(resource: str) -> None:
        assert await statuses(talk, "get", resource, "--watch", "--request-timeout=1s") == {"200"}, resource

    async with asyncio.TaskGroup() as watches:
        for resource in listable:
            watches.create_task(watch(resource))
