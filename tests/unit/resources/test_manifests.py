"""Manifests: what is read, and which errors name which line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import UsageError, load_manifests
from aioinformer.models import apps_v1

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
# a comment
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
---
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: one}
  - {apiVersion: example.com/v1, kind: Widget, metadata: {name: two}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true}]
"""


def test_documents_and_items_of_lists_are_read_with_their_lines_and_kinds() -> None:
    web, one, two, definition = load_manifests(TEXT)
    assert (web.title, web.source, web.resource) == ("Deployment shop/web", "line 2", apps_v1.DEPLOYMENTS)
    assert (one["metadata"], one.source) == ({"name": "one"}, "line 10")
    assert two.resource is not None
    assert (two.resource.gvr, two.resource.namespaced, two.source) == ("example.com/v1/widgets", False, "line 13")
    assert definition.resource is not None


def test_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt", ".d.yaml"):
        (tmp_path / name).write_text(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name[0]}x}}}}")
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}')
    found = load_manifests(tmp_path)
    assert [each.source.rpartition("/")[2] for each in found] == ["a.yml:1", "b.yaml:1", "c.json:1"]
    assert load_manifests(str(tmp_path / "a.yml"))[0]["metadata"] == {"name": "ax"}


HEAD = "apiVersion: v1\nkind: Pod\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD + "metadata: {name: a\n", "a.yaml:3: cannot be read"),
        (HEAD + "metadata: {name: a}\nkind: Job\n", "a.yaml:4: cannot be read: the key 'kind' occurs twice"),
        (HEAD + "metadata: {name: a}\n---\n- 1\n", "a.yaml:5: expected an object with apiVersion and kind, not list"),
        (HEAD + "metadata: {name: a}\n---\nkind: Pod\n", "a.yaml:5: apiVersion is missing"),
        (HEAD + "metadata: {name: 12}\n", "a.yaml:1: Pod: metadata.name must be a text, not 12; quote it"),
        (HEAD + "spec: {}\n", "a.yaml:1: Pod: metadata.name is missing"),
        (
            HEAD + "metadata: {name: a}\n---\n" + HEAD + "metadata: {name: a}\n",
            "a.yaml:5: Pod a is in .*a.yaml:1 already",
        ),
        ("apiVersion: v1\nkind: PodList\nitems:\n- {}\n", "a.yaml:4: apiVersion is missing"),
    ],
)
def test_error_names_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UsageError, match=told):
        load_manifests(tmp_path / "a.yaml")


def test_error_in_json_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n"a": 1,\n"b" 2}')
    with pytest.raises(UsageError, match=r"a\.json:3: cannot be read"):
        load_manifests(tmp_path / "a.json")


def test_repeated_key_in_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "name": "b"}}')
    with pytest.raises(UsageError, match=r"a\.json:1: cannot be read: the key 'name' occurs twice"):
        load_manifests(tmp_path / "a.json")


def test_json_has_the_numbers_of_kubectl_and_several_objects(tmp_path: Path) -> None:
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}, "spec": [1.0, 1e3, 18446744073709551615]}'
    (tmp_path / "a.json").write_text(pod % "a" + "\n" + pod % "b" + "\n")
    found = load_manifests(tmp_path / "a.json")
    assert [each["metadata"]["name"] for each in found] == ["a", "b"]
    assert [type(number) for number in found[0]["spec"]] == [int, int, float]
    (tmp_path / "a.json").write_text(pod.replace("1.0", "NaN"))
    with pytest.raises(UsageError, match=r"a\.json:1: cannot be read: JSON has no NaN"):
        load_manifests(tmp_path / "a.json")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: there is no such file"):
        load_manifests(tmp_path / "nowhere")
