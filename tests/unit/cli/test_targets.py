"""The RESOURCE and NAME arguments of `watch`."""

from __future__ import annotations

import pytest

from aioinformer.cli.targets import Target, parse_targets
from aioinformer.errors import UsageError


@pytest.mark.parametrize(
    ("text", "name", "targets"),
    [
        ("pods", None, [("pods", "")]),
        ("pods/web-1", None, [("pods", "web-1")]),
        ("pod", "web-1", [("pod", "web-1")]),
        ("v1/pods", None, [("v1/pods", "")]),
        ("v1/pods/web-1", None, [("v1/pods", "web-1")]),
        ("v1/pods", "v1", [("v1/pods", "v1")]),
        ("pods/v1", None, [("pods", "v1")]),
        ("apps/v1/deployments", None, [("apps/v1/deployments", "")]),
        ("apps/v1/deployments/web", None, [("apps/v1/deployments", "web")]),
        ("example.com/stable/widgets", None, [("example.com/stable/widgets", "")]),
        ("pods,services, widgets.example.com", None, [("pods", ""), ("services", ""), ("widgets.example.com", "")]),
        ("pods,services", "web", [("pods", "web"), ("services", "web")]),
        ("pods/a,pods/b,pods/a", None, [("pods", "a"), ("pods", "b")]),
    ],
)
def test_targets_are_parsed_as_by_kubectl(text: str, name: str | None, targets: list[tuple[str, str]]) -> None:
    assert parse_targets(text, name) == tuple(Target(*target) for target in targets)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", None, "'' is not the name of a resource"),
        ("pods,,services", None, "'' is not the name of a resource"),
        ("pods/", None, "'' is not the name of an object"),
        ("pods", "", "'' is not the name of an object"),
        ("pods", "a/b", "'a/b' is not the name of an object"),
        ("pods/a", "b", "already names an object"),
        ("a/b/c/d", None, "is not the name of a resource"),
    ],
)
def test_invalid_targets_are_refused(text: str, name: str | None, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        parse_targets(text, name)


def test_named_object_becomes_a_field_selector() -> None:
    assert Target("pods", "a=b").field_selector("status.phase=Running") == "metadata.name=a\\=b,status.phase=Running"
    assert Target("pods").field_selector("a=b") == "a=b"
