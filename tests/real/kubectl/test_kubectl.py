"""kubectl with the API server for tests: in this process, and as `aioinformer serve` starts it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.real.kubectl.conftest import environment
from tests.real.kubectl.objects import WIDGETS, definition, deployment, holds, pod, widget
from tests.real.kubectl.running import Kubectl, KubectlError, next_line
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def widgets(server: ApiServer) -> None:
    server.create("customresourcedefinitions", WIDGETS)


class TestReading:
    async def test_api_resources_lists_short_names(self, kubectl: Kubectl, widgets: None) -> None:
        listed = await kubectl("api-resources", "--no-headers")

        lines = [line.split() for line in listed.splitlines()]
        assert ["pods", "po", "v1", "true", "Pod"] in lines
        assert ["widgets", "wd", "example.com/v1", "true", "Widget"] in lines

    async def test_get_pods(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p"))

        (row,) = await kubectl.columns("get", "pods")

        assert (row["NAME"], row["READY"], row["STATUS"], row["RESTARTS"]) == ("p", "0/1", "Pending", "0")

    async def test_custom_resource_columns(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        server.create("widgets", widget("w", size=3, colour="red"))

        assert await kubectl("get", "wd", "--no-headers", "-o", "wide") == "w     3     red\n"

    async def test_auth_can_i_is_yes_for_the_administrator(self, kubectl: Kubectl) -> None:
        assert await kubectl("auth", "can-i", "delete", "nodes") == "yes\n"

    async def test_get_of_a_missing_object(self, kubectl: Kubectl) -> None:
        with pytest.raises(KubectlError, match='pods "none" not found'):
            await kubectl("get", "pod", "none")


class TestExplaining:
    async def test_explain_custom_resource_fields(self, kubectl: Kubectl, widgets: None) -> None:
        explained = await kubectl("explain", "widget.spec.size")

        assert "FIELD: size <integer>" in explained
        assert "In metres." in explained

    async def test_explain_follows_a_changed_crd(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        await kubectl("explain", "widget.spec")
        changed = server.get("customresourcedefinitions", "widgets.example.com")
        schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["weight"] = {"type": "integer", "description": "In tons."}
        server.update("customresourcedefinitions", changed)

        assert "In tons." in await kubectl("explain", "widget.spec.weight")


class TestWriting:
    @pytest.mark.parametrize(
        ("command", "gvr"),
        [
            ("configmap made --from-literal=a=1", "v1/configmaps"),
            ("secret generic made --from-literal=a=1", "v1/secrets"),
            ("serviceaccount made", "v1/serviceaccounts"),
            ("deployment made --image=example.com/main --replicas=0", "apps/v1/deployments"),
            ("job made --image=example.com/main", "batch/v1/jobs"),
            ("cronjob made --image=example.com/main --schedule=@daily", "batch/v1/cronjobs"),
            ("service clusterip made --tcp=80:8080", "v1/services"),
            ("ingress made --rule=example.com/=made:80", "networking.k8s.io/v1/ingresses"),
            ("role made --verb=get --resource=pods", "rbac.authorization.k8s.io/v1/roles"),
            ("quota made --hard=pods=3", "v1/resourcequotas"),
            ("priorityclass made --value=7", "scheduling.k8s.io/v1/priorityclasses"),
            ("poddisruptionbudget made --selector=a=b --min-available=50%", "policy/v1/poddisruptionbudgets"),
        ],
    )
    async def test_create_subcommands(self, kubectl: Kubectl, server: ApiServer, command: str, gvr: str) -> None:
        """kubectl sends protobuf; the stored object must equal the JSON of a client-side dry run."""
        made = await kubectl.json("create", *command.split(), "--dry-run=client")
        await kubectl("create", *command.split())

        sent = {key: value for key, value in made.items() if key not in ("metadata", "status")}
        assert holds(server.get(gvr, "made"), sent)

    async def test_apply_twice_is_unchanged(self, kubectl: Kubectl) -> None:
        first = await kubectl("apply", "-f", "-", stdin=deployment("web"))
        second = await kubectl("apply", "-f", "-", stdin=deployment("web"))

        assert (first, second) == ("deployment.apps/web created\n", "deployment.apps/web unchanged\n")

    async def test_apply_is_a_strategic_merge(self, kubectl: Kubectl, server: ApiServer) -> None:
        await kubectl("apply", "-f", "-", stdin=deployment("web", 1, "main", "side"))
        injected = [{"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "injected"}}]
        server.patch("deployments", "web", injected, content_type="application/json-patch+json")

        await kubectl("apply", "-f", "-", stdin=deployment("web", 2, "main", "late"))

        spec = server.get("deployments", "web")["spec"]
        assert spec["replicas"] == 2
        assert [each["name"] for each in spec["template"]["spec"]["containers"]] == ["injected", "main", "late"]

    async def test_apply_crd_and_custom_resource(self, kubectl: Kubectl, server: ApiServer) -> None:
        await kubectl("apply", "-f", "-", stdin=WIDGETS)
        await kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
        created = await kubectl("apply", "-f", "-", stdin=widget("w", size=1, colour="red"))
        changed = await kubectl("apply", "-f", "-", stdin=widget("w", size=2))

        assert (created, changed) == ("widget.example.com/w created\n", "widget.example.com/w configured\n")
        assert server.get("widgets", "w")["spec"] == {"size": 2}

    async def test_create_rejects_unknown_fields(self, kubectl: Kubectl, server: ApiServer) -> None:
        typo = pod("p")
        typo["spec"]["containers"][0]["imagee"] = "example.com/p"

        with pytest.raises(KubectlError, match=r'unknown field "spec.containers\[0\].imagee"'):
            await kubectl("create", "-f", "-", stdin=typo)

        assert server.list("pods") == []

    async def test_apply_rejects_unknown_fields(self, kubectl: Kubectl, widgets: None) -> None:
        await kubectl("apply", "-f", "-", stdin=widget("w", size=1))

        with pytest.raises(KubectlError, match=r'strict decoding error: unknown field "spec\.sise"'):
            await kubectl("apply", "-f", "-", stdin=widget("w", sise=2))

    async def test_dry_run_stores_nothing(self, kubectl: Kubectl, server: ApiServer) -> None:
        await kubectl("create", "--dry-run=server", "-f", "-", stdin=pod("p"))

        assert (await kubectl("get", "pods")) == ""

    @pytest.mark.parametrize(
        ("kind", "patch"),
        [
            ("merge", '{"spec": {"replicas": 5}}'),
            ("json", '[{"op": "replace", "path": "/spec/replicas", "value": 5}]'),
            ("strategic", '{"spec": {"replicas": 5}}'),
        ],
    )
    async def test_patch(self, kubectl: Kubectl, server: ApiServer, kind: str, patch: str) -> None:
        server.create("deployments", deployment("web"))

        assert await kubectl("patch", "deployment", "web", f"--type={kind}", "-p", patch) == (
            "deployment.apps/web patched\n"
        )

        assert server.get("deployments", "web")["spec"]["replicas"] == 5

    async def test_scale_custom_resource(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        server.create("widgets", widget("w", replicas=1))

        await kubectl("scale", "widget/w", "--replicas=3")

        assert server.get("widgets", "w")["spec"]["replicas"] == 3

    async def test_delete_namespace_with_contents(self, kubectl: Kubectl, server: ApiServer) -> None:
        await kubectl("create", "namespace", "n")
        await kubectl("create", "-n", "n", "-f", "-", stdin=pod("p"))

        await kubectl("delete", "namespace", "n")

        assert await kubectl("get", "pods", "-A") == ""


class TestWatching:
    async def test_watch_pods(self, kubectl: Kubectl, server: ApiServer) -> None:
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

    async def test_watch_crds(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        async with kubectl.running("get", "crd", "--watch", "-o", "name") as watch:
            await next_line(watch)
            server.create("customresourcedefinitions", definition("Gadget"))

            assert await next_line(watch) == "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com"


async def test_forbidden_user_sees_the_reason(kubectl_program: str, tmp_path: Path) -> None:
    async with ApiServer(tls=True, authorization_mode="RBAC", tokens={"secret": "jane"}) as server:
        kubectl = Kubectl(kubectl_program, environment(tmp_path, server.kubeconfig(tmp_path / "kubeconfig")))
        with pytest.raises(KubectlError) as caught:
            await kubectl("get", "pods")
    why = 'User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    assert str(caught.value) == f"Error from server (Forbidden): pods is forbidden: {why}\n"


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    running = Shell(tmp_path)
    yield running
    await running.close()


@pytest.mark.parametrize("flags", [[], ["--tls"], ["--host", "0.0.0.0", "--tls"]])
async def test_kubectl_works_with_the_kubeconfig_of_serve(shell: Shell, kubectl_program: str, flags: list[str]) -> None:
    command = await shell.start("serve", *flags)
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
