"""The line of a notification, as JSON and as text: changes, whole objects, and the redaction of Secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown, Resource
from aioinformer.cli.output.changes import describe_changes
from aioinformer.cli.output.lines import Columns, JsonFormat, TextFormat
from aioinformer.cli.output.palette import Palette
from aioinformer.cli.output.whole_objects import LAST_APPLIED, is_secret, redacted
from aioinformer.models import core_v1
from tests.unit.cli.things import thing


def text_form(**options: Any) -> TextFormat:
    return TextFormat(Palette(False), lambda: "12:00:00.000", **options)


def test_json_lines_are_compact_with_fields_in_order() -> None:
    form = JsonFormat()
    assert form.add(thing("1"), True) == (
        b'{"event":"add","key":"ns/a","uid":"u","resourceVersion":"1","initial":true}\n'
    )
    assert form.synced(1, "7") == b'{"event":"synced","count":1,"resourceVersion":"7"}\n'
    assert form.update(thing("1"), thing("2")) == (
        b'{"event":"update","key":"ns/a","uid":"u","resourceVersion":"2","oldResourceVersion":"1"}\n'
    )
    assert form.delete(thing("3")) == (
        b'{"event":"delete","key":"ns/a","uid":"u","resourceVersion":"3","tombstone":false}\n'
    )
    assert form.stored(thing("4", name="b", namespace=None)) == (
        b'{"event":"store","key":"b","uid":"u","resourceVersion":"4"}\n'
    )


def test_json_tombstone_has_the_last_known_version() -> None:
    line = json.loads(JsonFormat().delete(DeletedFinalStateUnknown("ns/a", thing("3"))))
    assert (line["key"], line["resourceVersion"], line["tombstone"]) == ("ns/a", "3", True)


def test_json_tombstone_without_state_has_all_fields() -> None:
    line = json.loads(JsonFormat().delete(DeletedFinalStateUnknown("ns/a", None)))
    assert (line["key"], line["uid"], line["resourceVersion"], line["tombstone"]) == ("ns/a", "", "", True)


def test_text_has_columns() -> None:
    form = text_form()
    lines = [
        form.add(thing("1"), False),
        form.update(thing("1", "Pending"), thing("2", "Running")),
        form.delete(thing("3", name="a-longer-name")),
    ]
    assert [line.decode().rstrip() for line in lines] == [
        "12:00:00.000  add     ns/a                        version 1",
        "12:00:00.000  update  ns/a                        status.phase Pending → Running",
        "12:00:00.000  delete  ns/a-longer-name",
    ]


def test_text_shows_resyncs_and_recreated_objects() -> None:
    form = text_form()
    assert form.update(thing("1"), thing("1")).split()[1] == b"resync"
    assert b"deleted and created again" in form.update(thing("1"), thing("2", uid="other"))


def test_text_shows_a_missed_deletion() -> None:
    assert b"missed while not watching" in text_form().delete(DeletedFinalStateUnknown("ns/a", thing("3")))


def test_text_aligns_columns_of_several_resources() -> None:
    columns = Columns()
    forms = [text_form(resource=name, columns=columns) for name in ("pods", "configmaps")]
    lines = [
        form.add(thing("1", name="a" * length), False).decode() for form, length in zip(forms, (3, 40), strict=True)
    ]
    assert [line.split()[2:4] for line in lines] == [["pods", "ns/aaa"], ["configmaps", f"ns/{'a' * 40}"]]
    assert len({line.index("ns/") for line in lines}) == 1
    assert forms[0].add(thing("1"), False).decode().index("version") == lines[1].index("version")


def test_changes_show_paths_and_short_values() -> None:
    old = {"spec": {"replicas": 1}, "metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    new = {"spec": {"replicas": 2}, "metadata": {"resourceVersion": "2", "labels": {}}}
    assert describe_changes(old, new) == "spec.replicas 1 → 2, metadata.labels.a removed"


def test_changes_pair_list_items_by_name() -> None:
    old = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Old", "status": "x"}]}
    new = {"conditions": [{"type": "New", "status": "y"}, {"type": "Ready", "status": "True"}]}
    assert (
        describe_changes(old, new)
        == "conditions[Ready].status False → True, conditions[Old] removed, conditions[New] added"
    )


def test_changes_put_the_most_informative_first() -> None:
    new = {
        "metadata": {"labels": {"a": "b"}},
        "status": {
            "conditions": [{"type": "Ready"}],
            "containers": [{"id": 1}],
            "phase": "Running",
            "startTime": "now",
        },
    }
    assert describe_changes({"metadata": {"labels": {}}, "status": {}}, new) == (
        "status.phase = Running, metadata.labels.a = b, status.containers added, 2 more"
    )


def test_changes_show_the_start_of_a_deletion() -> None:
    going = {"metadata": {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 30, "generation": 2}}
    assert describe_changes({"metadata": {"generation": 1}}, going) == "is being deleted"
    assert describe_changes(going, going) == ""


def test_changes_count_what_they_omit() -> None:
    assert describe_changes({}, {"a": 1, "b": 2, "c": 3, "d": 4, "e": "x" * 99}) == "a = 1, b = 2, c = 3, 2 more"
    old, new = ({"a" * 60: number, "b" * 60: number} for number in (1, 2))
    assert describe_changes(old, new) == f"{'a' * 60} 1 → 2, 1 more"


def test_changes_omit_values_of_secrets_and_annotations() -> None:
    old = {"kind": "Secret", "data": {"password": "b2xk"}, "metadata": {"annotations": {"a": "old"}}}
    new = {"kind": "Secret", "data": {"password": "bmV3"}, "metadata": {"annotations": {"a": "new"}}}
    assert describe_changes(old, new) == "data.password changed, metadata.annotations.a changed"
    assert describe_changes({"kind": "Secret"}, new) == "data added, metadata added"


def test_changes_stay_on_one_line() -> None:
    assert "\n" not in describe_changes({"a": "x"}, {"a": "y\nz\x1b[31m"})


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
    assert is_secret(core_v1.SECRETS)
    assert is_secret(Resource("example.com", "v1", "vaults", "Secret"))
    assert not is_secret(core_v1.CONFIG_MAPS)


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


@pytest.mark.parametrize(("width", "start"), [(0, 50), (80, 50), (70, 22)])
def test_synced_line_fits_into_the_terminal(width: int, start: int) -> None:
    form = text_form(columns=Columns(width))
    line = form.synced(3, "3228").decode().rstrip()
    assert line.index("3 objects at version 3228") == start
    assert len(line) <= (width or len(line))


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
