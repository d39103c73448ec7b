"""Measure an informer and controllers during each fault, and generate docs/fault-matrix.md from the figures.

Without options, the script measures for about three minutes, and writes docs/fault-matrix.json and the page. With
`--render` it writes the page from the existing figures. With `--check` it writes nothing, and exits with status 1 if
the page or the rows do not agree with the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.system.faults.controllers import CONTROLLER_ROWS, measure  # noqa: E402
from tests.system.faults.matrix import LASTS, ROWS, measure_all  # noqa: E402

PAGE = PROJECT / "docs" / "fault-matrix.md"
FIGURES = PROJECT / "docs" / "fault-matrix.json"

_HEAD = f"""\
---
search: {{ exclude: true }}
---

# Evidence: the fault matrix

Each row shows one fault of the [API server for tests](testing.md), and one informer with default options. Objects
change twenty times a second throughout. The fault begins after the informer has synced and lasts {LASTS:g} s, unless
the row states another time. Then the measurement waits until the informer has delivered all changes.

- *Lists*, *watches*: requests during the fault. *Max. in 1 s*: the most requests in any second. Server and client share
  a machine, so only the client itself limits its requests.
- *Phases*: the unhealthy phases of [`informer.state`](faults.md).
- *Caught up*: seconds from the end of the fault until the last change was delivered. Most of this time is the backoff
  delay in progress.
- *Wrong*: objects whose final state in the cache, or as delivered to the handler, differs from the server's.
- *Invalid*: notifications that are duplicate, out of order, or of a state that did not exist.

`scripts/fault_matrix.py` measures and generates this page. The tests measure again, for a shorter time, and fail if
phases, wrong objects or invalid notifications differ from the page.
"""
_RESTORED = """\
The wrong objects in the last row are those that [no client can detect](faults.md): the restored server reused the lost
resourceVersions before the watch was open again. The next change of such an object, or the next list, corrects it.
"""
_CONTROLLERS = f"""\
## Controllers

