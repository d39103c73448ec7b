"""Leadership on virtual time: terms as scopes, competing again, fencing, and the hand-over to a standby."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import LeaderElectionOptions
from aioinformer.controller import LeaderElection
from aioinformer.errors import UsageError
from aioinformer.leaderelection import LeadershipLost, Term
from aioinformer.leaderelection.leadership import Leadership
from tests.support.lease_server import LeaseServer
from tests.support.stalling_loop import stall
from tests.unit.leaderelection.candidates import now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def leadership(server: LeaseServer, identity: str = "me", **options: Any) -> Leadership:
    """Return a candidate without jitter."""
    return Leadership(
        server, LeaderElection("it", "default", LeaderElectionOptions(**options), identity), random=lambda: 0.0
    )


class Work:
    """The protected function, and what happened to it.

    Attributes:
        terms: the terms in which it was called.
        ends: the exceptions that ended it.
        ending: seconds that it takes to end.
    """

    def __init__(self, ending: float = 0.0) -> None:
        self.terms: list[Term] = []
        self.ends: list[BaseException] = []
        self.ending = ending

    async def __call__(self, term: Term) -> None:
        self.terms.append(term)
        try:
            await asyncio.sleep(1e6)
        except BaseException as error:
            await asyncio.sleep(self.ending)
            self.ends.append(error)
            raise


@asynccontextmanager
async def running(subject: Leadership, protected: Callable[[Term], Awaitable[object]]) -> AsyncIterator[None]:
    """Run the leadership while the block runs, and then cancel it."""
    task = asyncio.create_task(subject.run(protected))
    try:
        await asyncio.sleep(1)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=100)
        assert task.cancelled()


@pytest.mark.behaviour("C-77")
async def test_loss_cancels_the_protected_function_only() -> None:
    server, work = LeaseServer(), Work()
    subject = leadership(server)
    beside = asyncio.create_task(asyncio.sleep(60, "it ran on"))
    async with running(subject, work):
        assert subject.is_leader()
        assert work.terms == [subject.term]
        server.take("other", transitions=7)
        await asyncio.sleep(5)
        assert [type(end) for end in work.ends] == [asyncio.CancelledError]
        assert subject.term is None
        assert subject.leader() == "other"
        assert await beside == "it ran on"


@pytest.mark.behaviour("C-77")
async def test_process_competes_again_after_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server, work = LeaseServer(), Work()
    subject = leadership(server)
    async with running(subject, work):
        server.take("other", transitions=7)
        await asyncio.sleep(10)
        assert len(work.terms) == 1
        server.take("", transitions=7)
        await asyncio.sleep(0.1)
        assert [term.token for term in work.terms] == [0, 8]
        assert subject.terms == 2
        assert subject.is_leader()
    assert "me has lost lease default/it: other leads after" in caplog.text


@pytest.mark.behaviour("C-77")
async def test_log_tells_how_long_a_lost_term_lasted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server, work = LeaseServer(), Work()
    async with running(leadership(server), work):
        server.take("other", transitions=7)
        await asyncio.sleep(10)
        server.take("", transitions=7)
        await asyncio.sleep(5)
        server.take("other", transitions=9)
        await asyncio.sleep(5)
    lasted = [float(each) for each in re.findall(r"other leads after ([\d.]+) s", caplog.text)]
    assert lasted == pytest.approx([1, 5], abs=0.5)


@pytest.mark.behaviour("C-78")
async def test_term_of_an_ended_scope_fences_writes() -> None:
    server, work = LeaseServer(), Work()
    async with running(leadership(server), work):
        work.terms[0].check()
        server.down = True
        await asyncio.sleep(12)
        server.down = False
        await asyncio.sleep(5)
        work.terms[1].check()
        with pytest.raises(LeadershipLost):
            work.terms[0].check()


@pytest.mark.behaviour("C-79")
async def test_standby_leads_within_two_seconds_of_a_stop() -> None:
    server, first, second = LeaseServer(), Work(), Work()
    slow = {"lease_duration": 900, "renew_deadline": 600.0, "retry_period": 200.0}
    async with running(leadership(server, "first", **slow), first):
        task = asyncio.create_task(leadership(server, "second", **slow).run(second))
        await asyncio.sleep(10)
        assert not second.terms
        stopped = now()
    while not second.terms:  # noqa: ASYNC110 - on virtual time
        await asyncio.sleep(0.1)
    assert now() - stopped <= 2
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.behaviour("C-79")
async def test_function_that_returns_ends_the_leadership(server: LeaseServer) -> None:
    await leadership(server).run(lambda term: asyncio.sleep(5))
    assert server.holder == ""


@pytest.mark.behaviour("C-80")
async def test_leadership_fails_if_the_function_outlives_the_lease() -> None:
    server, work = LeaseServer(), Work(ending=60)
    subject = leadership(server)
    async with running(subject, work):
        server.down = True
        await asyncio.sleep(30)
        assert subject.failure() == ""
        await asyncio.sleep(10)
        assert "expired" in subject.failure()
        assert "still runs" in subject.failure()
        server.down = False
        await asyncio.sleep(60)
        assert subject.failure() == ""
        assert len(work.terms) == 2


@pytest.mark.behaviour("C-77")
async def test_loss_that_tasks_of_the_function_notice_is_a_loss() -> None:
    server, terms = LeaseServer(), []

    async def check(term: Term) -> None:
        while True:
            await asyncio.sleep(0.1)
            term.check()

    async def protected(term: Term) -> None:
        terms.append(term)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(check(term))

    async with running(leadership(server), protected):
        stall(12)  # the tasks notice it before they can be cancelled
        await asyncio.sleep(10)
        assert len(terms) == 2


@pytest.mark.behaviour("C-77")
async def test_loss_during_a_stop_does_not_prevent_the_stop() -> None:
    server, began = LeaseServer(), now()

    async def protected(term: Term) -> None:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            if now() - began < 10:
                raise LeadershipLost("it was lost while it ended") from None
            raise

    async with running(leadership(server), protected):
        stopped = now()
    assert now() - stopped < 0.5
    assert server.holder == ""


@pytest.mark.behaviour("C-77")
@pytest.mark.parametrize("grouped", [False, True])
async def test_error_of_the_function_releases_the_lease_and_is_raised(server: LeaseServer, grouped: bool) -> None:
    error: Exception = LookupError("of the function")
    if grouped:
        error = ExceptionGroup("several", [LeadershipLost("lost"), error])

    async def protected(term: Term) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await leadership(server).run(protected)
    assert raised.value is error
    assert server.holder == ""


async def test_terms_that_end_at_once_are_a_retry_period_apart() -> None:
    server, starts = LeaseServer(), []

    async def protected(term: Term) -> None:
        starts.append(now())
        raise LeadershipLost("at once")

    async with running(leadership(server), protected):
        await asyncio.sleep(10)
    assert 5 <= len(starts) <= 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("",), "a name and a namespace"),
        (("it", ""), "a name and a namespace"),
        (("it", "default", {}), "LeaderElectionOptions"),
        (("it", "default", None, ""), "identity"),
        (("it", "default", LeaderElectionOptions(coordinated=True)), "LeaseCandidate"),
    ],
)
def test_wrong_election_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LeaderElection(*arguments)
