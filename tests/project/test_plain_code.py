"""What makes code harder to read becomes less: the figures of each room only fall."""

from __future__ import annotations

import textwrap

import plain_code
import pytest
from plain_code import FIGURES, LISTING, classes_of, find_problems, measure, places, read, render, risen


def counted(figure: str, *sources: str) -> list[str]:
    """Return what a figure counts in the last source; the others have further classes."""
    texts = [textwrap.dedent(source) for source in sources]
    return measure(texts[-1], classes_of(texts))[figure]


def test_no_figure_has_risen_and_each_fall_is_recorded() -> None:
    assert "\n".join(find_problems(read(LISTING.read_text()), places())) == ""


def test_no_room_has_nested_conditional_expressions() -> None:
    assert [room for room, each in read(LISTING.read_text()).items() if each["nested_conditionals"]] == []


@pytest.mark.parametrize("statement", ["a, b = 1, 2", "self.a, b = b, []", "(a, b), c = pair, 1", "a, b = b, c"])
def test_tuples_of_independent_values(statement: str) -> None:
    assert len(counted("tuple_assignments", statement)) == 1


@pytest.mark.parametrize(
    "statement", ["a, b = b, a", "a, b = pair", "a, b = b, a.c", "x.a, b = c, x.a", "a, *b = 1, 2"]
)
def test_swaps_and_unpacking_are_plain(statement: str) -> None:
    assert counted("tuple_assignments", statement) == []


def test_assignments_of_one_value_to_several_targets() -> None:
    source = "a = b = 1\nself.size = size = len(a)\na, b = c = pair\na = 1\na: int = 1\na += 1"
    assert [place[0] for place in counted("chained_assignments", source)] == ["1", "2", "3"]


def test_conditional_expressions() -> None:
    source = "x = 1 if a else 2 if b else 3\ny = f(1 if a and b else 2)\nz = function_with_a_name if a else 'text'"
    assert counted("long_conditionals", source) == ["2: 1 if a and b else 2"]
    assert len(counted("long_conditionals", source.replace("name", "long_" * 8 + "name"))) == 2
    assert counted("nested_conditionals", source) == ["1: 1 if a else 2 if b else 3"]


def test_private_attributes_of_others() -> None:
    source = """
    class Queue:
        def __init__(self, other):
            self._items = other._items
            self._lock = other._condition
        def close(self):
            super()._close()
            self._lock._owner.notify()
            return values._replace(a=1)

    def peek(queue):
        return queue._items
    """
    assert counted("private_attributes", source) == ["5: other._condition", "8: self._lock._owner", "12: queue._items"]


def test_functions_that_only_forward() -> None:
    source = """
    def first(a, *, b):
        return second(a, b=b)

    def other_order(a, b):
        return second(b, a)

    def longer(a):
        return second(a, 1)

    class Part(Base):
        def _take(self, key):
            self._store.take(key)

        def take(self, key):
            "Take the value of a key."
            return self._store.take(key)

        def again(self, key):
            "Take the value of a key again."
            return self.take(key)

        def inherited(self, key):
            return self._store.take(key)

        @property
        def size(self):
            return self._store.size()
    """
    base = """
    class Base:
        def inherited(self, key): ...
    """
    assert counted("forwarding_functions", base, source) == ["2: first", "12: _take", "19: again"]


def test_errors_without_a_section() -> None:
    source = '''
    class NotFound(LookupError): ...

    def documented(a):
        """Return it.

        Raises:
            LookupError: there is none.
        """
        raise NotFound(a)

    def undocumented(a):
        """Return it, or raise `NotFound`."""
        raise NotFound(a)

    def caught(a):
        try:
            raise NotFound(a)
        except LookupError:
            raise NotImplementedError from None

    def again():
        try:
            undocumented(1)
        except NotFound:
            raise

    def _private(a):
        raise NotFound(a)

    class Index:
        """An index.

        Raises:
            ValueError: an argument is invalid.
        """
        def __init__(self, size):
            if size < 0:
                raise ValueError(size)
            raise TypeError(size)
    '''
    assert counted("raises_missing", source) == ["12: undocumented: NotFound", "37: __init__: TypeError"]


def figures_of(**known: int) -> dict[str, int]:
    return {**dict.fromkeys(FIGURES, 0), **known}


def test_listing_is_read_as_it_was_written() -> None:
    known = {"(files)": figures_of(), "queue": figures_of(private_attributes=2, long_conditionals=14)}
    assert read(render(known)) == known


def test_rise_and_fall_are_problems_and_only_a_fall_is_recorded() -> None:
    found = {"queue": {**{figure: [] for figure in FIGURES}, "private_attributes": ["queue/fifo.py:8: queue._line"]}}
    (rise,) = find_problems({"queue": figures_of()}, found)
    assert rise.startswith("queue: private_attributes has risen from 0 to 1")
    assert "queue/fifo.py:8: queue._line" in rise
    assert risen({"queue": figures_of()}, found) == [rise]
    (fall,) = find_problems({"queue": figures_of(private_attributes=2)}, found)
    assert fall.startswith("queue: private_attributes has fallen from 2 to 1")
    assert risen({"queue": figures_of(private_attributes=2)}, found) == []
    assert "gone is no room" in find_problems({"queue": figures_of(private_attributes=1), "gone": {}}, found)[0]


def test_all_rooms_are_counted() -> None:
    rooms = {path.name for path in plain_code.PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert read(LISTING.read_text()).keys() == {*rooms, plain_code.FILES}
