"""Persistent state: manifests, saved folders."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import UsageError
from aioinformer.testing import ApiServer
from tests.support.api import DEFINITION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.api import Api

RESOURCES = ("namespaces", "pods", "configmaps", "customresourcedefinitions")
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def everything(server: ApiServer) -> list[Any]:
    return [server.resource_version, *(server.list(resource) for resource in RESOURCES)]


def filled() -> ApiServer:
    server = ApiServer()
    server.create("customresourcedefinitions", DEFINITION)
    server.create("widgets", {"metadata": {"name": "w"}})
    pod = server.create("pods", POD)
    server.update("pods", pod | {"status": {"phase": "Running"}}, subresource="status")
    server.create("configmaps", {"metadata": {"name": "gone"}})
    server.delete("configmaps", "gone")
    return server


def test_saved_state_is_loaded_unchanged(tmp_path: Path) -> None:
    first, second = filled(), ApiServer()
    first.save_manifests(tmp_path / "state")
    second.load_manifests(tmp_path / "state")
    assert everything(second) == everything(first)
    assert second.list("widgets") == first.list("widgets")


def test_saving_removes_files_of_deleted_resources(tmp_path: Path) -> None:
    server = filled()
    server.save_manifests(tmp_path)
    server.delete("pods", "p")
    server.save_manifests(tmp_path)
    assert not (tmp_path / "pods.json").exists()


async def test_versions_before_a_load_are_expired(tmp_path: Path, server: ApiServer, api: Api) -> None:
    filled().save_manifests(tmp_path)
    server.load_manifests(tmp_path)
    [event] = await api.events("resourceVersion=3", "/api/v1/pods")
    assert event["object"]["code"] == 410


def test_manifests_are_created_in_dependency_order(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n"
        "spec: {containers: [{name: c, image: i}]}\nstatus: {phase: Running}\n"
    )
    definition = DEFINITION | {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    (tmp_path / "z.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [definition]}))
    server = ApiServer()
    assert server.load_manifests(tmp_path) == 3
    assert server.get("widgets", "w", "shop")["kind"] == "Widget"
    pod = server.get("pods", "p", "shop")
    assert (pod["status"]["phase"], pod["spec"]["restartPolicy"]) == ("Running", "Always")


def test_loading_twice_replaces(tmp_path: Path) -> None:
    path, server = tmp_path / "a.yaml", ApiServer()
    for value in ("1", "2"):
        path.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{k: '{value}'}}\n")
        server.load_manifests(path)
    assert server.get("configmaps", "c")["data"] == {"k": "2"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "a.yaml: cannot be read"),
        ("just text", "document 1 is no object"),
        ("kind: Pod\napiVersion: v1", "Pod needs metadata"),
        ("kind: Gadget\napiVersion: example.com/v1\nmetadata: {name: g}", "Gadget of example.com/v1 is not served"),
        ("kind: Pod\napiVersion: v1\nmetadata: {name: A_b}", "Pod default/A_b is refused"),
    ],
)
def test_unloadable_manifest_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UsageError, match=told):
        ApiServer().load_manifests(tmp_path)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: there is no such file or folder"):
        ApiServer().load_manifests(tmp_path / "nowhere")
