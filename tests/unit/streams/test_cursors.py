"""Cursors: bound to user, selection and view, and worthless when changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.streams.cursors import Place, binding_of, read_cursor, write_cursor
from aioinformer.streams.log import Position

BINDING = binding_of(b"secret", "alice", "*;app=web")
PLACES = [Place(b"abcdefgh", Position.end(5), 3), Place(b"12345678", Position(2**40, 7, 9))]


def test_cursor_returns_its_places() -> None:
    assert read_cursor(BINDING, write_cursor(BINDING, PLACES), 2) == PLACES


def test_cursor_of_another_user_selection_or_process_is_none() -> None:
    cursor = write_cursor(BINDING, PLACES)
    assert read_cursor(binding_of(b"secret", "bob", "*;app=web"), cursor, 2) is None
    assert read_cursor(binding_of(b"secret", "alice", "*;app=db"), cursor, 2) is None
    assert read_cursor(binding_of(b"other", "alice", "*;app=web"), cursor, 2) is None
    assert read_cursor(BINDING, cursor, 1) is None


def test_parts_of_a_binding_do_not_run_together() -> None:
    assert binding_of(b"secret", "ab", "c") != binding_of(b"secret", "a", "bc")


@given(st.integers(0), st.integers(0, 255))
def test_changed_cursor_is_none(place: int, value: int) -> None:
    cursor = write_cursor(BINDING, PLACES)
    place %= len(cursor)
    changed = f"{cursor[:place]}{chr(value)}{cursor[place + 1 :]}"
    found = read_cursor(BINDING, changed, 2)
    # The last character has bits that mean nothing.
    assert found is None or (found == PLACES and (changed == cursor or place == len(cursor) - 1))


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert read_cursor(BINDING, text, 1) is None
    assert read_cursor(BINDING, text * 200, 2) is None
