"""Failures on the object: Events, and their limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import Controller, LeaderElection, QueueOptions, Result, RetryAfter, TerminalError, Watch
from aioinformer.errors import ApiError, UsageError
from aioinformer.models import core_v1, events_v1
from tests.support.managers import CONFIG_MAPS, STEADY, Cluster, manager_of, settled, started
from tests.support.written_collection import response_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer import Resource
    from aioinformer.controller import Request
    from aioinformer.resources import ObjectReference


class Events:
    """A recorder that keeps "name: type reason text", and when."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.times: list[float] = []
        self.about: list[ObjectReference] = []

    def event(self, obj: ObjectReference, type: str, reason: str, message: str) -> None:
        self.about.append(obj)
        self.events.append(f"{obj.name}: {type} {reason} {message}")
        self.times.append(asyncio.get_running_loop().time() - 1000)

    eventf = annotated_eventf = event


def failing(
    error: Callable[[], BaseException] = lambda: ValueError("the colour is odd"), failures: int = 100_000
) -> Any:
    """Return a reconciler that raises so often for each object."""
    counts: dict[str, int] = {}

    async def reconcile(request: Request[Any]) -> None:
        counts[request.name] = counts.get(request.name, 0) + 1
        if counts[request.name] <= failures:
            raise error()

    return reconcile


async def events_of(
    reconcile: Any, *names: str, seconds: float = 30.0, server: Cluster | None = None, **options: Any
) -> list[str]:
    """Return the Events that a controller of these objects records."""
    events = Events()
    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY, workers=50)
    async with manager_of(server or Cluster(*names or "a"), controller, recorder=events, **options):
        await asyncio.sleep(seconds)
    return events.events


@pytest.mark.behaviour("C-143")
async def test_third_failure_in_a_row_is_an_event_and_so_is_the_success() -> None:
    first, second = await events_of(failing(failures=4))
    assert first.startswith("a: Warning ReconcileFailed 3 attempts have failed; it is retried: ValueError at ")
    assert first.endswith(": the colour is odd")
    assert second == "a: Normal ReconcileSucceeded the object is reconciled again"


@pytest.mark.behaviour("C-143")
@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_fewer_failures_are_no_events(failures: int) -> None:
    assert await events_of(failing(failures=failures)) == []


@pytest.mark.behaviour("C-143")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TerminalError("colour purple is not known"), "colour purple is not known"),
        (UsageError("no such input"), "no such input"),
    ],
)
async def test_parked_key_is_an_event(error: Exception, text: str) -> None:
    assert await events_of(failing(lambda: error)) == [
        f"a: Warning ReconcileParked parked until an input changes: {text}"
    ]


@pytest.mark.behaviour("C-143")
async def test_what_is_no_failure_is_no_event() -> None:
    async def waits(request: Request[Any]) -> Result:
        return Result(parked="waits for approval")

    assert await events_of(waits) == []
    assert await events_of(failing(lambda: RetryAfter(1, "elsewhere"), 10)) == []
    conflict = ApiError(409, "Conflict", "written")
    assert await events_of(failing(lambda: conflict, 2)) == []


@pytest.mark.behaviour("C-143")
async def test_one_event_for_each_key_and_reason_in_ten_minutes() -> None:
    events = Events()
    quick = QueueOptions(backoff=BackoffOptions(initial=1.0, factor=1.0, jitter=0.0))
    controller = Controller("it", CONFIG_MAPS, failing(), queue=quick)
    async with manager_of(Cluster("a"), controller, recorder=events):
        await asyncio.sleep(1500)
    assert [round(each) for each in events.times] == [2, 602, 1202]


@pytest.mark.behaviour("C-143")
async def test_ten_events_in_a_minute_and_then_the_count() -> None:
    names = [f"map-{number}" for number in range(50)]
    events = Events()
    quick = QueueOptions(backoff=BackoffOptions(initial=1.0, factor=1.0, jitter=0.0))
    controller = Controller("it", CONFIG_MAPS, failing(), queue=quick, workers=50)
    async with manager_of(Cluster(*names), controller, recorder=events):
        await asyncio.sleep(63)
        assert len([each for each in events.times if each < 60]) == 10
        assert len({each.name for each in events.about[:10]}) == 10
        count = events.events[10]
        await asyncio.sleep(537)
    assert " more Events of controller it, left out in this minute) 62 attempts have failed; " in count
    left_out = int(count.split("(and ")[1].split()[0].replace(",", ""))
    assert left_out == 40 * 60 - 1
    assert sorted(each.name or "" for each in events.about) == sorted(names)  # those with a count among them


