"""Kubeconfig files: which are read, how they are merged, and which errors they cause."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from aioinformer.errors import UsageError
from aioinformer.transport.auth.kubeconfig import kubeconfig_paths, load_context

if TYPE_CHECKING:
    from pathlib import Path


def kubeconfig(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://one"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    }
    return {**content, **changes}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_current_context_is_used(tmp_path: Path) -> None:
    found = load_context([write(tmp_path / "config", kubeconfig())])
    assert (found.name, found.namespace, found.cluster["server"]) == ("one", "n", "https://one")
    assert "s3cret" not in repr(found)


def test_context_without_namespace_uses_default(tmp_path: Path) -> None:
    content = kubeconfig(contexts=[{"name": "one", "context": {"cluster": "c"}}])
    assert load_context([write(tmp_path / "config", content)]).namespace == "default"


def test_first_file_wins_when_merging(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}]})
    second = write(tmp_path / "second", kubeconfig())
    third = write(tmp_path / "third", kubeconfig(**{"current-context": "other"}))
    found = load_context([first, tmp_path / "missing", second, third])
    assert (found.name, found.cluster["server"], found.user_file) == ("one", "https://first", second)


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    users = {
        "client-certificate": "me.crt",
        "tokenFile": "/run/token",
        "exec": {"command": "./bin/plugin"},
        "auth-provider": {"name": "oidc", "config": {"idp-certificate-authority": "idp.crt"}},
    }
    content = kubeconfig(
        clusters=[{"name": "c", "cluster": {"server": "https://one", "certificate-authority": "pki/ca.crt"}}],
        users=[{"name": "u", "user": users}],
    )
    found = load_context([write(tmp_path / "folder" / "config", content)])
    folder = tmp_path / "folder"
    assert found.cluster["certificate-authority"] == str(folder / "pki/ca.crt")
    assert found.user["client-certificate"] == str(folder / "me.crt")
    assert found.user["tokenFile"] == "/run/token"
    assert found.user["exec"]["command"] == str(folder / "bin/plugin")
    assert found.user["auth-provider"]["config"]["idp-certificate-authority"] == str(folder / "idp.crt")


def test_plugin_without_path_is_looked_up_by_name(tmp_path: Path) -> None:
    content = kubeconfig(users=[{"name": "u", "user": {"exec": {"command": "aws"}}}])
    assert load_context([write(tmp_path / "config", content)]).user["exec"]["command"] == "aws"


def test_kubeconfig_variable_names_several_files() -> None:
    named = kubeconfig_paths({"KUBECONFIG": f"/a{os.pathsep}{os.pathsep}~/b"})
    assert [str(path) for path in named] == ["/a", os.path.expanduser("~/b")]


def test_home_folder_is_the_default() -> None:
    assert [str(path) for path in kubeconfig_paths({})] == [os.path.expanduser("~/.kube/config")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("users: [s3cret", "is not YAML in line 1; correct it"),
        ("- s3cret", "is not a kubeconfig"),
        (kubeconfig(contexts={}), r"context 'one' does not exist; name one of: \(none\)"),
        (kubeconfig(clusters="s3cret"), "clusters must be a list"),
        (kubeconfig(clusters=[{"cluster": "s3cret"}]), r"clusters\[0\]\.name is missing"),
        (kubeconfig(users=[{"name": "u", "user": "s3cret"}]), r"users\[u\]\.user must be a mapping"),
        (kubeconfig(users=[]), r"contexts\[one\]\.user is 'u', but this user does not exist"),
        (kubeconfig(clusters=[]), r"clusters\[c\]\.server is missing"),
        (kubeconfig(**{"current-context": ""}), "current-context is not set; name one of the contexts: one"),
        (kubeconfig(**{"current-context": "x"}), "context 'x' does not exist; name one of: one"),
        ("", "current-context is not set"),
    ],
)
def test_invalid_kubeconfig_names_file_field_and_remedy(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(UsageError, match=message) as caught:
        load_context([path])
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


_LEVELS = range(1, 30)
BOMBS = {
    "aliases of aliases": "a0: &a0 lol\n"
    + "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in _LEVELS),
    "merged keys": "a0: &a0 {k: v}\n"
    + "".join(f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n" for level in _LEVELS),
    "itself": "a: &a [*a]\n",
    "depth": f"a: {'[' * 5000}{']' * 5000}\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.timeout(10)
def test_kubeconfig_with_too_many_aliases_raises(tmp_path: Path, bomb: str) -> None:
    path = write(tmp_path / "config", bomb)
    with pytest.raises(UsageError, match=r"config cannot be read: .*(alias|itself|depth)"):
        load_context([path])


def test_kubeconfig_may_have_aliases(tmp_path: Path) -> None:
    content = yaml.safe_dump(kubeconfig(users=[])) + "users:\n- &u {name: u, user: {token: x}}\n"
    content = content.replace("users: []\n", "").replace("namespace: n", "namespace: &n n") + "copy: *n\n"
    assert load_context([write(tmp_path / "config", content)]).namespace == "n"
