"""The recorded responses of a real kube-apiserver, and how other responses are compared with them.

`recorded/<module>.jsonl` has a line for each row of a test module: its name and its exchanges, sorted by name.
`differences.toml` declares where the server for tests differs on purpose: for a row, or for all rows ("*"), patterns of
places ("1/body/message"), each with the reason.
"""

from __future__ import annotations

import fcntl
import json
import tomllib
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DIFFERENCES = HERE / "differences.toml"
RECORDED = HERE / "recorded"

Exchanges = list[dict[str, Any]]


def keep(row: str, exchanges: Exchanges, folder: Path = RECORDED) -> None:
    """Write the exchanges of a row with the real server, and leave the other lines of its file as they are.

    Args:
        row: module and name: "test_lists/test_pages".
        exchanges: requests and responses.
        folder: of the recordings.
    """
    module, name = row.split("/", 1)
    with (folder / f"{module}.jsonl").open("a+") as file:
        # Several workers may record rows of one module.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        rows = {**_parse(file.read()), name: [essence(each) for each in exchanges]}
        file.truncate(0)
        file.writelines(_line(each, rows[each]) for each in sorted(rows))
    _read.cache_clear()


def recorded(row: str) -> Exchanges:
    """Return the recorded exchanges of a row.

    Raises:
        AssertionError: the row is not recorded.
    """
    module, name = row.split("/", 1)
    path = RECORDED / f"{module}.jsonl"
    rows = _read(path) if path.exists() else {}
    assert name in rows, f"{row} is not recorded: run it against a real API server with AIOINFORMER_RECORD=1"
    return rows[name]


def read(folder: Path = RECORDED) -> dict[str, Exchanges]:
    """Return the exchanges of all rows, by module and name: "test_lists/test_pages"."""
    files = sorted(folder.glob("*.jsonl"))
    return {f"{path.stem}/{name}": exchanges for path in files for name, exchanges in _read(path).items()}


# Tests run module by module, so that a few files are enough; all of them would take 100 MB.
@lru_cache(maxsize=4)
def _read(path: Path) -> dict[str, Exchanges]:
    return _parse(path.read_text())


def _parse(text: str) -> dict[str, Exchanges]:
    # Not `splitlines`: it splits at separators that recorded text may contain.
    rows = (json.loads(line) for line in text.split("\n") if line)
    return {row["row"]: row["exchanges"] for row in rows}


def _line(name: str, exchanges: Exchanges) -> str:
    row, rest = (json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (name, exchanges))
    return f'{{"row": {row}, "exchanges": {rest}}}\n'


def differences() -> dict[str, dict[str, str]]:
    """Return the declared differences of the server for tests: reasons by place, by row."""
    return tomllib.loads(DIFFERENCES.read_text())


def compare(real: Any, other: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield each place where two recordings differ, with both values."""
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
    """Return differences without a reason, and reasons without a difference, each as a line."""
    everywhere, own = (differences().get(name, {}) for name in ("*", row))
    reasons = {**everywhere, **own}
    missing = [f"{place}: {what}" for place, what in found.items() if not any(fnmatchcase(place, p) for p in reasons)]
    idle = [pattern for pattern in own if not any(fnmatchcase(place, pattern) for place in found)]
    return missing + [f"{pattern}: declared in differences.toml, but the responses are equal there" for pattern in idle]


def essence(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return what the server for tests promises of an exchange: not the texts of errors and warnings.

    Of an error it promises status, reason, and the fields that are wrong, each once.
    """
    shown = dict(exchange)
    headers = shown.get("headers") or {}
    if "Warning" in headers:
        shown["headers"] = headers | {"Warning": "<warnings>"}
    if "body" in shown:
        shown["body"] = without_texts(shown["body"])
    return shown


def without_texts(body: Any) -> Any:
    """Return a body whose failures have no texts: only reasons, and the fields that are wrong, each once."""
    if isinstance(body, list):
        return [without_texts(each) for each in body]
    if not isinstance(body, dict):
        return body
    if body.get("type") == "ERROR" and "object" in body:
        return body | {"object": without_texts(body["object"])}
    if body.get("kind") != "Status" or body.get("status") != "Failure":
        return body
    plain = {name: value for name, value in body.items() if name != "message"}
    if causes := (body.get("details") or {}).get("causes"):
        wrong = {(each.get("reason", ""), each.get("field", "")) for each in causes}
        told = [{"reason": reason, "field": field} for reason, field in sorted(wrong)]
        plain["details"] = body["details"] | {"causes": told}
    return plain


class _Missing:
    """Stands for a value that one side does not have."""

    def __repr__(self) -> str:
        return "nothing"


def _shown(value: Any) -> str:
    shown = repr(value) if isinstance(value, _Missing) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 300 else shown[:300] + "…"


def _below(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name
