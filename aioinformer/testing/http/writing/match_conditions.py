"""The CEL conditions under which a webhook is called (`matchConditions`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.cel.checking import CheckFault
from aioinformer.testing.cel.expressions import compile_pattern
from aioinformer.testing.cel.programs import Program, compile_expression
from aioinformer.testing.cel.schemas import schema_type
from aioinformer.testing.cel.types import BOOL, DYN
from aioinformer.testing.cel.values import EvaluationError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.testing.api.served import Served


def _fields(*names: str, **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**{name: {"type": "string"} for name in names}, **others}}


_TEXTS = {"type": "array", "items": {"type": "string"}}
_KIND, _RESOURCE = _fields("group", "version", "kind"), _fields("group", "version", "resource")
_USER = _fields("username", "uid", groups=_TEXTS, extra={"type": "object", "additionalProperties": _TEXTS})
_REQUEST = _fields(
    *("subResource", "requestSubResource", "name", "namespace", "operation"),
    **{"kind": _KIND, "requestKind": _KIND, "resource": _RESOURCE, "requestResource": _RESOURCE, "userInfo": _USER},
    dryRun={"type": "boolean"},
    options={"x-kubernetes-int-or-string": True},  # of any type
)
_REQUEST_TYPE = schema_type(_REQUEST)
assert _REQUEST_TYPE is not None
_VARIABLES = {"object": DYN, "oldObject": DYN, "request": _REQUEST_TYPE}
_AUTHORIZER = re.compile(r"\bauthorizer\b")
_PATTERN_CALL = re.compile(r"\b(?:matches|find|findAll)\s*\(")


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Program | None:
    """Return the program of a condition; None for one that this server does not support.

    Raises:
        CheckFault: kube-apiserver refuses it, too.
    """
    try:
        program = compile_expression(expression, _VARIABLES)
    except CheckFault:
        if _AUTHORIZER.search(expression):
            return None
        raise
    if program.type != BOOL:
        raise CheckFault("must evaluate to bool")
    return program


def condition_causes(configuration: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield what is wrong with the conditions of a configuration of webhooks."""
    for at, webhook in enumerate(configuration.get("webhooks") or ()):
        for number, condition in enumerate(webhook.get("matchConditions") or ()):
            try:
                _compiled(str(condition.get("expression") or ""))
            except CheckFault as fault:
                field = f"webhooks[{at}].matchConditions[{number}].expression"
                shown = quote(condition.get("expression") or "")
                yield Cause.invalid(field, shown, f"compilation failed: {fault}")


def unchecked_pattern(expression: str) -> str:
    """Return why patterns in a condition that compiles are not checked here, "" if they are, or if it has none."""
    if not _PATTERN_CALL.search(expression):
        return ""
    try:
        compile_pattern("")
    except Unsupported as missing:
        return str(missing).partition(" needs ")[2]
    return ""


def meets_conditions(webhook: Mapping[str, Any], served: Served, request: Mapping[str, Any]) -> bool:
    """Return whether a request meets all conditions of a webhook. One that is false wins over one that fails.

    Args:
        request: of the AdmissionReview.

    Raises:
        StatusError: 403, a condition cannot be evaluated, and the failure policy is `Fail`; 501, this server does not
            support it.
    """
    values = {"object": request["object"], "oldObject": request["oldObject"]}
    values["request"] = {name: value for name, value in request.items() if name not in (*values, "uid")}
    failures = []
    for condition in webhook.get("matchConditions") or ():
        expression = str(condition["expression"])
        try:
            program = _compiled(expression)
            if program is None:
                raise Unsupported("authorizer")
            if not program.evaluate(values):
                return False
        except (EvaluationError, CheckFault) as error:
            failures.append(f"expression '{expression}' resulted in error: {error}")
        except Unsupported as error:
            why = f"this server cannot evaluate the condition `{expression}` of webhook {webhook['name']}: {error}"
            raise StatusError(501, "NotImplemented", why) from None
    if failures and webhook.get("failurePolicy", "Fail") == "Fail":
        why = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
        raise statuses.forbidden(served.resource, str(request.get("name") or ""), why)
    return not failures
