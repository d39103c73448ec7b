"""YAML with aliases that expand beyond memory, in requests and in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from aioinformer import UsageError
from aioinformer.testing import ApiServer
from aioinformer.transport.auth.yaml_documents import load_all_yaml, load_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.api import Api

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
    "depth": HEAD + f"a: {'[' * 5000}{']' * 5000}\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_yaml_bomb_in_a_request_is_400(api: Api, bomb: str) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    for method, url, kind in (
        ("POST", path, "application/yaml"),
        ("PATCH", f"{path}/a?fieldManager=me", "application/apply-patch+yaml"),
        ("DELETE", f"{path}/a", "application/yaml"),
    ):
        status, answer = await api(method, url, bomb.encode(), content_type=kind)
        assert (status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_yaml_bomb_in_a_manifest_is_refused(tmp_path: Path, bomb: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(bomb)
    with pytest.raises(UsageError, match=r"bomb\.yaml: cannot be read: .*(alias|itself|depth)"):
        ApiServer().load_manifests(path)


def test_yaml_bomb_error_says_excessive_aliasing() -> None:
    with pytest.raises(yaml.YAMLError, match="document contains excessive aliasing"):
        load_yaml(BOMBS["aliases of aliases"])


def test_ordinary_aliases_and_merges_are_resolved() -> None:
    text = "base: &base {image: web, args: &args [a, b]}\nsome: [{<<: *base, name: one}, {args: *args}]\n"
    assert load_yaml(text)["some"] == [{"image": "web", "args": ["a", "b"], "name": "one"}, {"args": ["a", "b"]}]
    many = "a: &a {x: 1}\nb: [" + ", ".join(["*a"] * 10_000) + "]\n"
    assert len(load_yaml(many)["b"]) == 10_000
    assert list(load_all_yaml("a: &a 1\n---\nb: &a 2\nc: *a\n")) == [{"a": 1}, {"b": 2, "c": 2}]
