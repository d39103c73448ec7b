from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.real.kubectl.conftest import environment
from tests.real.kubectl.objects import WIDGETS, definition, deployment, holds, pod, widget
from tests.real.kubectl.running import Kubectl, KubectlError, next_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def widgets(server: ApiServer) -> None:
    server.create("customresourcedefinitions", WIDGETS)


class TestReading:
    async def test_version_shows_client_and_server(self, kubectl: Kubectl) -> None:
        assert "Server Version: v" in await kubectl("version")

    async def test_api_resources_lists_short_names(self, kubectl: Kubectl, widgets: None) -> None:
        listed = await kubectl("api-resources", "--no-headers")

        lines = [line.split() for line in listed.splitlines()]
        assert ["pods", "po", "v1", "true", "Pod"] in lines
        assert ["widgets", "wd", "example.com/v1", "true", "Widget"] in lines

    async def test_api_versions_lists_group_versions(self, kubectl: Kubectl, widgets: None) -> None:
        assert {"v1", "apps/v1", "example.com/v1"} <= set((await kubectl("api-versions")).split())

    async def test_get_pods(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p"))

        (row,) = await kubectl.columns("get", "pods")

        assert (row["NAME"], row["READY"], row["STATUS"], row["RESTARTS"]) == ("p", "0/1", "Pending", "0")

    async def test_get_wide(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web", 2, "main", "side"))

        (row,) = await kubectl.columns("get", "deployments", "-o", "wide")

        assert (row["READY"], row["CONTAINERS"], row["SELECTOR"]) == ("0/2", "main,side", "app=web")

    async def test_get_in_all_namespaces(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("configmaps", {"metadata": {"name": "c", "namespace": "kube-system"}, "data": {"a": "1"}})

        (row,) = await kubectl.columns("get", "cm", "-A")

        assert (row["NAMESPACE"], row["NAME"], row["DATA"]) == ("kube-system", "c", "1")

    async def test_get_by_label_selector(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("a", labels={"app": "x"}))
        server.create("pods", pod("b", labels={"app": "y"}))

        assert (await kubectl("get", "pods", "-l", "app in (y)", "-o", "name")).split() == ["pod/b"]

    async def test_custom_resource_columns(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        server.create("widgets", widget("w", size=3, colour="red"))

        assert await kubectl("get", "wd", "--no-headers", "-o", "wide") == "w     3     red\n"

    async def test_describe_pod(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p", labels={"app": "x"}))

        described = await kubectl("describe", "pod", "p")

        assert "Labels:       app=x" in described
        assert "Image:        example.com/main:1" in described

    async def test_auth_can_i_is_yes_for_the_administrator(self, kubectl: Kubectl) -> None:
        assert await kubectl("auth", "can-i", "delete", "nodes") == "yes\n"

    async def test_auth_whoami(self, kubectl: Kubectl) -> None:
        assert "admin" in await kubectl("auth", "whoami")

    async def test_get_of_a_missing_object(self, kubectl: Kubectl) -> None:
        with pytest.raises(KubectlError, match='pods "none" not found'):
            await kubectl("get", "pod", "none")

    async def test_get_of_an_unknown_resource(self, kubectl: Kubectl) -> None:
        with pytest.raises(KubectlError, match='the server doesn\'t have a resource type "gadgets"'):
            await kubectl("get", "gadgets")


class TestExplaining:
    async def test_explain_built_in_fields(self, kubectl: Kubectl) -> None:
        explained = await kubectl("explain", "pod.spec.containers.image")

        assert "FIELD: image <string>" in explained
        assert "Container image name" in explained

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
    async def test_create(self, kubectl: Kubectl, server: ApiServer) -> None:
        assert await kubectl("create", "-f", "-", stdin=pod("p")) == "pod/p created\n"

        assert server.get("pods", "p")["spec"]["containers"][0]["name"] == "main"

    async def test_create_twice_fails(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p"))

        with pytest.raises(KubectlError, match='pods "p" already exists'):
            await kubectl("create", "-f", "-", stdin=pod("p"))

    async def test_run_pod(self, kubectl: Kubectl) -> None:
        assert await kubectl("run", "p", "--image=example.com/p") == "pod/p created\n"

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

    async def test_server_side_apply(self, kubectl: Kubectl) -> None:
        applied = await kubectl("apply", "--server-side", "-f", "-", stdin=deployment("web"))

        assert applied == "deployment.apps/web serverside-applied\n"

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

    async def test_validate_ignore_drops_unknown_fields(
        self, kubectl: Kubectl, server: ApiServer, widgets: None
    ) -> None:
        await kubectl("create", "--validate=ignore", "-f", "-", stdin=widget("w", size=1, sise=2))

        assert server.get("widgets", "w")["spec"] == {"size": 1}

    async def test_dry_run_stores_nothing(self, kubectl: Kubectl, server: ApiServer) -> None:
        await kubectl("create", "--dry-run=server", "-f", "-", stdin=pod("p"))

        assert (await kubectl("get", "pods")) == ""

    async def test_replace(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web", 1))

        await kubectl("replace", "-f", "-", stdin=deployment("web", 4))

        assert server.get("deployments", "web")["spec"]["replicas"] == 4

    async def test_label_sets_and_removes(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p", labels={"old": "1"}))

        await kubectl("label", "pod", "p", "new=2", "old-")

        assert server.get("pods", "p")["metadata"]["labels"] == {"new": "2"}

    async def test_annotate(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p"))

        await kubectl("annotate", "pod", "p", "why=because")

        assert server.get("pods", "p")["metadata"]["annotations"] == {"why": "because"}

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

    async def test_patch_status(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web"))
        patch = '{"status": {"readyReplicas": 1, "replicas": 1}}'

        await kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch)

        (row,) = await kubectl.columns("get", "deployments")
        assert row["READY"] == "1/1"

    async def test_scale_deployment(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web"))

        assert await kubectl("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"

        assert server.get("deployments", "web")["spec"]["replicas"] == 3

    async def test_scale_custom_resource(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        server.create("widgets", widget("w", replicas=1))

        await kubectl("scale", "widget/w", "--replicas=3")

        assert server.get("widgets", "w")["spec"]["replicas"] == 3

    async def test_set_image(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web"))

        await kubectl("set", "image", "deployment/web", "main=example.com/main:2")

        template = server.get("deployments", "web")["spec"]["template"]
        assert template["spec"]["containers"][0]["image"] == "example.com/main:2"

    async def test_delete(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("p"))

        assert (await kubectl("delete", "pod", "p")).startswith('pod "p" deleted')

        assert await kubectl("get", "pods") == ""

    async def test_delete_all(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("a"))
        server.create("pods", pod("b"))

        await kubectl("delete", "pods", "--all")

        assert await kubectl("get", "pods") == ""

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

    async def test_watch_deployments_in_all_namespaces(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("deployments", deployment("web"))
        async with kubectl.running("get", "deployments", "-A", "--watch", "--no-headers") as watch:
            await next_line(watch)
            await kubectl("scale", "deployment/web", "--replicas=7")

            assert (await next_line(watch)).split()[:3] == ["default", "web", "0/7"]

    async def test_watch_custom_resources(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        server.create("widgets", widget("a", size=1))
        async with kubectl.running("get", "widgets", "--watch", "--no-headers") as watch:
            await next_line(watch)
            server.create("widgets", widget("b", size=2))

            assert (await next_line(watch)).split() == ["b", "2"]

    async def test_watch_crds(self, kubectl: Kubectl, server: ApiServer, widgets: None) -> None:
        async with kubectl.running("get", "crd", "--watch", "-o", "name") as watch:
            await next_line(watch)
            server.create("customresourcedefinitions", definition("Gadget"))

            assert await next_line(watch) == "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com"

    async def test_watch_whole_objects(self, kubectl: Kubectl, server: ApiServer) -> None:
        server.create("pods", pod("a"))
        async with kubectl.running("get", "pods", "--watch", "-o", "jsonpath={.metadata.name}{'\\n'}") as watch:
            assert await next_line(watch) == "a"
            server.create("pods", pod("b"))

            assert await next_line(watch) == "b"


async def test_forbidden_user_sees_the_reason(kubectl_program: str, tmp_path: Path) -> None:
    async with ApiServer(tls=True, authorization_mode="RBAC", tokens={"secret": "jane"}) as server:
        kubectl = Kubectl(kubectl_program, environment(tmp_path, server.kubeconfig(tmp_path / "kubeconfig")))
        with pytest.raises(KubectlError) as caught:
            await kubectl("get", "pods")
    why = 'User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    assert str(caught.value) == f"Error from server (Forbidden): pods is forbidden: {why}\n"
