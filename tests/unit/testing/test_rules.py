from __future__ import annotations

import sys
from typing import Any

import pytest

from aioinformer.cel.checking import CheckFault
from aioinformer.cel.expressions import compile_pattern
from aioinformer.cel.programs import compile_expression
from aioinformer.cel.types import DYN
from aioinformer.cel.values import EvaluationError, Unsupported
from aioinformer.testing.rules.rules import read_rules, rule_causes


def value(source: str, this: Any = None) -> Any:
    return compile_expression(source, {"self": DYN}).evaluate({"self": this})


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 +",
        "f(",
        "self.",
        "self..a",
        "'a",
        "#",
        "1 ? 2",
        "has(1)",
        "[1].all(1, true)",
        "9223372036854775808",
        r"'\q'",
        r"'\UFFFFFFFF'",
        "9" * 5000,
        "duration('9999999999999h') == duration('1s')",
        "(" * 500 + "1" + ")" * 500,
    ],
)
def test_syntax_error_has_its_position(source: str) -> None:
    with pytest.raises(CheckFault, match=r"^ERROR: <input>:\d+:\d+: "):
        compile_expression(source, {"self": DYN})


@pytest.mark.parametrize("pattern", [r"\\p{L}", r"\\Qa\\E", "(?U)a+", "^(?i)A$", "(?<n>a)", r"[[:alpha:]]\\z"])
def test_patterns_of_go_are_matched(pattern: str) -> None:
    assert value(f"self.matches('{pattern}')", "a")


def test_missing_library_of_patterns_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_pattern.cache_clear()
    with pytest.raises(Unsupported, match=r"google-re2.*aioinformer\[testing\]"):
        value("self.matches('a')", "a")


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?<!a)b", r"(a)\\1", "(", "[", "*", r"\\C"])
def test_patterns_that_go_rejects_are_errors(pattern: str) -> None:
    with pytest.raises(EvaluationError, match="error parsing regexp"):
        value(f"'ab'.matches(self + '{pattern}')", "")


def test_long_operator_chain_is_not_deep() -> None:
    assert value(" && ".join(["self == 1"] * 500), 1) is True
    assert value(" || ".join(["self == 2"] * 500), 1) is False


@pytest.mark.parametrize(
    "source",
    [
        "timestamp('9999-12-31T23:59:59Z') + duration('1h') == timestamp('2020-01-01T00:00:00Z')",
        "duration(self.size() > 1 ? '9999999999999h' : '') == duration('1s')",
        "quantity('1e999999999').isInteger()",
        "timestamp(9223372036854775807 - self.size()) == timestamp(0)",
        "int('1' + self) == 1",
        "self.optMap(x, x) == optional.none()",
        "[?self] == []",
        "['a'].transformMapEntry(i, v, self) == {}",
        "{dyn([1]): 2} == {}",
        "{1: 2}[dyn([1])] == 2",
    ],
)
def test_evaluation_failure_is_an_evaluation_error(source: str) -> None:
    with pytest.raises(EvaluationError):
        value(source, "1" * 5000)


def test_unsupported_part_is_reported_despite_short_circuit() -> None:
    with pytest.raises(Unsupported):
        value("'%e'.format([1.5]) == '' || true")


def test_deep_objects_are_compared_completely() -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "x-kubernetes-validations": [{"rule": "self.spec == oldSelf.spec"}],
    }
    rules = read_rules(schema)
    assert rules is not None
    old = {"spec": {"free": [1, {"a": None}]}}

    assert rule_causes(rules, {"spec": {"free": [1, {"a": None}]}}, old) == ([], [])
    assert len(rule_causes(rules, {"spec": {"free": [1, {"a": 1}]}}, old)[0]) == 1


def test_schema_without_rules_has_none() -> None:
    assert read_rules({"type": "object", "properties": {"spec": {"type": "object"}}}) is None
