"""Evaluation of a schema's rules for a custom resource that is about to be stored."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.rules.rules import RuleError, Rules, read_rules, rule_causes
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.api.warnings import warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.testing.api.served import Served

# Rules are not evaluated for objects with these faults.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def rule_faults(
    served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None, causes: Sequence[Cause]
) -> list[Cause]:
    """Return the violated rules of a custom resource. Warn of rules that unchanged values violate.

    Args:
        served: the resource.
        obj: the object to store.
        old: the object that it replaces.
        causes: the faults of its values.

    Raises:
        StatusError: 501, a rule cannot be evaluated by this server.
    """
    rules = _rules(served)
    if rules is None:
        return []
    if any(cause.reason in _BLOCKING for cause in causes):
        return [Cause("FieldValueInvalid", "<nil>", f"Invalid value: null: {_RULES_NOT_CHECKED}")]
    try:
        faults, tolerated = rule_causes(rules, obj, old)
    except RuleError as error:
        # Fail the request: an unchecked object must not pass as valid.
        why = f"this server cannot evaluate a rule of {served.resource.group_resource}: {error}"
        raise StatusError(501, "NotImplemented", why) from None
    for cause in tolerated:
        warn(f"{cause.field}: {cause.message}")
    return faults


@lru_cache(maxsize=64)
def _rules(served: Served) -> Rules | None:
    try:
        return None if served.schema is None else read_rules(served.schema)
    except CheckFault as fault:
        # Only definitions that were loaded from files can have such rules.
        why = f"a rule of {served.resource.group_resource} does not compile: {fault}"
        raise StatusError(501, "NotImplemented", why) from None
