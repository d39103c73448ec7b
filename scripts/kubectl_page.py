"""Generate docs/kubectl.md: kubectl commands on the server for tests and on a real kube-apiserver.

tests/real/kubectl/scripts.txt contains the commands. Their output on a real kube-apiserver is recorded, and the suite
checks that it is the same on the server for tests, except for the differences that differences.toml declares. Without
options, the script writes the page. With `--check` it writes nothing, and exits with status 1 if the page is out of
date.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
SUITE = PROJECT / "tests" / "real" / "kubectl"
PAGE = PROJECT / "docs" / "kubectl.md"

HEAD = """---
search: { exclude: true }
---

# Evidence: kubectl

kubectl runs each command on `aioinformer.testing.ApiServer` and on a real kube-apiserver. Output, errors and exit
status must be the same, after ages, uids, versions, times, addresses and the names of namespaces have been removed.
`{ns}` stands for a namespace that only this script uses, and `tests/real/kubectl/files.txt` contains the files. A
command that starts with `&3` runs in parallel with the following ones until it has printed three lines.

`scripts/kubectl_page.py` generates this page.
"""


@dataclass(frozen=True)
class Line:
    """One command.

    Attributes:
        command: as in the script.
        status: the exit status on the real server, None if the script ended the command.
        reason: the reason of a declared difference, "" if there is none.
    """

    command: str
    status: int | None
    reason: str


def read_scripts(suite: Path = SUITE) -> dict[str, list[Line]]:
    """Return the commands by the headings of the scripts, with the statuses of the newest recorded kubectl.

    Raises:
        ValueError: a script and its recording have different commands, or a declared difference belongs to no command.
    """
    explained: dict[str, dict[str, str]] = tomllib.loads((suite / "differences.toml").read_text())
    newest = clients(suite)[-1]
    recorded: dict[str, list[dict[str, Any]]] = json.loads((suite / "recorded" / f"{newest}.json").read_text())
    scripts: dict[str, list[str]] = {}
    for line in (suite / "scripts.txt").read_text().splitlines():
        if line.startswith("# "):
            scripts[line.removeprefix("# ")] = []
        elif line:
            scripts[list(scripts)[-1]].append(line)
    found = {}
    for heading, commands in scripts.items():
        outputs = recorded.get(heading, [])
        if [each["command"] for each in outputs] != commands:
            raise ValueError(f"the recording of {heading} has other commands than the script; record it again")
        reasons = explained.pop(heading, {})
        found[heading] = [
            Line(each["command"], each.get("status"), reasons.pop(each["command"], "")) for each in outputs
        ]
        if reasons:
            raise ValueError(f"differences.toml: {heading} has no command {', '.join(reasons)}")
    if explained:
        raise ValueError(f"differences.toml: there is no script {', '.join(explained)}")
    return found


def clients(suite: Path = SUITE) -> list[str]:
    """Return the recorded versions of kubectl, oldest first."""
    found = [path.stem for path in (suite / "recorded").iterdir()]
    return sorted(found, key=lambda version: [int(part) for part in version.removeprefix("v").split(".")])


def render(scripts: dict[str, list[Line]], recorded: list[str]) -> str:
    """Return the text of the page."""
    lines = [line for script in scripts.values() for line in script]
    parts = [
        HEAD,
        f"- commands: {len(lines)}",
        f"- recorded with kubectl {' and '.join(recorded)}; the table shows the statuses of the last one",
        f"- commands with a declared difference: {sum(bool(line.reason) for line in lines)}",
        "",
    ]
    for heading, script in scripts.items():
        parts += [f"## {heading}", "", "| Command | kube-apiserver | server for tests |", "|---|---|---|"]
        parts += [f"| {_code(line.command)} | {_status(line)} | {line.reason or _status(line)} |" for line in script]
        parts.append("")
    return "\n".join(parts)


def _status(line: Line) -> str:
    return "ended" if line.status is None else str(line.status)


def _code(command: str) -> str:
    fence = "``" if "`" in command else "`"
    return f"{fence}{command.replace('|', chr(92) + '|')}{fence}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with status 1 if the page is out of date"
    )
    arguments = parser.parse_args()
    page = render(read_scripts(), clients())
    if not arguments.check:
        PAGE.write_text(page)
        return 0
    return PAGE.read_text() != page


if __name__ == "__main__":
    sys.exit(main())
