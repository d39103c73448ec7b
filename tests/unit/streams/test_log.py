"""The log of changes, and positions in it: any interleaving of changes, reads and losses of rights."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.resources import parse_label_selector
from aioinformer.streams import log as log_module
from aioinformer.streams.log import ChangeLog, Position
from aioinformer.streams.selection import Selection, selected

NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
LABELS = ("{}", '{"app":"web"}', '{"app":"db"}')


def selection(namespaces: frozenset[str] | None, labels: str) -> Selection:
    return selected(namespaces, parse_label_selector(labels))


EVERYTHING = selection(None, "")
SELECTIONS = st.builds(
    selection,
    st.sampled_from([None, frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})]),
    st.sampled_from(["", "app=web", "app!=web"]),
)


class Cluster:
    """The objects, and all states of each name: what a reader of a selection may have been told of."""

    def __init__(self, limit: int) -> None:
        self.log = ChangeLog(limit)
        self.objects: dict[str, tuple[str, str, int]] = {}

    def put(self, namespace: str, name: str, labels: str, value: int) -> None:
        key = f"{namespace}/{name}"
        self.objects[key] = namespace, labels, value
        self.log.put(key, namespace, labels.encode(), value)

    def delete(self, namespace: str, name: str) -> None:
        key = f"{namespace}/{name}"
        self.objects.pop(key, None)
        self.log.delete(key)

    def selected(self, by: Selection) -> dict[str, int]:
        return {
            key: value
            for key, (namespace, labels, value) in self.objects.items()
            if (by.namespaces is None or namespace in by.namespaces) and by.selector.matches(json.loads(labels))
        }


class Reader:
    """Applies what it reads to a copy, and checks that no name is told that was not selected while it was connected."""

    def __init__(self, cluster: Cluster, by: Selection) -> None:
        self.cluster = cluster
        self.by = by
        self.copy: dict[str, int] = {}
        self.resets = 0
        self.position: Position | None = None
        self.named: set[str] = set()
        self.allowed: set[str] = set()
        self.notice()

    def notice(self) -> None:
        """Note what is selected now, while the reader is connected, or may come back."""
        self.allowed |= self.cluster.selected(self.by).keys()

    def read(self, most: int) -> bool:
        """Read one part; return whether it was the last one."""
        log = self.cluster.log
        if self.position is not None and not log.has(self.position):
            self.position = None
            self.resets += 1
            self.copy.clear()
        if self.position is None:
            self.position = Position.begin(log.sequence)
        changes, self.position, complete = log.read(self.position, self.by, most)
        for change in changes:
            assert change.key in self.allowed, f"{change.key} was never in the selection"
            if change.value is None:
                self.copy.pop(change.key, None)
            else:
                self.copy[change.key] = change.value
        return complete

    def restrict(self, by: Selection) -> None:
        """Lose namespaces: what was in them is deleted."""
        if self.position is not None and self.cluster.log.has(self.position):
            for change in self.cluster.log.leaving(self.position, self.by, by):
                assert change.key in self.allowed
                self.copy.pop(change.key, None)
        else:
            self.position = None
            self.copy.clear()
        self.by = by
        namespaces = by.namespaces or ()
        self.allowed = {key for key in self.allowed if key.partition("/")[0] in namespaces}


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from(NAMESPACES),
            st.sampled_from(NAMES),
            st.sampled_from(LABELS),
            st.integers(0, 2),
        ),
        st.tuples(st.just("delete"), st.sampled_from(NAMESPACES), st.sampled_from(NAMES)),
        st.tuples(st.just("read"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("reader"), SELECTIONS),
        st.tuples(st.just("restrict"), st.integers(0, 3), st.sampled_from(NAMESPACES)),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([0, 450, 1500, 1 << 20]), st.booleans())
def test_any_interleaving_ends_with_the_selection(steps: list[Any], limit: int, compacting: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "_EMPTY", 1 if compacting else 512)
        patch.setattr(log_module, "_VISITED", 3)
        _play(steps, limit)


def _play(steps: list[Any], limit: int) -> None:
    cluster = Cluster(limit)
    readers: list[Reader] = []
    for action, *arguments in steps:
        if action == "put":
            cluster.put(*arguments)
        elif action == "delete":
            cluster.delete(*arguments)
        elif action == "reader":
            readers.append(Reader(cluster, arguments[0]))
        elif readers:
            reader = readers[arguments[0] % len(readers)]
            if action == "read":
                reader.read(arguments[1])
            else:
                had = reader.by.namespaces
                left = frozenset(NAMESPACES if had is None else had) - {arguments[1]}
                reader.restrict(selected(left, reader.by.selector))
        for reader in readers:
            reader.notice()
        assert cluster.log.kept <= max(limit, 0)
    for reader in readers:
        while not reader.read(2):
            pass
        assert reader.copy == cluster.selected(reader.by)


def names(log: ChangeLog, position: Position, by: Selection = EVERYTHING) -> list[str]:
    return [f"{'-' if each.value is None else '+'}{each.key}" for each in log.read(position, by, 100).changes]


def test_unread_changes_of_one_object_are_one() -> None:
    log = ChangeLog(1 << 20)
    for value in range(1000):
        log.put("a/x", "a", b"{}", value)
        log.put("a/y", "a", b"{}", value)
    assert names(log, Position.end(0)) == ["+a/x", "+a/y"]
    assert names(log, Position.end(log.sequence - 1)) == ["+a/y"]


def test_equal_view_is_no_change() -> None:
    log = ChangeLog(1 << 20)
    assert log.put("a/x", "a", b"{}", "Running")
    assert not log.put("a/x", "a", b"{}", "Running")
    assert log.put("a/x", "a", b"{}", "Failed")


def test_equal_view_with_other_labels_is_a_change_for_selections_only() -> None:
    log = ChangeLog(1 << 20)
    web = selection(None, "app=web")
    log.put("a/x", "a", b'{"app":"web"}', 1)
    position = Position.end(log.sequence)
    log.put("a/x", "a", b'{"app":"db"}', 1)
    assert names(log, position) == []
    assert names(log, position, web) == ["-a/x"]
    assert names(log, position, selection(None, "app=db")) == ["+a/x"]


def test_object_that_was_never_selected_is_not_named() -> None:
    log = ChangeLog(1 << 20)
    web = selection(None, "app=web")
    log.put("a/x", "a", b'{"app":"db"}', 1)
    position = Position.end(log.sequence)
    log.put("a/x", "a", b'{"app":"db"}', 2)
    log.put("a/secret", "a", b"{}", 1)
    log.delete("a/secret")
    log.delete("a/x")
    assert names(log, position, web) == []


def test_object_that_came_and_went_unread_is_not_named() -> None:
    log = ChangeLog(1 << 20)
    position = Position.end(log.sequence)
    log.put("a/x", "a", b"{}", 1)
    log.delete("a/x")
    assert names(log, position) == []


def test_new_reader_is_sent_no_deletions() -> None:
    log = ChangeLog(1 << 20)
    log.put("a/x", "a", b"{}", 1)
    log.put("a/y", "a", b"{}", 1)
    log.delete("a/x")
    assert names(log, Position.begin(log.sequence)) == ["+a/y"]


def test_too_many_deletions_are_a_reset_for_old_positions_only() -> None:
    log = ChangeLog(2000)
    for number in range(100):
        log.put(f"a/{number}", "a", b"{}", 1)
    old = Position.end(log.sequence)
    for number in range(100):
        log.delete(f"a/{number}")
    assert not log.has(old)
    assert log.has(Position.end(log.sequence - 2))
    assert log.has(Position.begin(log.sequence))
    assert log.kept <= 2000
    assert len(log.keys()) < 6


def test_reader_of_a_long_log_visits_it_in_parts() -> None:
    log = ChangeLog(1 << 20)
    for number in range(10_000):
        log.put(f"a/{number}", "a", b"{}", 1)
    web = selection(None, "app=web")
    position = Position.begin(log.sequence)
    parts = 0
    complete = False
    while not complete:
        changes, position, complete = log.read(position, web, 100)
        assert changes == []
        parts += 1
    assert parts == 5


def test_new_reader_gets_an_object_that_is_relabelled_while_it_begins() -> None:
    log = ChangeLog(1 << 20)
    log.put("a/x", "a", b"{}", 1)
    log.put("a/y", "a", b"{}", 1)
    log.put("a/z", "a", b"{}", 1)
    log.put("a/x", "a", b'{"app":"web"}', 1)
    changes, position, _ = log.read(Position.begin(log.sequence), EVERYTHING, 1)
    assert [each.key for each in changes] == ["a/y"]
    log.put("a/x", "a", b'{"app":"db"}', 1)
    assert names(log, position) == ["+a/z", "+a/x"]


def test_object_that_left_is_deleted_after_a_part_that_ends_behind_its_leaving() -> None:
    log = ChangeLog(1 << 20)
    web = selection(None, "app=web")
    for name in ("x", "y"):
        log.put(f"a/{name}", "a", b'{"app":"web"}', 1)
    position = Position.end(log.sequence)
    log.put("a/x", "a", b'{"app":"db"}', 1)
    log.put("a/y", "a", b'{"app":"web"}', 2)
    log.put("a/z", "a", b'{"app":"web"}', 1)
    log.put("a/x", "a", b'{"app":"db"}', 2)
    changes, position, complete = log.read(position, web, 1)
    assert ([each.key for each in changes], complete) == (["a/y"], False)
    assert names(log, position, web) == ["+a/z", "-a/x"]


def test_lost_namespace_is_deleted_as_of_the_position() -> None:
    log = ChangeLog(1 << 20)
    log.put("a/x", "a", b"{}", 1)
    log.put("b/y", "b", b"{}", 1)
    position = Position.end(log.sequence)
    log.put("b/new", "b", b"{}", 1)
    log.delete("b/y")
    left = list(log.leaving(position, EVERYTHING, selection(frozenset({"a"}), "")))
    assert [each.key for each in left] == ["b/y"]
    assert names(log, position, selection(frozenset({"a"}), "")) == []


def test_deletion_of_a_deleted_object_is_no_change() -> None:
    log = ChangeLog(1 << 20)
    log.put("a/x", "a", b"{}", 1)
    start = Position.end(log.sequence)
    assert log.delete("a/x")
    kept = log.kept
    read = Position.end(log.sequence)
    assert not log.delete("a/x")
    assert not log.delete("a/never")
    assert (log.kept, names(log, start), names(log, read)) == (kept, ["-a/x"], [])


def test_object_that_comes_back_equal_is_a_change() -> None:
    log = ChangeLog(1 << 20)
    log.put("a/x", "a", b"{}", 1)
    start = Position.end(log.sequence)
    log.delete("a/x")
    read = Position.end(log.sequence)
    log.put("a/x", "a", b"{}", 1)
    assert names(log, read) == names(log, start) == ["+a/x"]


def test_forgotten_deletion_leaves_a_later_one_of_the_object() -> None:
    log = ChangeLog(1200)
    for _ in range(2):
        log.put("a/x", "a", b"{}", 1)
        log.delete("a/x")
    between = Position.end(log.sequence - 1)
    assert names(log, between) == ["-a/x"]
    log.put("a/y", "a", b"{}", 1)
    log.delete("a/y")
    assert log.has(between)
    assert names(log, between) == ["-a/x"]


def test_large_views_and_labels_count_in_bytes() -> None:
    log = ChangeLog(1 << 20)
    for number in range(4):
        log.put(f"a/{number}", "a", b"{}", b"x" * 40_000)
    changes, position, complete = log.read(Position.begin(log.sequence), EVERYTHING, 100)
    assert (len(changes), complete) == (2, False)
    assert len(log.read(position, EVERYTHING, 100).changes) == 2
    log.put("a/x", "a", b'{"app":"%b"}' % (b"x" * 60_000), 1)
    log.delete("a/x")
    assert log.kept > 60_000


@pytest.mark.parametrize("case", ["one object changes", "its labels change", "objects come and go"])
def test_memory_is_bounded(case: str) -> None:
    log = ChangeLog(4000)

    def change(number: int) -> None:
        if case == "objects come and go":
            log.put(f"a/{number}", "a", b"{}", 1)
            log.delete(f"a/{number}")
        else:
            labels = b'{"n":"%d"}' % number if case == "its labels change" else b"{}"
            log.put("a/x", "a", labels, number)

    for number in range(1000):
        change(number)
    tracemalloc.start()
    try:
        for number in range(1000, 6000):
            change(number)
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert grown < 30_000


@pytest.mark.parametrize(
    ("labels", "selected_by"),
    [
        (b"null", ["!app"]),
        (b"{}", ["!app"]),
        (b'{"app":null}', ["app=", "app"]),
        (b'{"app":""}', ["app=", "app"]),
        (b'{"app":"web"}', ["app=web", "app"]),
        (b"[1]", ["!app"]),
        (b"\xff", ["!app"]),
    ],
)
def test_labels_of_any_form_are_compared(labels: bytes, selected_by: list[str]) -> None:
    texts = ["app=", "app=web", "app", "!app"]
    found = [text for text in texts if selection(None, text).selects("a", labels)]
    assert found == [text for text in texts if text in selected_by]
    assert EVERYTHING.selects("a", labels)
    assert not selection(frozenset({"b"}), "").selects("a", labels)
