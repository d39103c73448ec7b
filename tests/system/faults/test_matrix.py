"""The effects of each fault on an informer are those of docs/fault-matrix.md; controllers converge in spite of it."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING, Any

import fault_matrix
import pytest

from aioinformer.reflector import Phase
from tests.support.queues import QUEUES
from tests.system.faults import controllers
from tests.system.faults.matrix import LASTS, ROWS, measure, watched_server

if TYPE_CHECKING:
    from aioinformer.informer import QueueName
    from tests.system.faults.matrix import Row


def test_page_agrees_with_figures_and_rows() -> None:
    figures = json.loads(fault_matrix.FIGURES.read_text())
    assert fault_matrix.find_problems(figures, fault_matrix.PAGE.read_text()) == [], "run scripts/fault_matrix.py"


async def test_faults_have_the_effects_on_the_page() -> None:
    rows = [row for row in ROWS if row.lasts == LASTS]
    page = {cell["title"]: cell for cell in json.loads(fault_matrix.FIGURES.read_text())["rows"]}
    expected = {row.title: (page[row.title]["shown"], page[row.title]["lost"] > 0) for row in rows}
    for lasts in (1.5, 6.0, 24.0):  # on a busy machine, an effect shows later
        cells = await asyncio.gather(*(measure(row, lasts=lasts) for row in rows))
        assert {cell.title: cell.untrue for cell in cells} == {cell.title: page[cell.title]["untrue"] for cell in cells}
        assert not [cell.title for cell in cells if cell.lost and not page[cell.title]["lost"]]
        found = {cell.title: (cell.shown, cell.lost > 0) for cell in cells}
        rows = [row for row in rows if found[row.title] != expected[row.title]]
        if not rows:
            break
    assert {row.title: found[row.title] for row in rows} == {row.title: expected[row.title] for row in rows}


@pytest.mark.behaviour("C-95", "C-97", "C-98")
@pytest.mark.parametrize("row", controllers.CONTROLLER_ROWS, ids=lambda row: row.title)
def test_controllers_converge_and_do_nothing_twice(row: Row) -> None:
    figures = controllers.measure(row)
    assert figures.latest <= controllers.RENEW_DEADLINE
    assert figures.terms >= 1


# Informers with short delays, with both queues: notifications are consistent and complete.

#: How the faults that do not count strikes are limited in time.
_LIMITS: dict[str, dict[str, Any]] = {
    "black_hole": {"duration": 0.5},
    "outage": {"duration": 0.3},
    "restart": {"downtime": 0.2},
    "restore": {},
}
_ONLY_STREAMS = ("refuse_send_initial_events", "ignore_send_initial_events")


@pytest.mark.parametrize("streaming", [True, False], ids=["streams", "pages"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
async def test_fault_from_the_start_is_survived(row: Row, streaming: bool) -> None:
    if row.fault in _ONLY_STREAMS or row.fault == "half_page":
        streaming = row.fault != "half_page"
    queue: QueueName = "delta" if streaming else "in_order"
    params = {**row.params, **_LIMITS.get(row.fault, {"times": 2})}
    async with watched_server(Random(row.title), queue=queue, streaming_list=streaming) as watched:
        async with watched.server.fault(row.fault, **params) as fault, watched.informer:
            await watched.catch_up()
            await watched.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        watched.assert_consistent()
        assert fault.strikes or row.fault in ("outage", "no_bookmarks", *_LIMITS)


@pytest.mark.conformance("ARC-02", "ARC-03", "ARC-07", "CTL-13")
@pytest.mark.parametrize("queue", QUEUES)
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


@pytest.mark.parametrize("queue", QUEUES)
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