@pytest.mark.behaviour("C-143")
async def test_object_whose_event_has_the_count_has_one_of_its_success() -> None:
    names = [f"map-{number}" for number in range(11)]
    events = await events_of(failing(failures=8), *names, seconds=1000)
    successes = [each.partition(":")[0] for each in events if "ReconcileSucceeded" in each]
    assert len(set(successes)) == 11


@pytest.mark.behaviour("C-143")
async def test_stop_records_the_count() -> None:
    names = [f"map-{number}" for number in range(12)]
    events = await events_of(failing(lambda: TerminalError("no")), *names, seconds=5)
    assert len(events) == 11
    assert events[-1].endswith(
        "(and 1 more Events of controller it, left out in this minute) parked until an input changes: no"
    )


@pytest.mark.behaviour("C-143")
async def test_texts_are_scrubbed_and_short() -> None:
    error = TerminalError("https://me:hunter2@db password=hunter3 Bearer abcdefghij\n" + "ä" * 2000)
    [event] = await events_of(failing(lambda: error))
    message = event.split("ReconcileParked ")[1]
    assert "hunter" not in event
    assert "abcdefghij" not in event
    assert "\n" not in event
    assert 1000 < len(message.encode()) <= 1024
    assert message.endswith("…")


@pytest.mark.behaviour("C-143")
async def test_off_by_option() -> None:
    assert await events_of(failing(), failure_events=False) == []
    with pytest.raises(UsageError, match="failure_events must be True or False, not 'no'"):
        manager_of(Cluster(), failure_events="no")


@pytest.mark.behaviour("C-143")
@pytest.mark.parametrize("kind", [core_v1.EVENTS, events_v1.EVENTS])
async def test_controller_that_is_fed_by_events_records_none(kind: Resource[Any]) -> None:
    events = Events()
    watch = Watch(kind, to=lambda each: None)
    controller = Controller("it", CONFIG_MAPS, failing(), queue=STEADY, watches=[watch])
    async with manager_of(Cluster("a"), controller, recorder=events):
        await asyncio.sleep(30)
    assert events.events == []


@pytest.mark.behaviour("C-143")
async def test_object_that_is_gone_has_no_events() -> None:
    server, events = Cluster("a", "b"), Events()
    controller = Controller("it", CONFIG_MAPS, failing(), queue=STEADY)
    async with manager_of(server, controller, recorder=events):
        await started()
        server.remove("configmaps", "default/a")
        await asyncio.sleep(30)
        before = [each for each in events.about if each.name == "b"]
        server.remove("configmaps", "default/b")
        await asyncio.sleep(2000)
    assert [each.name for each in events.about] == ["b"]
    assert before[0].uid.startswith("uid-")


@pytest.mark.behaviour("C-143")
async def test_dry_run_and_standby_send_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    server = Cluster("a")
    assert await events_of(failing(), server=server, dry_run=True) == []
    assert server.writes == []
    lines = [each.getMessage() for each in caplog.records if "dry run: event" in each.getMessage()]
    assert len(lines) == 1
    assert "dry run: event Warning ReconcileFailed about ConfigMap default/a is not sent: 3 attempts" in lines[0]
    server.leases.take("former")
    election = LeaderElection("it", identity="me")
    assert await events_of(failing(), server=server, leader_election=election, seconds=10) == []


@pytest.mark.behaviour("C-143")
async def test_without_the_permission_runs_go_on_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    class Strict(Cluster):
        sent = 0

        async def request(self, request: Any) -> Any:
            if not request.path.endswith("/events"):
                return await super().request(request)
            self.sent += 1
            return response_of(403, {"kind": "Status", "code": 403, "reason": "Forbidden"})

    server = Strict(*(f"map-{number}" for number in range(50)))
    controller = Controller("it", CONFIG_MAPS, failing(), queue=STEADY, workers=50)
    async with manager_of(server, controller):
        await asyncio.sleep(600)
        await settled()
    assert server.sent > 20
    assert caplog.text.count("grant `create` and `patch` of events") == 1
    assert caplog.text.count("was not written") == 1
