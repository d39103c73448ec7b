"""Files: manifests, saved folders, kubeconfigs. They are private, and links are replaced, not followed."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from aioinformer import UsageError, connect
from aioinformer.testing import ApiServer
from aioinformer.transport.auth.yaml_documents import documents, load_yaml
from tests.support.api import CONFIGMAPS, DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.api import Api

RESOURCES = ("namespaces", "pods", "configmaps", "customresourcedefinitions")
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
LEVELS = range(1, 30)
LAUGHS = "a0: &a0 lol\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in LEVELS)
BOMBS = {
    "aliases of aliases": HEAD + LAUGHS,
    "merged keys": HEAD
    + "a0: &a0 {k: v}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in LEVELS),
    "one long text": HEAD + f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n",
    "itself": HEAD + "a: &a [*a]\n",
    "its own key": HEAD + "? &a [*a]\n: b\n",
    "depth": HEAD + f"a: {'[' * 500}{']' * 500}\n",
}
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
        ("a: [", "a.yaml:1: cannot be read"),
        ("just text", "a.yaml:1: expected an object with apiVersion and kind"),
        ("kind: Pod\napiVersion: v1", "a.yaml:1: Pod: metadata.name is missing"),
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


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


def text_of(path: Path) -> str:
    return path.read_text()


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def test_saved_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    filled().save_manifests(folder)
    assert mode(folder) == 0o700
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_saving_replaces_open_files_and_links(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "pods.json").symlink_to(precious)
    (tmp_path / ".state.json").write_text("{}")
    filled().save_manifests(tmp_path)
    assert text_of(precious) == "precious"
    assert mode(tmp_path / "pods.json") == mode(tmp_path / ".state.json") == 0o600
    assert not (tmp_path / "pods.json").is_symlink()
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ""}


async def test_kubeconfig_replaces_links_and_existing_files(tmp_path: Path, precious: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.symlink_to(precious)
    (tmp_path / f".kubeconfig.{os.getpid()}").symlink_to(precious)
    async with ApiServer() as server:
        assert server.kubeconfig(path) == path
    assert text_of(precious) == "precious"
    assert stat.S_ISREG(path.lstat().st_mode)
    assert mode(path) == 0o600


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_yaml_bomb_in_a_request_is_400(api: Api, bomb: str) -> None:
    status, answer = await api("POST", CONFIGMAPS, bomb.encode(), content_type="application/yaml")
    assert (status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("method", "query", "kind"),
    [("PATCH", "?fieldManager=me", "application/apply-patch+yaml"), ("DELETE", "", "application/yaml")],
)
async def test_yaml_bomb_in_other_methods_is_400(api: Api, method: str, query: str, kind: str) -> None:
    status, answer = await api(method, f"{CONFIGMAPS}/a{query}", BOMBS["itself"].encode(), content_type=kind)
    assert (status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_yaml_bomb_in_a_manifest_is_refused(tmp_path: Path, bomb: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(bomb)
    with pytest.raises(UsageError, match=r"bomb\.yaml(:\d+)?: cannot be read: .*(alias|itself|depth)"):
        ApiServer().load_manifests(path)


def test_yaml_bomb_error_says_excessive_aliasing() -> None:
    with pytest.raises(yaml.YAMLError, match="document contains excessive aliasing"):
        load_yaml(BOMBS["aliases of aliases"])


def test_ordinary_aliases_and_merges_are_resolved() -> None:
    text = "base: &base {image: web, args: &args [a, b]}\nsome: [{<<: *base, name: one}, {args: *args}]\n"
    assert load_yaml(text)["some"] == [{"image": "web", "args": ["a", "b"], "name": "one"}, {"args": ["a", "b"]}]
    many = "a: &a {x: 1}\nb: [" + ", ".join(["*a"] * 10_000) + "]\n"
    assert len(load_yaml(many)["b"]) == 10_000
    found = documents("a: &a 1\n---\nb: &a 2\nc: *a\n")
    assert [each.value for each in found] == [{"a": 1}, {"b": 2, "c": 2}]


async def test_kubeconfig_of_the_test_server_is_private(tmp_path: Path) -> None:
    token = "hunter2"
    async with ApiServer(tokens={token: "somebody"}) as server:
        path = server.kubeconfig(tmp_path / "kubeconfig")
        assert path.stat().st_mode & 0o077 == 0
        connection = await connect(kubeconfig=path)
        assert token not in repr(connection)
        await connection.aclose()
