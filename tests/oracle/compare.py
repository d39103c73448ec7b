"""Compares what aioinformer did with a script to what client-go did, by the rules of differences.toml.

A rule is of one of two kinds. One with `pattern` applies to every script: it turns lines of client-go's record into
what aioinformer must do instead, and stands for a difference that is the same wherever it shows. All others are cited by
scripts, which then say in `ours` exactly what aioinformer does instead; nothing else is accepted there.
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
    """

    name: str
    differs: str
    reason: str
    part: str = ""
    pattern: str = ""
    becomes: str = ""

    def rewrite(self, lines: Iterable[str]) -> list[str]:
        """Return the lines as they are compared."""
        return [line for each in lines if (line := re.sub(f"^(?:{self.pattern})$", self.becomes, each))]


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
    result.used.update(script.differs)
    for part in PARTS:
        if part in script.ours:
            if here[part] != script.ours[part]:
                result.undeclared.append(_describe(part, "the script expects", script.ours[part], here[part]))
            if _explained(part, there[part], here[part], rules) is not None:
                result.undeclared.append(f"{part}: the script declares a difference that is none")
            continue
        used = _explained(part, there[part], here[part], rules)
        if used is None:
            result.undeclared.append(_describe(part, "client-go", there[part], here[part]))
        else:
            result.used |= used
    if bool(script.differs) != bool(script.ours):
        result.undeclared.append("a script with `differs` must say in `ours` what differs, and the reverse")
    return result


def _explained(part: str, theirs: Any, ours: Any, rules: dict[str, Rule]) -> set[str] | None:
    """Return the general rules that turn the one into the other, None if they do not."""
    if theirs == ours:
        return set()
    general = [rule for rule in rules.values() if rule.part == part]
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
