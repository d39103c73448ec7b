"""Records: what a client did with a script. Those of client-go are committed, as one JSON-lines file a group."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tests.system.oracle.script import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.system.oracle.script import Script

RECORDED = FOLDER / "recorded"


@dataclass(slots=True)
class Record:
    """What a client did with a script.

    Attributes:
        requests: its requests, and how soon it sent them.
        delivered: the notifications of each key, in order.
        store: the contents of its cache at the end.
    """

    requests: list[str]
    delivered: dict[str, list[str]] = field(default_factory=dict)
    store: list[str] = field(default_factory=list)


def read() -> dict[str, Record]:
    """Return the records of client-go, by script."""
    records = {}
    for path in sorted(RECORDED.glob("*.jsonl")):
        for text in path.read_text().splitlines():
            entry = json.loads(text)
            name = entry.pop("script")
            records[name] = Record(**entry)
    return records


def write(scripts: Iterable[Script], records: Mapping[str, Record]) -> None:
    """Write the records of client-go."""
    RECORDED.mkdir(exist_ok=True)
    for path in RECORDED.glob("*.jsonl"):
        path.unlink()
    for script in scripts:
        if record := records.get(script.name):
            record.delivered = dict(sorted(record.delivered.items()))
            line = json.dumps({"script": script.name} | asdict(record), ensure_ascii=False)
            with (RECORDED / f"{script.group}.jsonl").open("a") as file:
                file.write(line + "\n")