Two controllers run through these faults, in virtual time: that of
[`examples/widgets.py`](reconcilers.md#the-whole-controller), and one whose children have generated names.
Widgets are created, changed and deleted five times a second. In each row, all converges after the fault, no child is
created twice, no finalizer is lost, and no write is sent later than the renew deadline of 10 s after the last
successful renewal of the Lease. Tests measure each row again.

- *Writes*: that reached the server from the begin of the fault on, without Leases and Events.
- *Terms*: of leadership in all; more than one if the Lease could not be renewed.
- *Caught up*: seconds from the end of the fault until the last write.
- *Latest write*: the longest time in seconds from the last successful renewal to a write.

A fault lasts {LASTS:g} s, unless the row states another time.

| fault | writes | terms | caught up, s | latest write, s |
|---|--:|--:|--:|--:|
"""
_OTHERS = """\
## Other libraries

This table shows almost the same faults with other Python libraries that watch, each with its defaults, for 4 s, with a
server on the same machine: kubernetes_asyncio 36.1.0, kubernetes 37.0.2, kr8s 0.20.15, lightkube 1.0.1 and kopf 1.45.2,
on CPython 3.11. A number is the number of watches that the server received in that time. The script does not repeat
these measurements.

| fault | aioinformer | kubernetes_asyncio | kubernetes `aio` | kubernetes `Watch` | kubernetes `SharedInformer` | kr8s | lightkube, retrying | kopf |
|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501
#: The results of other libraries, by the title of the row.
_PEERS: dict[str, list[str]] = {
    ROWS[0].title: ["1,114", "1,428", "2,441", "2,297", "ends", "4,042", "1,630"],
    ROWS[1].title: ["4,467", "3,477", "9,314", "10,037", "ends", "6,326", "11,518"],
    ROWS[3].title: ["raises", "raises", "raises", "lists again", "2,073, same version", "continues", "lists again"],
    ROWS[4].title: [
        "raises",
        "raises",
        "raises",
        "932 lists",
        "not tested",
        "3,641, same version",
        "the operator exits",
    ],
    ROWS[5].title: ["raises", "raises", "raises", "continues", "`BoxKeyError`", "continues", "the operator exits"],
    ROWS[6].title: [
        "4,055, delivered as events",
        "3,465, delivered as events",
        "raises",
        "4,622",
        "not tested",
        "3,809",
        "backs off",
    ],
    ROWS[7].title: ["raises", "raises", "4 tries, then raises", "waits 1 s", "not tested", "3,459", "backs off"],
    ROWS[8].title: ["raises", "raises", "waits 2 s", "waits 2 s", "not tested", "3,427", "waits 2 s"],
    ROWS[9].title: ["raises", "raises", "raises", "continues", "raises", "continues", "continues"],
    ROWS[11].title: ["`LineTooLong`", "`LineTooLong`", "accepts", "accepts", "accepts", "accepts", "accepts"],
    ROWS[14].title: [
        "not detected",
        "not tested",
        "not tested",
        "not tested",
        "not tested",
        "not tested",
        "detected after 70 s",
    ],
}


def render(figures: dict[str, Any]) -> str:
    """Return the text of the page."""
    lines = [_HEAD, f"Measured on {figures['machine']}.", ""]
    lines.append("| fault | lists | watches | max. in 1 s | phases | caught up, s | wrong | invalid |")
    lines.append("|---|--:|--:|--:|---|--:|--:|--:|")
    for cell in figures["rows"]:
        shown = ", ".join(f"`{phase}`" for phase in cell["shown"])
        lines.append(
            f"| {cell['title']}{_lasts(cell)} | {cell['lists']} | {cell['watches']} | {cell['busiest']} | {shown} "
            f"| {cell['caught_up']:.1f} | {cell['lost']} | {cell['untrue']} |"
        )
    lines += ["", _RESTORED, _CONTROLLERS.rstrip("\n")]
    for cell in figures["controllers"]:
        lines.append(
            f"| {cell['title']}{_lasts(cell)} | {cell['writes']} | {cell['terms']} | {cell['caught_up']:.1f} "
            f"| {cell['latest']:.1f} |"
        )
    lines += ["", _OTHERS.rstrip("\n")]
    for cell in figures["rows"]:
        if cell["title"] in _PEERS:
            lines.append("| " + " | ".join([cell["title"], _brief(cell), *_PEERS[cell["title"]]]) + " |")
    return "\n".join(lines) + "\n"


def _lasts(cell: dict[str, Any]) -> str:
    return "" if cell["seconds"] == LASTS else f" ({cell['seconds']:g} s)"


def _brief(cell: dict[str, Any]) -> str:
    if cell["seconds"] != LASTS:
        return f"{cell['watches']} in {cell['seconds']:g} s"
    return f"{cell['watches']}" + (f", lists: {cell['lists']}" if cell["lists"] else "")


def find_problems(figures: dict[str, Any], page: str) -> list[str]:
    """Return one line for each part that is out of date."""
    found = []
    if [cell["title"] for cell in figures["rows"]] != [row.title for row in ROWS]:
        found.append("docs/fault-matrix.json does not have the rows of tests/system/faults/matrix.py")
    if [cell["title"] for cell in figures["controllers"]] != [row.title for row in CONTROLLER_ROWS]:
        found.append("docs/fault-matrix.json does not have the rows of tests/system/faults/controllers.py")
    if page != render(figures):
        found.append("docs/fault-matrix.md does not agree with docs/fault-matrix.json")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="write the page from the existing figures")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with status 1 if the page is out of date"
    )
    arguments = parser.parse_args()
    if arguments.check:
        found = find_problems(json.loads(FIGURES.read_text()), PAGE.read_text())
        print("\n".join([*found, "run scripts/fault_matrix.py"]) if found else "docs/fault-matrix.md is up to date")
        return bool(found)
    if not arguments.render:
        machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
        rows = asyncio.run(measure_all())
        controllers = [{**asdict(measure(row)), "seconds": row.lasts} for row in CONTROLLER_ROWS]
        figures = {"machine": machine, "rows": rows, "controllers": controllers}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    PAGE.write_text(render(json.loads(FIGURES.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
