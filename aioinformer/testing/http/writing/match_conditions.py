"""Whether the server calls a webhook (`matchConditions`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.cel.checking import CheckFault
from aioinformer.cel.conditions import compiled_condition, condition_faults
from aioinformer.cel.values import EvaluationError, Unsupported
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause, StatusError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.testing.api.served import Served


def condition_causes(configuration: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield what is wrong with the conditions of a configuration of webhooks."""
    for fault in condition_faults(configuration):
        yield Cause.invalid(fault.field, quote(fault.expression), fault.reason)


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
            program = compiled_condition(expression)
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
