"""Retries: after conflicts, after errors that a predicate accepts, and for a limited time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import ApiException

from aioinformer.errors import ApiError
from aioinformer.workqueue import DEFAULT_BACKOFF, DEFAULT_RETRY, RetryBackoff, is_conflict, on_error, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable

CONFLICT = ApiError(409, "Conflict", "the object has been modified")
EXISTS = ApiError(409, "AlreadyExists", "it is there")


class Script:
    """An async function that raises the given errors, then returns. It records the times of its calls."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.calls: list[float] = []

    async def __call__(self) -> str:
        self.calls.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        if self._errors:
            raise self._errors.pop(0)
        return "done"

    @property
    def pauses(self) -> list[float]:
        return [round(later - earlier, 6) for earlier, later in zip(self.calls, self.calls[1:], strict=False)]


@pytest.mark.conformance("RT-01")
async def test_retry_after_conflicts() -> None:
    write = Script(CONFLICT, CONFLICT)
    assert await retry_on_conflict(write, random=lambda: 0.0) == "done"
    assert write.pauses == [0.01, 0.01]


@pytest.mark.conformance("RT-01")
async def test_last_of_five_conflicts_is_raised() -> None:
    last = ApiError(409, "Conflict", "the fifth")
    write = Script(*[CONFLICT] * 4, last)
    with pytest.raises(ApiError) as raised:
        await retry_on_conflict(write)
    assert raised.value is last
    assert len(write.calls) == 5


@pytest.mark.conformance("RT-01")
@pytest.mark.parametrize("error", [EXISTS, ApiError(500, "InternalError"), LookupError()])
async def test_other_errors_are_raised_at_once(error: Exception) -> None:
    write = Script(error)
    with pytest.raises(type(error)):
        await retry_on_conflict(write)
    assert len(write.calls) == 1


@pytest.mark.conformance("RT-01")
async def test_predicate_chooses_the_errors_to_retry() -> None:
    read = Script(LookupError(), LookupError(), LookupError())
    assert await on_error(read, lambda error: isinstance(error, LookupError), random=lambda: 0.0) == "done"
    assert read.pauses == [0.01, 0.05, 0.25]


@pytest.mark.conformance("RT-01", "WEAK-11")
async def test_cancel_between_two_tries() -> None:
    write = Script(CONFLICT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await retry_on_conflict(write, RetryBackoff(steps=2, initial=10.0))
    assert len(write.calls) == 1


@pytest.mark.conformance("RT-01")
async def test_cancelled_try_is_not_repeated() -> None:
    write = Script(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await on_error(write, lambda error: True)
    assert len(write.calls) == 1


@pytest.mark.conformance("RT-01")
@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (DEFAULT_RETRY, [0.0105] * 4),
        (DEFAULT_BACKOFF, [0.0105, 0.0525, 0.2625]),
        (RetryBackoff(steps=4, initial=1.0, factor=3.0, jitter=0.0, cap=5.0), [1, 3, 5]),
        (RetryBackoff(steps=1, initial=1.0), []),
    ],
)
def test_delays_grow_up_to_the_cap_with_jitter(backoff: RetryBackoff, delays: list[float]) -> None:
    assert list(backoff.delays(lambda: 0.5)) == pytest.approx(delays)


def answered(body: str | bytes | None) -> ApiException:
    error = ApiException(status=409, reason="Conflict")
    error.body = body  # type: ignore[assignment]  # annotated as bytes, but str at run time
    return error


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (CONFLICT, True),
        (EXISTS, False),
        (ApiError(409), True),
        (ApiError(404, "NotFound"), False),
        (LookupError(), False),
        (answered(None), True),
        (answered('{"kind": "Status", "reason": "Conflict", "code": 409}'), True),
        (answered('{"kind": "Status", "reason": "AlreadyExists", "code": 409}'), False),
        (answered(b'{"kind": "Status", "reason": "AlreadyExists", "code": 409}'), False),
        (answered("<html>"), True),
        (answered("[]"), True),
        (ApiException(status=500, reason="Internal Server Error"), False),
    ],
)
def test_is_conflict_distinguishes_errors(error: Exception, conflict: bool) -> None:
    assert is_conflict(error) is conflict


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: RetryBackoff(steps=0, initial=1.0), "steps"),
        (lambda: RetryBackoff(steps=1, initial=-1.0), "initial"),
        (lambda: RetryBackoff(steps=1, initial=1.0, factor=0.5), "factor"),
        (lambda: RetryBackoff(steps=1, initial=1.0, jitter=-1.0), "jitter"),
    ],
)
def test_error_names_the_invalid_argument(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()
