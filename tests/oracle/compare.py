"""Compares what aioinformer did with a script to what client-go did, by the rules of differences.toml.

A rule with `pattern` turns lines of client-go's record into what aioinformer must do instead: in every script, or, if it
is `cited`, in those that name it in `differs`, there once. The other rules are reasons only: a script that names one says
in `ours` exactly what aioinformer does instead, and nothing else is accepted.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tests.oracle.script import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.ours import Record
    from tests.oracle.script import Script

PARTS = ("requests", "told", "store")


@dataclass(frozen=True, slots=True)
class Rule:
    """One declared difference.

    Attributes:
        name: as scripts cite it.
        differs: what client-go and aioinformer do.
        reason: why aioinformer does otherwise.
        part: of records, to which `pattern` applies.
        pattern: a regular expression for a whole line.
        becomes: what aioinformer does instead; a line that becomes empty is dropped.
        cited: whether the pattern is for scripts that name the rule, and for the first line that it fits.
    """

    name: str
    differs: str
    reason: str
    part: str = ""
    pattern: str = ""
    becomes: str = ""
    cited: bool = False

    def rewrite(self, lines: Iterable[str]) -> list[str]:
        """Return what aioinformer must do where client-go did `lines`."""
        result = []
        left = 1 if self.cited else -1
        for each in lines:
            match = re.fullmatch(self.pattern, each) if left else None
            left -= match is not None
            result.append(each if match is None else match.expand(self.becomes))
        return [line for line in result if line]


@dataclass(slots=True)
class Comparison:
    """What came of one script.

    Attributes:
        equal: whether the two are the same without any rule.
        used: the rules that make up for the differences.
        undeclared: a line for each difference that no rule explains.
    """

    equal: bool
    used: set[str] = field(default_factory=set)
    undeclared: list[str] = field(default_factory=list)


def load_rules() -> dict[str, Rule]:
    """Return the rules, by name."""
    said = tomllib.loads((FOLDER / "differences.toml").read_text())
    return {name: Rule(name, **rule) for name, rule in said.items()}


def compare(script: Script, theirs: Record, ours: Record, rules: dict[str, Rule]) -> Comparison:
    """Compare the records of client-go and aioinformer."""
    there, here = asdict(theirs), asdict(ours)
    result = Comparison(equal=there == here)
    result.undeclared += [f"rule {name!r} is not in differences.toml" for name in script.differs if name not in rules]
    result.used.update(name for name in script.differs if name in rules and not rules[name].pattern)
    for part in PARTS:
        if part in script.ours:
            if here[part] != script.ours[part]:
                result.undeclared.append(_describe(part, "the script expects", script.ours[part], here[part]))
            if _explained(part, there[part], here[part], script, rules) is not None:
                result.undeclared.append(f"{part}: the script declares a difference that is none")
            continue
        used = _explained(part, there[part], here[part], script, rules)
        if used is None:
            result.undeclared.append(_describe(part, "client-go", there[part], here[part]))
        else:
            result.used |= used
    result.undeclared += [f"rule {name!r} makes no difference" for name in script.differs if name not in result.used]
    if bool(script.ours) != any(name in rules and not rules[name].pattern for name in script.differs):
        result.undeclared.append("a script says `ours` if, and only if, it names a rule without pattern")
    return result


def _explained(part: str, theirs: Any, ours: Any, script: Script, rules: dict[str, Rule]) -> set[str] | None:
    """Return the general rules that turn the one into the other, None if they do not."""
    if theirs == ours:
        return set()
    general = [
        rule for rule in rules.values() if rule.part == part and (not rule.cited or rule.name in script.differs)
    ]
    if _rewritten(theirs, general) != ours:
        return None
    return {rule.name for rule in general if _rewritten(theirs, [each for each in general if each is not rule]) != ours}


def _rewritten(part: Any, rules: list[Rule]) -> Any:
    if isinstance(part, dict):
        lines = {key: _rewritten(value, rules) for key, value in part.items()}
        return {key: value for key, value in lines.items() if value}
    for rule in rules:
        part = rule.rewrite(part)
    return part


def _describe(part: str, who: str, expected: Any, found: Any) -> str:
    return f"{part}\n  {who}: {expected}\n  aioinformer: {found}"
