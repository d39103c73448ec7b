"""Damaged bytes in a watch: no object gets the data of another one, and the cache reaches the server's state."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.cache.objects.fields import FieldDecoder
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.storage import projection
from aioinformer.reflector import ReflectorOptions
from aioinformer.reflector.protocol.messages import Ended, Failed, Listed, PageEnded, Watched
from aioinformer.reflector.response_reader import WatchParser
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import Expected, RecordDecoder
from tests.support.conversation import Conversation

OPTIONS = ReflectorOptions(streaming_list=False)
KIND = Expected(("Widget",), "example.com/v1", "ns")


def projecting() -> RecordDecoder:
    fields = FieldDecoder(["spec.owner"])
    return RecordDecoder(projection(fields), decode=fields, expected=KIND)


DECODERS = {"bytes": lambda: RecordDecoder(expected=KIND), "projection": projecting}
MANAGED = [
    {"manager": "kubelet", "time": None, "fieldsV1": {'k:{"type":"Ready"}': {".": {}, "f:x": [1, -2.5e3, True]}}},
    {"manager": "kübelet", "fieldsV1": {"f:status": {}}},
]


def encoded(name: str, version: int) -> bytes:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    document = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {**metadata, "labels": {"a": "b"}, "managedFields": MANAGED},
        "spec": {"owner": name, "text": f"{name} \u00e9 \n", "version": version},
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def line(kind: str, name: str, version: int) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoded(name, version))


# Names differ in more than one byte, so one byte cannot turn one into another.
LISTED = {name: encoded(name, 10) for name in ("alpha", "gamma")}
EVENTS = [
    (11, line("ADDED", "omega", 11)),
    (12, line("MODIFIED", "alpha", 12)),
    (13, line("DELETED", "gamma", 13)),
    (14, line("MODIFIED", "omega", 14)),
    (15, b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"15"}}}\n'),
]
STREAM = b"".join(text for _, text in EVENTS)
TRUTH = {"ns/alpha": encoded("alpha", 12), "ns/omega": encoded("omega", 14)}


def is_json_stream(text: bytes) -> bool:
    try:
        decoded, decoder, at = text.decode(), json.JSONDecoder(), 0
        while rest := decoded[at:].lstrip():
            at = len(decoded) - len(rest)
            at = decoder.raw_decode(decoded, at)[1]
    except ValueError:
        return False
    return True


class Follower:
    """A conversation whose server sends a damaged stream once, and then answers rightly."""

    def __init__(self, decoder: RecordDecoder) -> None:
        self.decoder = decoder
        self.talk = Conversation(OPTIONS)
        self.lists = 0
        #: All objects that handlers would get.
        self.delivered: list[Record] = []

    def watch(self, text: bytes, size: int) -> None:
        self.talk.accept()
        parser = WatchParser(self.decoder, OPTIONS)
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        for chunk in [*chunks, None]:
            for answer in parser.parse(chunk, initial=False):
                if isinstance(answer, Watched):
                    self.delivered += [event.record for event in answer.events if event.record is not None]
                self.talk.answer(answer, after=2.0 if chunk is None else 0.0)
                if isinstance(answer, Failed | Ended):
                    return

    def list(self, objects: list[bytes], version: int) -> None:
        self.talk.accept()
        self.talk.answer(Listed([self.decoder.from_list(raw) for raw in objects]), PageEnded(str(version)))
        self.lists += 1

    def run(self, damaged: bytes, size: int) -> None:
        assert self.talk.ask().startswith("list")
        self.list([*LISTED.values()], 10)
        assert self.talk.ask() == "watch @10"
        self.watch(damaged, size)
        for _ in range(5):
            words = self.talk.ask()
            if words.startswith("list"):
                self.list([*TRUTH.values()], 15)
            else:
                version = words.partition("@")[2]
                if not version.isdecimal():
                    self.talk.refuse(410, "Expired")
                    continue
                self.watch(b"".join(text for number, text in EVENTS if number > int(version)), size)


def damage(text: bytes, kind: str, at: int, byte: int) -> bytes:
    match kind:
        case "delete":
            return text[:at] + text[at + 1 :]
        case "insert":
            return text[:at] + bytes([byte]) + text[at:]
        case _:
            return text[:at] + bytes([text[at] ^ (byte or 1)]) + text[at + 1 :]


@pytest.mark.parametrize("form", DECODERS)
@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["delete", "insert", "flip"]),
    at=st.integers(0, len(STREAM) - 1),
    byte=st.integers(0, 255) | st.sampled_from(list(b'{}[]":,\\\n 019')),
    size=st.sampled_from([1, 7, 100, 500, 10_000]),
)
def test_damaged_byte_cannot_mix_objects(form: str, kind: str, at: int, byte: int, size: int) -> None:
    if kind == "insert" and byte == 0x7D:
        size = len(STREAM) + 1  # an event that seems to end with its chunk is delivered before the next one shows more
    damaged, follower = damage(STREAM, kind, at, byte), Follower(DECODERS[form]())
    follower.run(damaged, size)
    for record in follower.delivered:
        owner = msgspec.json.decode(record.json).get("spec", {}).get("owner")
        assert not {record.name, owner} <= {"alpha", "gamma", "omega"} or record.name == owner
    if not is_json_stream(damaged):
        right = {key: DECODERS[form]().from_list(raw) for key, raw in TRUTH.items()}
        assert follower.talk.cache.keys() == right.keys()
        assert all(follower.talk.cache[key].same_content(record) for key, record in right.items())


# Events of another kind or namespace.


def foreign(kind: str = "Widget", namespace: str = "ns", type_: str = "MODIFIED", group: str = "example.com") -> bytes:
    text = line(type_, "alpha", 99).replace(b'"kind":"Widget"', b'"kind":"%b"' % kind.encode())
    text = text.replace(b'"namespace":"ns"', b'"namespace":"%b"' % namespace.encode())
    return text.replace(b"example.com/", group.encode() + b"/")


@pytest.mark.conformance("REF-42")
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(
    ("kind", "namespace"), [("Gadget", "ns"), ("Widget", "other"), ("Widgets", ""), ("Status", "ns")]
)
def test_foreign_events_are_skipped_and_shown(kind: str, namespace: str, type_: str) -> None:
    follower = Follower(RecordDecoder(expected=KIND))
    follower.run(foreign(kind, namespace, type_) + EVENTS[0][1], 10_000)
    talk = follower.talk
    assert talk.cache.keys() == TRUTH.keys()
    assert follower.delivered[0].name == "omega"
    assert talk.protocol.state.quarantine.total == 1
    assert [text for text in talk.lines if "another kind or namespace" in text]
    assert follower.lists == 1


@pytest.mark.parametrize(
    "event",
    [
        line("MODIFIED", "alpha", 99),
        foreign(group="other.example.com"),
        line("MODIFIED", "alpha", 99).replace(b'"apiVersion":"example.com/v1","kind":"Widget",', b""),
        line("MODIFIED", "alpha", 99).replace(b'"apiVersion":"example.com/v1",', b""),
        line("MODIFIED", "alpha", 99).replace(b'":', b'" : '),
        line("MODIFIED", "alpha", 99).replace(
            b'"apiVersion":"example.com/v1","kind":"Widget"', b'"kind":"Widget","apiVersion":"example.com/v1"'
        ),
    ],
)
def test_own_kind_is_accepted_in_any_form(event: bytes) -> None:
    found = decode_watch_line(event.rstrip(), decode_record, KIND)
    assert found.record is not None
    assert found.record.key == "ns/alpha"


def test_informer_of_metadata_accepts_both_forms() -> None:
    expected = Expected(("Widget", "PartialObjectMetadata"), "example.com/v1")
    for kind, group in (("Widget", "example.com"), ("PartialObjectMetadata", "meta.k8s.io")):
        assert decode_watch_line(foreign(kind, group=group).rstrip(), decode_record, expected).record is not None
    assert decode_watch_line(foreign("Gadget").rstrip(), decode_record, expected).record is None


def test_many_foreign_events_change_the_state_rarely() -> None:
    follower, states = Follower(RecordDecoder(expected=KIND)), set[str]()
    talk = follower.talk
    talk.ask()
    follower.list([*LISTED.values()], 10)
    talk.ask()
    talk.accept()
    parser = WatchParser(follower.decoder, OPTIONS)
    for _ in range(1000):
        talk.answer(*parser.parse(foreign("Gadget"), initial=False))
        states.add(f"{talk.protocol.phase}: {talk.protocol.reason}")
    assert talk.protocol.state.quarantine.total == 1000
    assert len(states) == len(talk.lines) == 10
    assert "degraded: at least 512 events of another kind or namespace skipped" in states


def test_streaming_list_skips_foreign_objects() -> None:
    follower = Follower(RecordDecoder(expected=KIND))
    follower.talk = talk = Conversation(ReflectorOptions())
    assert talk.ask() == "stream"
    talk.accept()
    annotations = b'{"k8s.io/initial-events-end":"true"}'
    end = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"11","annotations":%b}}}\n' % annotations
    text = EVENTS[0][1] + foreign("Gadget", type_="ADDED") + end
    talk.answer(*WatchParser(follower.decoder, OPTIONS).parse(text, initial=True))
    assert talk.cache.keys() == {"ns/omega"}
    assert talk.protocol.reason == "at least 1 event of another kind or namespace skipped"
