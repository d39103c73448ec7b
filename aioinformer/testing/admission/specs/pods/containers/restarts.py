"""Validation of restart policies, restart rules and resize policies of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import duplicate, one_of
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MOST_RULES, _MOST_CODES = 20, 255
_RESIZED = ("cpu", "memory")
_RESIZES = ("NotRequired", "RestartContainer")


def restart_causes(container: Part, path: str) -> Iterator[Cause]:
    """Check the restart policy and the restart rules of a container.

    Args:
        path: of the container.
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is not None:
        yield from one_of(policy, f"{path}.restartPolicy", _POLICIES)
    elif rules:
        yield Cause.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if len(rules) > _MOST_RULES:
        yield Cause.too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        here, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        yield from one_of(rule.get("action", ""), f"{here}.action", _ACTIONS)
        if codes is None:
            yield Cause.required(f"{here}.exitCodes", "must be specified")
            continue
        yield from one_of(codes.get("operator", ""), f"{here}.exitCodes.operator", _OPERATORS)
        if len(codes.get("values") or ()) > _MOST_CODES:
            yield Cause.too_many(f"{here}.exitCodes.values", len(codes["values"]), _MOST_CODES)


def resize_causes(policies: Sequence[Part], path: str, restarts: str) -> Iterator[Cause]:
    """Check the resize policies of a container.

    Args:
        path: of the policies.
        restarts: the restart policy of the pod.
    """
    seen: set[str] = set()
    for index, each in enumerate(policies):
        resource, policy = each.get("resourceName", ""), each.get("restartPolicy", "")
        if resource in seen:
            yield duplicate(resource, f"{path}[{index}]")
        seen.add(resource)
        for value, known in ((resource, _RESIZED), (policy, _RESIZES)):
            if not value:
                yield Cause.required(path)
            else:
                yield from one_of(value, path, known)
        if restarts == "Never" and policy != "NotRequired":
            yield Cause.invalid(path, quote(policy), "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
