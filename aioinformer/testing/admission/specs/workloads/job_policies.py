"""Validation of the policies of jobs: which pod failures count, and when a job has succeeded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, non_negative, one_of
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_RULES = 20
_MOST_PATTERNS = 20
_MOST_EXIT_CODES = 255
_LONGEST_INDEXES = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATES = ("False", "True", "Unknown")
_NUMBER = re.compile(r"[+-]?[0-9]+")

#: The shapes of both policies as Go structs.
FAILURE_POLICY = {
    "Rules": [
        {
            "Action": "",
            "OnExitCodes": ({"ContainerName": None, "Operator": "", "Values": None},),
            "OnPodConditions": [{"Type": "", "Status": ""}],
        }
    ]
}
SUCCESS_POLICY = {"Rules": [{"SucceededIndexes": None, "SucceededCount": None}]}


def failure_policy_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the pod failure policy of a job.

    Args:
        spec: of the job.
        path: of the policy.
    """
    rules = spec["podFailurePolicy"].get("rules") or ()
    yield from _too_many(rules, f"{path}.rules", _MOST_RULES)
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {each.get("name") for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        if rule.get("action") == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield Cause.invalid(f"{here}.action", '"FailIndex"', "requires the backoffLimitPerIndex to be set")
        else:
            yield from _required_one_of(rule.get("action"), f"{here}.action", _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            yield from _exit_codes(codes, f"{here}.onExitCodes", names)
        yield from _conditions(conditions, f"{here}.onPodConditions")
        if (codes is None) == (not conditions):
            amount, verdict = ("one of", "required") if codes is None else ("both", "not supported")
            why = f"specifying {amount} OnExitCodes and OnPodConditions is {verdict}"
            yield Cause("FieldValueInvalid", here, f"Invalid value: {why}")


def success_policy_causes(spec: Mapping[str, Any], path: str, *, indexed: bool) -> Iterator[Cause]:
    """Check the success policy of a job.

    Args:
        spec: of the job.
        path: of the policy.
        indexed: whether the completion mode is Indexed.
    """
    policy, completions = spec["successPolicy"], spec.get("completions") or 0
    if not indexed:
        yield Cause.invalid(path, quote(go_struct(policy, SUCCESS_POLICY)), "requires indexed completion mode")
        return
    rules = policy.get("rules") or ()
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        yield Cause.required(f"{path}.rules", why)
    yield from _too_many(rules, f"{path}.rules", _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _success(rule, f"{path}.rules[{index}]", completions)


def _success(rule: Mapping[str, Any], path: str, completions: int) -> Iterator[Cause]:
    count, indexes, named = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        yield Cause.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            yield Cause.too_long(here, _LONGEST_INDEXES)
        try:
            named = _index_count(indexes, completions)
        except ValueError as error:
            yield Cause.invalid(here, quote(indexes), f"error parsing succeededIndexes: {error}")
    if count is not None:
        here = f"{path}.succeededCount"
        yield from non_negative(count, here)
        bounds = [(completions, "specified completions")]
        if indexes is not None:
            bounds.append((named, "indexes in the specified succeededIndexes field"))
        for highest, of in bounds:
            if count > highest:
                yield Cause.invalid(here, str(count), f"must be less than or equal to {highest} (the number of {of})")


def _index_count(text: str, completions: int) -> int:
    """Return how many indexes an expression such as "0,2-4" has.

    Raises:
        ValueError: the indexes are malformed, too large or not increasing.
    """
    count, last = 0, None
    for interval in text.split(",") if text else ():
        first, end = _interval(interval, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        count, last = count + end - first + 1, end
    return count


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        rule = "the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {quote(text)} violates {rule}")
    indexes = []
    for limit in limits:
        if not _NUMBER.fullmatch(limit):
            raise ValueError(f"cannot convert string to integer for index: {quote(limit)}")
        if int(limit) >= completions:
            raise ValueError(f"too large index: {quote(limit)}")
        indexes.append(int(limit))
    if len(indexes) == 2 and indexes[0] >= indexes[1]:
        raise ValueError(f"non-increasing order, previous: {indexes[0]}, current: {indexes[1]}")
    return indexes[0], indexes[-1]


def _exit_codes(codes: Mapping[str, Any], path: str, containers: set[Any]) -> Iterator[Cause]:
    operator, values, container = codes.get("operator"), codes.get("values") or [], codes.get("containerName")
    yield from _required_one_of(operator, f"{path}.operator", _OPERATORS)
    if container is not None and container not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        yield Cause.invalid(f"{path}.containerName", quote(container), why)
    here = f"{path}.values"
    if not values:
        yield Cause.invalid(here, quote(codes.get("values")), "at least one value is required")
    yield from _too_many(values, here, _MOST_EXIT_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield Cause.invalid(f"{here}[{index}]", "0", "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(value, f"{here}[{index}]")
    if values != sorted(values):
        yield Cause.invalid(here, quote(values), "must be ordered")


def _conditions(patterns: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    yield from _too_many(patterns, path, _MOST_PATTERNS)
    for index, pattern in enumerate(patterns):
        yield from format_causes(pattern.get("type", ""), f"{path}[{index}].type", label_name_faults)
        yield from _required_one_of(pattern.get("status"), f"{path}[{index}].status", _STATES)


def _required_one_of(value: str | None, path: str, known: Sequence[str]) -> Iterator[Cause]:
    if value:
        yield from one_of(value, path, known)
    else:
        yield Cause.required(path, f"valid values: [{' '.join(map(quote, known))}]")


def _too_many(items: Sequence[Any], path: str, most: int) -> Iterator[Cause]:
    if len(items) > most:
        yield Cause.too_many(path, len(items), most)
