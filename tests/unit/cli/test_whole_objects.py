"""Whole objects in lines, and the redaction of Secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.cli.output.lines import JsonFormat, TextFormat
from aioinformer.cli.output.palette import Palette
from aioinformer.cli.output.whole_objects import LAST_APPLIED, is_secret, redacted
from aioinformer.resources.catalog import find
from aioinformer.resources.resource import Resource

SECRET = {
    "kind": "Secret",
    "metadata": {"name": "a", "annotations": {LAST_APPLIED: '{"data":{"p":"hunter2"}}', "note": "kept"}},
    "data": {"p": "hunter2"},
    "stringData": {"q": "hunter2"},
    "type": "Opaque",
}


def encoded(obj: Any) -> bytes:
    return json.dumps(obj).encode()


def test_values_and_last_applied_annotation_are_redacted() -> None:
    assert json.loads(redacted(encoded(SECRET), secret=False)) == {
        "kind": "Secret",
        "metadata": {"name": "a", "annotations": {LAST_APPLIED: "<redacted>", "note": "kept"}},
        "data": {"p": "<redacted>"},
        "stringData": {"q": "<redacted>"},
        "type": "Opaque",
    }


def test_secret_without_kind_is_known_by_its_resource() -> None:
    without = {name: value for name, value in SECRET.items() if name != "kind"}
    assert b"hunter2" in redacted(encoded(without), secret=False)
    assert b"hunter2" not in redacted(encoded(without), secret=True)
    assert is_secret(find("", "v1", "secrets"))
    assert is_secret(Resource("example.com", "v1", "vaults", "Secret"))
    assert not is_secret(find("", "v1", "configmaps"))


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"Secret","data":"hunter2"}',
        b'{"kind":"Secret","data":["hunter2"]}',
        b'{"kind":"Secret","Data":{"p":"hunter2"}}',
        b'{"kind":"Secret","data":{"p":{"q":"hunter2"}}}',
        b'{"kind":"Secret","data":{"p":"hunter2"},"data":{}}',
        b'{"kind":"Secret","metadata":"hunter2"}',
        b'{"kind":"Secret","metadata":{"annotations":["hunter2"]}}',
        b'{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":["hunter2"]}}}',
        b'{"kind":"Secret","data":{"p":"hunter2"}',
    ],
)
def test_malformed_secret_is_redacted(body: bytes) -> None:
    assert b"hunter2" not in redacted(body, secret=False)


def test_other_fields_keep_their_bytes() -> None:
    body = b'{"kind":"ConfigMap", "data":{"n":1.50, "big":12345678901234567890, "e":"\\u00e4"}}'
    assert redacted(body, secret=False) == body
    body = b'{"kind":"Secret","metadata":{"name":"a","generation":12345678901234567890,"x":"\\u00e4","f":1.50}}'
    assert redacted(body, secret=False) == body


def test_synced_line_names_the_resource() -> None:
    assert (
        JsonFormat("pods").synced(1, "7") == b'{"event":"synced","resource":"pods","count":1,"resourceVersion":"7"}\n'
    )


class SecretObject:
    def __init__(self, version: str, value: str) -> None:
        self.metadata = type("Metadata", (), {"name": "a", "namespace": "ns", "uid": "u", "resource_version": version})
        self._fields = {"data": {"password": value}}

    def to_dict(self) -> dict[str, Any]:
        return self._fields


@pytest.mark.parametrize(
    ("show", "expected"), [(False, "data.password changed"), (True, "data.password hunter1 → hunter2")]
)
def test_text_shows_values_of_secrets_only_on_request(show: bool, expected: str) -> None:
    form = TextFormat(Palette(False), lambda: "", secret=True, show_secrets=show)
    assert form.update(SecretObject("1", "hunter1"), SecretObject("2", "hunter2")).decode().rstrip().endswith(expected)
