"""Conditions: what controllers state about an object in `status.conditions`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, get_args

import msgspec

from aioinformer.cache.objects.changes import evolve
from aioinformer.client.changes.patches import check_whole, document_of
from aioinformer.errors import UsageError

T = TypeVar("T")

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]
_STATUSES: Final = get_args(ConditionStatus)


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition of an object.

    Attributes:
        type: such as "Ready".
        status: "True", "False" or "Unknown".
        reason: for machines, such as "MinimumReplicasAvailable".
        message: for people.
        last_transition_time: when the status changed last; None if the controller does not state it.
        observed_generation: the `metadata.generation` that the controller has seen; None if it does not state it.
    """

    type: str
    if TYPE_CHECKING:
        status: ConditionStatus
    else:
        status: str  # another client may have stored any other
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


def get_condition(obj: Any, type: str) -> Condition | None:
    """Return the condition of a type; None if the object has none.

    Raises:
        UsageError: it is no condition.
    """
    for each in _conditions(obj):
        if each.get("type") == type:
            try:
                return msgspec.convert(each, Condition)
            except msgspec.ValidationError as error:
                raise UsageError(f"status.conditions: {type!r} is no condition: {error}") from None
    return None


def is_condition_true(obj: Any, type: str) -> bool:
    """Return whether the object has a condition of this type with the status "True"."""
    return any(each.get("type") == type and each.get("status") == "True" for each in _conditions(obj))


def set_condition(
    obj: T,
    type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str = "",
    *,
    observed_generation: int | None = None,
    now: datetime | None = None,
) -> T:
    """Return the object with a condition; the object itself if it has exactly this condition already.

    `lastTransitionTime` changes only if the status does. Other conditions, and other members of this one, are kept.

    Args:
        obj: see `evolve`.
        type: of the condition, such as "Ready".
        status: "True", "False" or "Unknown", or a bool.
        reason: for machines: one word in camel case, which the API requires.
        message: for people.
        observed_generation: the `metadata.generation` that the condition is about; None to keep it as it is.
        now: the time of the transition; by default, the current time.

    Raises:
        UsageError: the status or the reason is invalid, the class of the object has no conditions, or a cache has
            only a part of it.
    """
    check_whole(obj, "set_condition")
    conditions = with_condition(
        _conditions(obj), type, status, reason, message, observed_generation=observed_generation, now=now
    )
    return obj if conditions is None else evolve(obj, {"status": {"conditions": conditions}})


def with_condition(
    conditions: list[dict[str, Any]],
    type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str,
    *,
    observed_generation: int | None,
    now: datetime | None,
) -> list[dict[str, Any]] | None:
    """Return conditions with another one, as `set_condition` sets it; None if exactly this one is among them.

    Raises:
        UsageError: the status or the reason is invalid.
    """
    value = str(status) if isinstance(status, bool) else status
    if value not in _STATUSES:
        raise UsageError(f"set_condition: status must be one of {', '.join(_STATUSES)}, or a bool, not {status!r}")
    if not reason:
        raise UsageError('set_condition: the reason must not be empty; it is one word, such as "Deployed"')
    index = next((at for at, each in enumerate(conditions) if each.get("type") == type), len(conditions))
    known = conditions[index] if index < len(conditions) else {}
    wanted = {**known, "type": type, "status": value, "reason": reason, "message": message}
    if observed_generation is not None:
        wanted["observedGeneration"] = observed_generation
    if known.get("status") != value or not known.get("lastTransitionTime"):
        wanted["lastTransitionTime"] = _text_of(now or datetime.now(UTC))
    if wanted == {"message": "", **known}:  # servers omit an empty message of some kinds
        return None
    return [*conditions[:index], wanted, *conditions[index + 1 :]]


def remove_condition(obj: T, type: str) -> T:
    """Return the object without the condition of a type; the object itself if it has none.

    Raises:
        UsageError: a cache has only a part of the object, or the object has no JSON form.
    """
    check_whole(obj, "remove_condition")
    conditions = _conditions(obj)
    kept = [each for each in conditions if each.get("type") != type]
    return obj if len(kept) == len(conditions) else evolve(obj, {"status": {"conditions": kept}})


def _conditions(obj: Any) -> list[dict[str, Any]]:
    return conditions_in(document_of(obj).get("status"))


def conditions_in(status: Any) -> list[dict[str, Any]]:
    """Return the conditions in the JSON of a status."""
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return [each for each in conditions or () if isinstance(each, dict)]


def _text_of(time: datetime) -> str:
    # The API has whole seconds; with fractions, the stored time would differ from the sent one.
    return time.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
