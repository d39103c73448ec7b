"""Records, which are what a client did with a script, and their comparison.

Those of client-go are committed. `expect` derives what aioinformer must do with a script from client-go's record and
the rules of differences.toml.

A rule with `pattern` rewrites lines of client-go's record into the lines that aioinformer's record must have. It
applies to all scripts, or, if it is `cited`, once in each script that names it in `differs`. The other rules only give
reasons: a script that names one declares in `ours` exactly what aioinformer does instead.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tests.system.oracle.script import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.system.oracle.script import Script


RECORDED = FOLDER / "recorded.jsonl"


@dataclass(slots=True)
class Record:
    """What a client did with a script: requests with their pace, notifications by key, and its cache at the end."""

    requests: list[str]
    delivered: dict[str, list[str]] = field(default_factory=dict)
    store: list[str] = field(default_factory=list)


def read() -> dict[str, Record]:
    """Return the records of client-go, by script."""
    entries = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return {entry.pop("script"): Record(**entry) for entry in entries}


def write(scripts: Iterable[Script], records: Mapping[str, Record]) -> None:
    """Write the records of client-go, in the order of the scripts."""
    lines = []
    for script in scripts:
        if record := records.get(script.name):
            record.delivered = dict(sorted(record.delivered.items()))
            lines.append(json.dumps({"script": script.name} | asdict(record), ensure_ascii=False) + "\n")
    RECORDED.write_text("".join(lines))


@dataclass(frozen=True, slots=True)
class Rule:
    """One declared difference.

    Attributes:
        name: scripts use it to cite the rule.
        differs: what client-go does.
        reason: what aioinformer does instead, and why.
        part: the part of records to which `pattern` applies.
        pattern: a regular expression that matches a whole line.
        becomes: the replacement of the line. A line that becomes empty is dropped.
        cited: whether the pattern applies only to scripts that name the rule, and there to the first matching line.
    """

    name: str
    differs: str
    reason: str
    part: str = ""
    pattern: str = ""
    becomes: str = ""
    cited: bool = False

    def applies(self, script: Script, part: str) -> bool:
        """Return whether the pattern applies to this part of the record of this script."""
        return self.part == part and self.name not in script.without and (not self.cited or self.name in script.differs)

    def rewrite(self, lines: list[str]) -> list[str]:
        """Return the lines that aioinformer's record must have, given those of client-go."""
        result = []
        left = 1 if self.cited else -1
        for each in lines:
            match = re.fullmatch(self.pattern, each) if left else None
            left -= match is not None
            result.append(each if match is None else match.expand(self.becomes))
        return [line for line in result if line]


@dataclass(slots=True)
class Expectation:
    """What aioinformer must do, the rules that make a difference, and a line for each declaration without effect."""

    record: Record
    used: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def load_rules() -> dict[str, Rule]:
    """Return the rules by name."""
    entries = tomllib.loads((FOLDER / "differences.toml").read_text())
    return {name: Rule(name, **rule) for name, rule in entries.items()}


def expect(script: Script, theirs: Record, rules: dict[str, Rule]) -> Expectation:
    """Return what aioinformer must do, given what client-go did."""
    reasons = {name for name in script.differs if name in rules and not rules[name].pattern}
    used: set[str] = set(reasons)
    named = (*script.differs, *script.without)
    problems = [f"{name} is not a rule of differences.toml" for name in named if name not in rules]
    parts: dict[str, Any] = asdict(theirs)
    for part, lines in list(parts.items()):
        fitting = [rule for rule in rules.values() if rule.applies(script, part)]
        parts[part] = expected = _rewritten(lines, fitting)
        if part not in script.ours:
            for rule in fitting:
                if _rewritten(lines, [each for each in fitting if each is not rule]) != expected:
                    used.add(rule.name)
        elif script.ours[part] == expected:
            problems.append(f"`ours.{part}` is the same as client-go's record")
        else:
            parts[part] = script.ours[part]
    problems += [f"{name} makes no difference" for name in script.differs if name not in used]
    if bool(script.ours) != bool(reasons):
        problems.append("`ours` needs a rule without pattern in `differs`, and such a rule needs `ours`")
    return Expectation(Record(**parts), used, problems)


def describe(expected: Record, found: Record) -> list[str]:
    """Return the differences as text."""
    left, right = asdict(expected), asdict(found)
    return [f"{part}:\n  expected {left[part]}\n  found    {right[part]}" for part in left if left[part] != right[part]]


def _rewritten(part: Any, rules: Sequence[Rule]) -> Any:
    if isinstance(part, dict):
        lines = {key: _rewritten(value, rules) for key, value in part.items()}
        return {key: value for key, value in lines.items() if value}
    for rule in rules:
        part = rule.rewrite(part)
    return part
