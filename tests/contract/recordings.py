"""What a real kube-apiserver answered, kept beside the tests, and how other answers are held against it.

`recorded/<file>/<test>.json` has the protocol of each row. `differences.toml` names what ours answers differently on
purpose: for a test, or for all ("*"), patterns of places ("1/body/message"), each with the reason.
"""

from __future__ import annotations

import json
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DIFFERENCES = HERE / "differences.toml"

Exchanges = list[dict[str, Any]]


def recording_of(row: str) -> Path:
    """Where the protocol of a row is kept; rows are named "test_lists/test_pages"."""
    return HERE / "recorded" / f"{row}.json"


def keep(row: str, exchanges: Exchanges) -> None:
    """Writes what the real server said."""
    path = recording_of(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(exchanges, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def recorded(row: str) -> Exchanges:
    """What the real server said.

    Raises:
        AssertionError: nothing is recorded.
    """
    path = recording_of(row)
    assert path.exists(), f"{row} is not recorded: run it against a real API server with AIOINFORMER_RECORD=1"
    exchanges: Exchanges = json.loads(path.read_text())
    return exchanges


def differences() -> dict[str, dict[str, str]]:
    """What ours answers differently on purpose: reasons by place, by row."""
    return tomllib.loads(DIFFERENCES.read_text())


def compare(real: Any, other: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Each place where two protocols differ, with what is there."""
    match real, other:
        case dict(), dict():
            for name in sorted(real.keys() | other.keys()):
                yield from compare(real.get(name, _Missing()), other.get(name, _Missing()), _below(place, name))
        case list(), list():
            for index in range(max(len(real), len(other))):
                left, right = (each[index] if index < len(each) else _Missing() for each in (real, other))
                yield from compare(left, right, _below(place, str(index)))
        case _:
            if type(real) is not type(other) or real != other:
                yield place, f"recorded {_shown(real)}, got {_shown(other)}"


def unexplained(row: str, found: dict[str, str]) -> list[str]:
    """Differences without a reason, and reasons without a difference, each as a line."""
    everywhere, own = (differences().get(name, {}) for name in ("*", row))
    reasons = {**everywhere, **own}
    said = [f"{place}: {what}" for place, what in found.items() if not any(fnmatchcase(place, p) for p in reasons)]
    idle = [pattern for pattern in own if not any(fnmatchcase(place, pattern) for place in found)]
    return said + [f"{pattern}: differences.toml explains what is no difference" for pattern in idle]


class _Missing:
    """A place that one side does not have."""

    def __repr__(self) -> str:
        return "nothing"


def _shown(value: Any) -> str:
    shown = repr(value) if isinstance(value, _Missing) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 300 else shown[:300] + "…"


def _below(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name
