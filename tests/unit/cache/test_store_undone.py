"""Changes of a store that run out of memory have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.indices import Index
from aioinformer.cache.store import ThreadSafeStore

if TYPE_CHECKING:
    from collections.abc import Callable

Item = dict[str, list[str]]


def store() -> ThreadSafeStore[Item]:
    cells: ThreadSafeStore[Item] = ThreadSafeStore({"tag": lambda item: item["tags"], "all": lambda item: ["all"]})
    cells.put("a", {"tags": ["x"]})
    cells.put("b", {"tags": ["x", "y"]})
    return cells


def seen(cells: ThreadSafeStore[Item]) -> Any:
    """Return all that readers can find, and the state of the indices."""
    indices = {
        name: {value: cells.indexed_keys(name, value) for value in cells.values(name)} for name in ("tag", "all")
    }
    remembered = {name: dict(index._values) for name, index in cells._indices.items()}
    return dict(cells.snapshot()), indices, remembered, cells.failing()


def put_new(cells: ThreadSafeStore[Item]) -> None:
    cells.put("c", {"tags": ["y", "z"]})


def put_again(cells: ThreadSafeStore[Item]) -> None:
    cells.put("b", {"tags": ["y", "z", "w"]})


def put_odd(cells: ThreadSafeStore[Item]) -> None:
    cells.put("b", {})


def bulk(cells: ThreadSafeStore[Item]) -> None:
    change = BulkChange(cells, fresh=False)
    change.delete("a")
    change.put("b", {"tags": ["z"]})
    change.put("c", {"tags": ["x", "z"]})
    change.commit()


def fresh(cells: ThreadSafeStore[Item]) -> None:
    change = BulkChange(cells, fresh=True)
    change.put("c", {"tags": ["x", "z"]})
    change.put("d", {"tags": []})
    change.commit()


@pytest.mark.parametrize("method", ["add", "_put_in", "evaluate", "take_in"])
@pytest.mark.parametrize("change", [put_new, put_again, put_odd, bulk, fresh])
def test_failed_change_changes_nothing(
    change: Callable[[ThreadSafeStore[Item]], None], method: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    changed = store()
    change(changed)
    original = getattr(Index, method)
    for nth in range(1, 20):
        cells, calls = store(), 0

        def failing(*arguments: Any, nth: int = nth, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == nth:
                raise MemoryError
            return original(*arguments, **named)

        before = seen(cells)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(Index, method, failing)
            try:
                change(cells)
            except MemoryError:
                assert seen(cells) == before
                continue
        assert seen(cells)[:3] == seen(changed)[:3]
        break


def test_failing_announcement_undoes_the_change() -> None:
    def refuse(news: str) -> None:
        assert news == "news"
        raise MemoryError

    cells = store()
    before = seen(cells)
    changes: list[Callable[[], Any]] = [
        lambda: cells.put("b", {"tags": ["z"]}, refuse, "news"),
        lambda: cells.put("c", {"tags": ["z"]}, refuse, "news"),
        lambda: cells.delete("a", refuse, "news"),
    ]
    for change in changes:
        with pytest.raises(MemoryError):
            change()
        assert seen(cells) == before
    assert cells.delete("z", refuse, "news") is None


def test_reader_within_a_change_does_not_deadlock() -> None:
    cells = store()
    found: list[int] = []
    cells.put("c", {"tags": []}, lambda news: found.append(len(cells.items())))
    assert found == [3]
