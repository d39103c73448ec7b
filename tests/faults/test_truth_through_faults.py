"""Whatever goes wrong, what is told is true, nothing is lost, and what goes wrong is shown while it does."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from aioinformer.informer.pipeline import QueueKind
from aioinformer.reflector.state import Phase
from aioinformer.testing import FAULTS, Fault
from tests.faults.churn import Following, following

BACKING_OFF = Phase.BACKING_OFF

#: A fault, its parameters, and what is shown once it has struck that often; what may happen at once is not.
_CASES: list[tuple[str, dict[str, Any], Phase | None]] = [
    ("black_hole", {"duration": 0.5}, None),
    ("cut", {"times": 3}, BACKING_OFF),
    ("cut", {"times": 3, "events": 3}, None),
    ("error_event", {"times": 3}, BACKING_OFF),
    ("error_event", {"times": 3, "status": 410, "reason": "Expired"}, BACKING_OFF),
    ("expired", {"times": 4}, BACKING_OFF),
    ("expired", {"times": 4, "as_status": True}, BACKING_OFF),
    ("forbidden", {"times": 3}, Phase.FORBIDDEN),
    ("garbage", {"times": 5}, BACKING_OFF),
    ("half_page", {"times": 3}, BACKING_OFF),
    ("html", {"times": 4}, BACKING_OFF),
    ("html", {"times": 3, "status": 502}, BACKING_OFF),
    ("huge_line", {"times": 4, "size": 3_000_000}, BACKING_OFF),
    ("huge_line", {"times": 4, "size": 900_000}, None),
    ("ignore_send_initial_events", {}, None),
    ("latency", {"times": 3, "seconds": 0.2}, None),
    ("method_not_allowed", {"times": 3}, Phase.NOT_ALLOWED),
    ("no_bookmarks", {}, None),
    ("not_found", {"times": 3}, Phase.NOT_FOUND),
    ("outage", {"duration": 0.3}, BACKING_OFF),
    ("refuse_send_initial_events", {}, None),
    ("restart", {"downtime": 0.2}, None),
    ("restart", {"downtime": 0.2, "keep_history": True}, None),
    ("server_error", {"times": 3}, BACKING_OFF),
    ("server_error", {"times": 3, "text": True}, BACKING_OFF),
    ("slow", {"times": 20, "seconds": 0.02}, None),
    ("throttle", {"times": 1, "retry_after": 1}, BACKING_OFF),
    ("too_large", {"times": 1}, BACKING_OFF),
    ("unauthorized", {"times": 3}, Phase.UNAUTHORIZED),
    ("unavailable", {"times": 1, "retry_after": 1}, BACKING_OFF),
    ("undecodable_object", {"times": 3, "namespace": "default", "name": "broken"}, Phase.DEGRADED),
    ("unknown_event_type", {"times": 3}, None),
    ("version_only_bookmark", {"times": 3, "events": 5}, None),
    ("watch_close", {"times": 5}, BACKING_OFF),
    ("watch_close", {"times": 5, "events": 2}, None),
]
#: Faults of one of the two ways to list.
_WAYS = {"half_page": [False], "refuse_send_initial_events": [True], "ignore_send_initial_events": [True]}


def _parameters(*, ways: bool) -> list[Any]:
    parameters = []
    for name, params, shown in _CASES:
        words = " ".join([name, *(f"{key}={value}" for key, value in params.items())])
        for streaming in _WAYS.get(name, [True, False] if ways else [True]):
            identity = f"{'streams' if streaming else 'pages'}, {words}"
            parameters.append(pytest.param(name, params, shown, streaming, id=identity))
    return parameters


def assert_shown(follower: Following, fault: Fault, shown: Phase | None) -> None:
    """The fault has struck, and was shown if it has struck as often as it was to."""
    assert fault.strikes or fault.name in ("outage", "no_bookmarks")  # the one is not counted, the other may come late
    if shown is not None and fault.strikes >= fault.params["times"]:
        assert shown in follower.shown


@pytest.mark.parametrize(("name", "params", "shown", "streaming"), _parameters(ways=True))
async def test_fault_from_the_start(name: str, params: dict[str, Any], shown: Phase | None, streaming: bool) -> None:
    async with following(Random(name), streaming_list=streaming) as follower:
        async with follower.server.fault(name, **params) as fault, follower.informer:
            await follower.catch_up()
            await follower.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        follower.assert_truth_was_told()
        assert_shown(follower, fault, shown)


@pytest.mark.parametrize(("name", "params", "shown", "streaming"), _parameters(ways=False))
async def test_fault_after_sync(name: str, params: dict[str, Any], shown: Phase | None, streaming: bool) -> None:
    async with (
        following(Random(name), queue=QueueKind.IN_ORDER, streaming_list=streaming) as follower,
        follower.informer,
    ):
        await follower.catch_up()
        async with follower.server.fault(name, **params) as fault:
            if name in _WAYS:
                await follower.server.fault("error_event", status=410, reason="Expired", times=1)
            elif FAULTS[name].sort in ("answer", "transport"):
                await follower.server.fault("watch_close", times=1)
            for _ in range(10):
                follower.change(10)
                await asyncio.sleep(0)
            await follower.catch_up()
            await follower.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        follower.assert_truth_was_told()
        assert_shown(follower, fault, shown)


@pytest.mark.conformance("ARC-02", "ARC-03", "ARC-07", "CTL-13")
@pytest.mark.parametrize("queue", list(QueueKind))
@pytest.mark.parametrize(("name", "params"), [("outage", {"duration": 0.3}), ("restart", {"downtime": 0.3})])
async def test_changes_missed_in_an_outage_are_delivered_once(name: str, params: dict[str, Any], queue: str) -> None:
    async with following(Random(name), queue=queue) as follower, follower.informer:
        await follower.catch_up()
        before = set(follower.witness.present)
        failing = asyncio.create_task(follower.server.fault(name, **params).__aenter__())
        await follower.until(lambda state: state.phase is Phase.BACKING_OFF)
        follower.change(200)
        follower.server.compact()
        await failing
        await follower.catch_up()
        follower.assert_truth_was_told()
        gone = before - set(follower.witness.present)
        assert gone
        assert {key: follower.witness.deletions[key] for key in gone} == dict.fromkeys(gone, 1)


@pytest.mark.parametrize("queue", list(QueueKind))
async def test_restored_server_replaces_the_cache(queue: str) -> None:
    async with following(Random("restore"), queue=queue, idle_timeout=0.3) as follower, follower.informer:
        await follower.catch_up()
        backup = follower.server.backup()
        follower.change(200)
        await follower.catch_up()
        follower.witness.versions_go_back = True
        follower.server.restore(backup)
        # Versions that were given out before are given out again, to other states.
        follower.change(100)
        await follower.catch_up("after-the-restore")
        follower.assert_truth_was_told()
