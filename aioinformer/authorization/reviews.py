"""Questions to the API server: equal ones at the same time are one, answers are kept for seconds, within a rate.

- An answer counts from the moment when its question was sent, so it is never older than it seems.
- Only so many answers are kept; the one that was used longest ago is dropped.
- A question that failed is not repeated for a moment: everybody who asks meanwhile gets the same error.
- Questions wait for their turn. If that would take too long, they fail at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import msgspec

from aioinformer.authorization.users import ReviewUnavailable
from aioinformer.concurrency import Failure, create_task
from aioinformer.errors import AioinformerError

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

#: Seconds for which an error is the answer to the same question.
_FAILED: Final = 1.0
#: Seconds that a question waits for its turn, at most.
_TURN: Final = 5.0


class Pace:
    """Lets at most so many questions a second begin; as many may begin at once after a quiet second.

    Args:
        rate: questions a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        #: When the last question that has a turn would begin if they came one after the other.
        self._last = float("-inf")

    async def turn(self) -> None:
        """Wait for a turn.

        Raises:
            ReviewUnavailable: it would take too long.
        """
        now = asyncio.get_running_loop().time()
        begins = max(self._last, now - 1.0) + 1.0 / self._rate
        if begins - now > _TURN:
            raise ReviewUnavailable(
                f"there are more questions to the API server than {self._rate:g} a second; try again in a moment"
            )
        self._last = begins
        if begins > now:
            await asyncio.sleep(begins - now)


class _Answer(msgspec.Struct, Generic[A]):
    """An answer or an error, and until when it counts."""

    ends: float
    value: A | None = None
    failure: Failure | None = None

    def get(self) -> A:
        if self.failure is not None:
            raise self.failure.error
        return self.value  # type: ignore[return-value]


class _Question(msgspec.Struct, Generic[A]):
    """A question that is on its way, and how many wait for its answer."""

    task: asyncio.Task[A]
    waiting: int = 0


class Reviews(Generic[K, A]):
    """Asks questions of one kind, and keeps the answers.

    Args:
        what: names the tasks.
        keep: seconds for which an answer counts.
        most: how many answers are kept.
        pace: of the questions.
    """

    def __init__(self, what: str, *, keep: float, most: int, pace: Pace) -> None:
        self._what = what
        self._keep = keep
        self._most = most
        self._pace = pace
        self._answers: OrderedDict[K, _Answer[A]] = OrderedDict()
        self._asked: dict[K, _Question[A]] = {}

    def __len__(self) -> int:
        """Return how many answers are kept."""
        return len(self._answers)

    async def get(self, key: K, ask: Callable[[], Awaitable[A]]) -> A:
        """Return the answer to a question, a kept one if it still counts.

        Args:
            key: identifies the question. It is kept with the answer, so it contains no credential.
            ask: asks it, and returns the answer.

        Raises:
            AioinformerError: the question could not be answered, now or a moment ago.
        """
        known = self._answers.get(key)
        if known is not None and asyncio.get_running_loop().time() < known.ends:
            self._answers.move_to_end(key)
            return known.get()
        question = self._asked.get(key)
        if question is None:
            question = _Question(create_task(self._answer(key, ask), name=f"{self._what} review"))
            self._asked[key] = question
        question.waiting += 1
        try:
            return await asyncio.shield(question.task)
        finally:
            question.waiting -= 1
            if not question.waiting:
                # No caller waits any more. The next caller must not get the cancellation.
                if self._asked.get(key) is question:
                    del self._asked[key]
                question.task.cancel()

    async def _answer(self, key: K, ask: Callable[[], Awaitable[A]]) -> A:
        await self._pace.turn()
        clock = asyncio.get_running_loop().time
        sent = clock()
        try:
            value = await ask()
        except AioinformerError as error:
            self._put(key, _Answer(clock() + _FAILED, failure=Failure(error)))
            raise
        self._put(key, _Answer(sent + self._keep, value))
        return value

    def _put(self, key: K, answer: _Answer[A]) -> None:
        self._answers[key] = answer
        self._answers.move_to_end(key)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)
