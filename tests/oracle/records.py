"""Records: what a client did with a script. Those of client-go are committed, a file of JSON lines for each group."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tests.oracle.script import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.oracle.script import Script

RECORDED = FOLDER / "recorded"


@dataclass(slots=True)
class Record:
    """What a client did with a script.

    Attributes:
        requests: what it asked, and how soon.
        delivered: the notifications of each key, in order.
        store: what its cache has in the end.
    """

    requests: list[str]
    delivered: dict[str, list[str]] = field(default_factory=dict)
    store: list[str] = field(default_factory=list)


def read() -> dict[str, Record]:
    """Return the records of client-go, by script."""
    records = {}
    for path in sorted(RECORDED.glob("*.jsonl")):
        for text in path.read_text().splitlines():
            said = json.loads(text)
            name = said.pop("script")
            records[name] = Record(**said)
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
