"""Measures how an informer bears every fault, and writes docs/fault-matrix.md from what was seen.

Without arguments it measures, for about two minutes, and writes docs/fault-matrix.json and the page; with `--render`
it writes the page from the figures that are there; with `--check` it writes nothing, and the exit status is 1 if the
page is not what the figures say, or they are not about the rows that there are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.faults.matrix import LASTS, ROWS, matrix  # noqa: E402

PAGE = PROJECT / "docs" / "fault-matrix.md"
FIGURES = PROJECT / "docs" / "fault-matrix.json"

_HEAD = f"""\
# Fault matrix

Each row is one fault of the [API server for tests](testing.md) against one informer with its usual options. Objects
change twenty times a second all the while. The fault begins when the informer has synced and lasts {LASTS:g} s, unless
the row says otherwise. Then the informer is left alone until everything was told.

- *Requests*: lists and watches while the fault lasted, and the most in any one second. Server and client share a
  machine, so nothing slows a client down but itself.
- *Shown*: the phases of [`informer.state`](faults.md) that were not all well.
- *Caught up*: seconds from the end of the fault until the last change was told. Most of it is the backoff that was
  under way.
- *Wrong*: objects that the cache or a handler knows otherwise than the server in the end.
- *Untrue*: notifications that cannot be true: doubled, reordered, of what was not.

The page is written by `scripts/fault_matrix.py` from what it measured. The tests measure anew, for a shorter time, and
fail when the page says something else of what is shown, wrong or untrue.
"""
_BEHIND = """\
What is wrong in the last row is what [no client can see](faults.md): the restored server has given out its lost
versions a second time before the watch was open again. Each of these objects is right again with its next change, or
the next list.
"""
_OTHERS = """\
## Others

The same faults, or nearly, were played once to the Python libraries that watch, each with its defaults, for 4 s, by a
server on the same machine: kubernetes_asyncio 36.1.0, kubernetes 37.0.2, kr8s 0.20.15, lightkube 1.0.1 and kopf 1.45.2,
with CPython 3.11. A number is how many watches the server saw in that time. This table is a record, not something that
the script repeats.

| fault | aioinformer | kubernetes_asyncio | kubernetes `aio` | kubernetes `Watch` | kubernetes `SharedInformer` | kr8s | lightkube, retrying | kopf |
|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501
#: What the others do, by the words of the row.
_PEERS: dict[str, list[str]] = {
    ROWS[0].says: ["1,114", "1,428", "2,441", "2,297", "ends", "4,042", "1,630"],
    ROWS[1].says: ["4,467", "3,477", "9,314", "10,037", "ends", "6,326", "11,518"],
    ROWS[3].says: ["raises", "raises", "raises", "lists again", "2,073, same version", "goes on", "lists again"],
    ROWS[4].says: [
        "raises",
        "raises",
        "raises",
        "932 lists",
        "not played",
        "3,641, same version",
        "the operator exits",
    ],
    ROWS[5].says: ["raises", "raises", "raises", "goes on", "`BoxKeyError`", "goes on", "the operator exits"],
    ROWS[6].says: [
        "4,055, told as events",
        "3,465, told as events",
        "raises",
        "4,622",
        "not played",
        "3,809",
        "backs off",
    ],
    ROWS[7].says: ["raises", "raises", "4 tries, then raises", "waits 1 s", "not played", "3,459", "backs off"],
    ROWS[8].says: ["raises", "raises", "waits 2 s", "waits 2 s", "not played", "3,427", "waits 2 s"],
    ROWS[9].says: ["raises", "raises", "raises", "goes on", "raises", "goes on", "goes on"],
    ROWS[11].says: ["`LineTooLong`", "`LineTooLong`", "taken", "taken", "taken", "taken", "taken"],
    ROWS[14].says: [
        "not noticed",
        "not played",
        "not played",
        "not played",
        "not played",
        "not played",
        "noticed after 70 s",
    ],
}


def render(figures: dict[str, Any]) -> str:
    """The page."""
    lines = [_HEAD, f"Measured on {figures['machine']}.", ""]
    lines.append("| fault | lists | watches | most in 1 s | shown | caught up, s | wrong | untrue |")
    lines.append("|---|--:|--:|--:|---|--:|--:|--:|")
    for cell in figures["rows"]:
        lasts = "" if cell["seconds"] == LASTS else f" ({cell['seconds']:g} s)"
        shown = ", ".join(f"`{phase}`" for phase in cell["shown"])
        lines.append(
            f"| {cell['says']}{lasts} | {cell['lists']} | {cell['watches']} | {cell['busiest']} | {shown} "
            f"| {cell['caught_up']:.1f} | {cell['lost']} | {cell['untrue']} |"
        )
    lines += ["", _BEHIND, _OTHERS.rstrip("\n")]
    for cell in figures["rows"]:
        if cell["says"] in _PEERS:
            lines.append("| " + " | ".join([cell["says"], _brief(cell), *_PEERS[cell["says"]]]) + " |")
    return "\n".join(lines) + "\n"


def _brief(cell: dict[str, Any]) -> str:
    if cell["seconds"] != LASTS:
        return f"{cell['watches']} in {cell['seconds']:g} s"
    return f"{cell['watches']}" + (f", lists: {cell['lists']}" if cell["lists"] else "")


def problems(figures: dict[str, Any], page: str) -> list[str]:
    """What is out of date."""
    found = []
    if [cell["says"] for cell in figures["rows"]] != [row.says for row in ROWS]:
        found.append("the figures are not about the rows of tests/faults/matrix.py")
    if page != render(figures):
        found.append("docs/fault-matrix.md is not what docs/fault-matrix.json says")
    return found


def main() -> int:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description="Measure how an informer bears every fault")
    parser.add_argument("--render", action="store_true", help="write the page from the figures that there are")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
    arguments = parser.parse_args()
    if arguments.check:
        found = problems(json.loads(FIGURES.read_text()), PAGE.read_text())
        print("\n".join([*found, "run scripts/fault_matrix.py"]) if found else "docs/fault-matrix.md is up to date")
        return bool(found)
    if not arguments.render:
        machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
        figures = {"machine": machine, "rows": asyncio.run(matrix())}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    PAGE.write_text(render(json.loads(FIGURES.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
