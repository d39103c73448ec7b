"""Scripts of kubectl commands: notation, execution, and comparable output.

`scripts.txt` has the scripts: each has a heading ("# Reading"), which is its name, then a shell-like command on each
line. Commands run in a folder with the files of `files.txt`, and in a namespace of their own, "{ns}". "{token}" is the
token that was printed last. Variables may precede a command. "&3 kubectl get … --watch" runs in the background until it
has printed three lines; the next command starts once it has printed the first.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.kubectl.running import PATIENCE, next_line
from tests.support.normal import Normal

if TYPE_CHECKING:
    from tests.real.kubectl.running import Kubectl

HERE = Path(__file__).parent

Outputs = list[dict[str, Any]]

_VERSION = re.compile(r'(resourceVersion"?: ?"|Resource Version: +)\d+')
_GAP = re.compile(r"(?<=\S) {2,}")
_AGE = re.compile(r"(?:(?<=  )|^)(?:\d+[smhdy])+(?=  |$)")
_LOG_LINE = re.compile(r"^([EWI])\d{4} [\d:.]+ +\d+ ")
# kubectl prints this if one of its own watches ends early, which depends on timing.
_OWN_WATCHES = ("<I> reflector.go:", "<W> reflector.go:")
_DATE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000")
_AGO = re.compile(r"(?<=[ (])(?:\d+[smhd])+(?= \(x\d+ over| ago|\))|(?<= over )(?:\d+[smhd])+")
_DIFF_LINE = re.compile(r"^(---|\+\+\+|diff .*?) ?\S*/(LIVE|MERGED)-\d+/(\S+)(?: \S*/(MERGED)-\d+/\S+)?(?:\t.*)?$")
_TOKEN = re.compile(r"\beyJ[\w.-]+")
_EDITED = re.compile(r"\S*kubectl-edit-\d+\.yaml")


@dataclass(frozen=True)
class Command:
    """One line of a script.

    Attributes:
        line: the line of the script.
        words: arguments of kubectl.
        variables: to add to its environment.
        lines: number of lines after which it is killed; 0 if it ends by itself.
    """

    line: str
    words: tuple[str, ...]
    variables: dict[str, str]
    lines: int = 0


def read_scripts() -> dict[str, list[Command]]:
    """Return the commands of each script by its heading.

    Raises:
        ValueError: a line is neither a heading nor a kubectl command.
    """
    _, *scripts = re.split(r"^# (.*)\n", (HERE / "scripts.txt").read_text(), flags=re.MULTILINE)
    texts = zip(scripts[::2], scripts[1::2], strict=True)
    return {heading: [_parsed(line) for line in text.splitlines() if line] for heading, text in texts}


def write_files(folder: Path) -> None:
    """Write the files of the scripts; a line "==> name <==" precedes each."""
    _, *files = re.split(r"^==> (\S+) <==\n", (HERE / "files.txt").read_text(), flags=re.MULTILINE)
    for name, text in zip(files[::2], files[1::2], strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _parsed(line: str) -> Command:
    lines, command = 0, line
    if beside := re.match(r"&(\d+) ", line):
        lines, command = int(beside[1]), line[beside.end() :]
    words = shlex.split(command)
    variables = {}
    while words and re.match(r"[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if not words or words.pop(0) != "kubectl":
        raise ValueError(f"{line!r} is no kubectl command")
    return Command(line, tuple(words), variables, lines)


async def play(script: list[Command], kubectl: Kubectl, namespace: str, server: str) -> Outputs:
    """Run all commands, and return their output, with placeholders for values that differ between servers."""
    outputs: Outputs = []
    shown = _Shown(namespace, server)
    token = ""
    async with AsyncExitStack() as stack:
        beside = []
        for command in script:
            words = [word.replace("{ns}", namespace).replace("{token}", token) for word in command.words]
            run = kubectl.running(*words, variables=command.variables)
            output: dict[str, Any] = {"command": command.line}
            outputs.append(output)
            if command.lines:
                process = await stack.enter_async_context(run)
                beside.append((output, command.lines, process, [await next_line(process)]))
                continue
            async with run as process, asyncio.timeout(PATIENCE):
                out, err = await process.communicate()
            if printed := _TOKEN.search(out.decode()):
                token = printed[0]
            output |= {
                "status": process.returncode,
                "stdout": shown.lines(out.decode()),
                "stderr": shown.lines(err.decode()),
            }
        for output, wanted, process, lines in beside:
            while len(lines) < wanted:
                lines.append(await next_line(process))
            output["stdout"] = shown.lines("\n".join(lines))
    return outputs


class _Shown:
    """Replaces values that differ between servers in the output of one script."""

    def __init__(self, namespace: str, server: str) -> None:
        bare = server.partition("://")[2]
        self._normal = Normal({server: "<server>", bare: "<server>", namespace: "<namespace>"})

    def lines(self, text: str) -> list[str]:
        shown = (self._line(line) for line in text.splitlines())
        return [line for line in shown if not line.startswith(_OWN_WATCHES)]

    def _line(self, line: str) -> str:
        line = _LOG_LINE.sub(r"<\1> ", line)
        line = _DIFF_LINE.sub(r"\1 \2 \3", line)
        line = _EDITED.sub("<edited file>", line)
        # The width of a column depends on its values.
        line = _GAP.sub("  ", line).rstrip()
        line = _VERSION.sub(r"\1<version>", line)
        line = _DATE.sub("<date>", line)
        line = _AGO.sub("<age>", f" {line}")[1:]
        return _AGE.sub("<age>", self._normal.text(line))
