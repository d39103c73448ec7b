"""Objects as YAML for people and kubectl."""

from __future__ import annotations

from aioinformer import load_manifests
from aioinformer.cli.controllers.manifest import to_yaml


def test_yaml_has_the_keys_in_order_and_no_aliases() -> None:
    shared = {"b": "yes", "a": "x\ny\n"}
    assert to_yaml({"spec": shared, "kind": "K", "status": shared}) == (
        "kind: K\nspec:\n  a: |\n    x\n    y\n  b: 'yes'\nstatus:\n  a: |\n    x\n    y\n  b: 'yes'\n"
    )


def test_manifests_can_be_written_and_read_again() -> None:
    read = load_manifests(
        "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
    )
    assert load_manifests(to_yaml(*read)) == read
