"""During each fault, notifications are consistent and complete, and the informer reports the fault."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.informer.pipeline import QueueKind
from aioinformer.reflector.state import Phase
from aioinformer.testing import FAULTS, Fault
from tests.system.faults.matrix import WatchedServer, watched_server

if TYPE_CHECKING:
    from aioinformer.informer.pipeline import QueueName

BACKING_OFF = Phase.BACKING_OFF

#: A fault, its parameters, and the phase that the informer reports after that many strikes, None if it need not.
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
#: Faults of only one kind of list: streaming (True) or in pages (False).
_LIST_KINDS = {"half_page": [False], "refuse_send_initial_events": [True], "ignore_send_initial_events": [True]}


def _parameters(*, both_lists: bool) -> list[Any]:
    parameters = []
    for name, params, shown in _CASES:
        words = " ".join([name, *(f"{key}={value}" for key, value in params.items())])
        for streaming in _LIST_KINDS.get(name, [True, False] if both_lists else [True]):
            identity = f"{'streams' if streaming else 'pages'}, {words}"
            parameters.append(pytest.param(name, params, shown, streaming, id=identity))
    return parameters


def assert_shown(watched: WatchedServer, fault: Fault, shown: Phase | None) -> None:
    """Check that the fault has struck, and that the informer has reported it."""
    assert fault.strikes or fault.name in ("outage", "no_bookmarks")  # outages are not counted; bookmarks may be late
    if shown is not None and fault.strikes >= fault.params["times"]:
        assert shown in watched.shown


@pytest.mark.parametrize(("name", "params", "shown", "streaming"), _parameters(both_lists=True))
async def test_fault_from_the_start(name: str, params: dict[str, Any], shown: Phase | None, streaming: bool) -> None:
    async with watched_server(Random(name), streaming_list=streaming) as watched:
        async with watched.server.fault(name, **params) as fault, watched.informer:
            await watched.catch_up()
            await watched.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        watched.assert_consistent()
        assert_shown(watched, fault, shown)


@pytest.mark.parametrize(("name", "params", "shown", "streaming"), _parameters(both_lists=False))
async def test_fault_after_sync(name: str, params: dict[str, Any], shown: Phase | None, streaming: bool) -> None:
    async with (
        watched_server(Random(name), queue=QueueKind.IN_ORDER, streaming_list=streaming) as watched,
        watched.informer,
    ):
        await watched.catch_up()
        async with watched.server.fault(name, **params) as fault:
            if name in _LIST_KINDS:
                await watched.server.fault("error_event", status=410, reason="Expired", times=1)
            elif FAULTS[name].sort in ("answer", "transport"):
                await watched.server.fault("watch_close", times=1)
            for _ in range(10):
                watched.change(10)
                await asyncio.sleep(0)
            await watched.catch_up()
            await watched.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        watched.assert_consistent()
        assert_shown(watched, fault, shown)


@pytest.mark.conformance("ARC-02", "ARC-03", "ARC-07", "CTL-13")
@pytest.mark.parametrize("queue", list(QueueKind))
@pytest.mark.parametrize(("name", "params"), [("outage", {"duration": 0.3}), ("restart", {"downtime": 0.3})])
async def test_changes_missed_in_an_outage_are_delivered_once(
    name: str, params: dict[str, Any], queue: QueueName
) -> None:
    async with watched_server(Random(name), queue=queue) as watched, watched.informer:
        await watched.catch_up()
        before = set(watched.witness.present)
        failing = asyncio.create_task(watched.server.fault(name, **params).__aenter__())
        await watched.until(lambda state: state.phase is Phase.BACKING_OFF)
        watched.change(200)
        watched.server.compact()
        await failing
        await watched.catch_up()
        watched.assert_consistent()
        gone = before - set(watched.witness.present)
        assert gone
        assert {key: watched.witness.deletions[key] for key in gone} == dict.fromkeys(gone, 1)


@pytest.mark.parametrize("queue", list(QueueKind))
async def test_restored_server_replaces_the_cache(queue: QueueName) -> None:
    async with watched_server(Random("restore"), queue=queue, idle_timeout=0.3) as watched, watched.informer:
        await watched.catch_up()
        backup = watched.server.backup()
        watched.change(200)
        await watched.catch_up()
        watched.witness.versions_go_back = True
        watched.server.restore(backup)
        # The server assigns the same resourceVersions again, to other states.
        watched.change(100)
        await watched.catch_up("after-the-restore")
        watched.assert_consistent()
