"""Field paths: syntax, values, and declared fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.cache.objects.fields import FieldDecoder, FieldIndexFunc, field_filter, field_value, parse_path
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import SelectorError, UsageError


def body(name: str, version: int, metadata: dict[str, Any] | None = None, **more: Any) -> bytes:
    """An object as a list has it."""
    own = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return json.dumps({"metadata": own | (metadata or {}), **more}, separators=(",", ":")).encode()


POD = body(
    "a",
    7,
    {"labels": {"app": "web"}, "annotations": {"example.com/owner": "me"}},
    spec={"nodeName": "n1", "tolerations": [{"key": "k"}], "hostNetwork": True},
    status={"phase": "Running", "podIPs": ["10.0.0.1", "10.0.0.2"]},
)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("spec.nodeName", ("spec", "nodeName")),
        ("metadata.annotations['a.b/c']", ("metadata", "annotations", "a.b/c")),
        ('metadata.labels["a.b"].c', ("metadata", "labels", "a.b", "c")),
        ("kind", ("kind",)),
    ],
)
def test_path_syntax_with_dots_and_brackets(path: str, steps: tuple[str, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a[b]", "a b", "a.", "a['b'"])
def test_invalid_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(UsageError, match=r"write it like spec\.nodeName|must not be empty"):
        parse_path(path)


@pytest.fixture(params=["declared", "not declared"])
def pod(request: pytest.FixtureRequest) -> Record:
    if request.param == "not declared":
        return decode_record(POD)
    return FieldDecoder(
        [
            "spec.nodeName",
            "status.phase",
            "metadata.annotations['example.com/owner']",
            "status.podIPs",
            "spec.missing.x",
        ]
    )(POD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.nodeName", "n1"),
        ("status.phase", "Running"),
        ("metadata.annotations['example.com/owner']", "me"),
        ("metadata.labels.app", "web"),
        ("metadata.labels.none", None),
        ("metadata.name", "a"),
        ("metadata.resourceVersion", "7"),
        ("spec.missing.x", None),
        ("spec.nodeName.x", None),
    ],
)
def test_declared_and_undeclared_paths_have_equal_values(pod: Record, path: str, value: Any) -> None:
    assert field_value(pod, parse_path(path)) == value


def test_declared_field_is_read_without_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    record = FieldDecoder(["spec.nodeName"])(POD)
    record.raw = b"not JSON any more"
    assert field_value(record, ("spec", "nodeName")) == "n1"


def test_declared_path_through_a_scalar_is_absent() -> None:
    record = FieldDecoder(["spec.nodeName"])(body("a", 1, spec="none"))
    assert (record.key, field_value(record, ("spec", "nodeName"))) == ("ns/a", None)


@pytest.mark.parametrize("paths", [("spec", "spec.nodeName"), ("spec.nodeName", "spec")])
def test_contradicting_declared_paths_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="declare one"):
        FieldDecoder(paths)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.nodeName", ["n1"]),
        ("spec.hostNetwork", ["true"]),
        ("status.podIPs", ["10.0.0.1", "10.0.0.2"]),
        ("spec.missing", []),
        ("spec.tolerations", []),
    ],
)
def test_field_index_has_strings_and_list_elements(pod: Record, path: str, values: list[str]) -> None:
    assert FieldIndexFunc(path)(pod) == values


@pytest.mark.conformance("WEAK-22")
@pytest.mark.parametrize(
    ("selector", "passes"),
    [
        ("status.phase=Running", True),
        ("status.phase!=Running", False),
        ("spec.nodeName=n1,metadata.labels.app=web", True),
        ("spec.missing=", True),
        ("spec.hostNetwork=true", True),
    ],
)
def test_field_filter_follows_the_selector(pod: Record, selector: str, passes: bool) -> None:
    assert field_filter(selector)(pod) is passes


@pytest.mark.parametrize(
    ("path", "value"),
    [("spec.nodeName", "n1"), ("spec.nodeName.x", None), ("spec", None), ("spec.deep", None), ("status.phase", None)],
)
def test_path_leads_through_very_deep_objects(path: str, value: Any) -> None:
    deep = body("a", 7, spec={"deep": "?", "nodeName": "n1"}).replace(b'"?"', b"[" * 20_000 + b"]" * 20_000)
    assert field_value(decode_record(deep), parse_path(path)) == value
    assert field_filter(f"{path}={value or ''}")(decode_record(deep))


def test_invalid_field_filter_is_refused_at_once() -> None:
    with pytest.raises(SelectorError):
        field_filter("status.phase>Running")


def test_path_leads_through_dicts() -> None:
    assert field_value({"spec": {"nodeName": "n1"}}, ("spec", "nodeName")) == "n1"
