"""What a run of a declaration leaves for the next one."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.controller.writes import OwnWrites
from aioinformer.controller.writes.ledger import Ledger
from aioinformer.errors import UsageError
from tests.support.written_collection import Server


@pytest.mark.behaviour("C-73")
async def test_second_manager_is_refused_until_the_run_has_ended() -> None:
    ledger = Ledger()
    ledger.check_free("it", "one")
    assert ledger.begin("one") is None
    with pytest.raises(UsageError, match="already runs in manager one; make another Controller for manager two"):
        ledger.check_free("it", "two")


@pytest.mark.behaviour("C-73")
def test_manager_whose_event_loop_was_closed_keeps_no_declaration() -> None:
    ledger = Ledger()

    async def begin() -> None:
        ledger.check_free("it", "of this loop")
        ledger.begin("of this loop")

    asyncio.run(begin())
    asyncio.run(begin())


@pytest.mark.behaviour("C-73")
async def test_next_run_gets_the_writes_of_the_last_one_once() -> None:
    ledger = Ledger()
    ledger.begin("one")
    left = OwnWrites(lambda group, plural: [], Server())
    ledger.end(left)
    ledger.check_free("it", "two")
    assert ledger.begin("two") is left
    ledger.end(last := OwnWrites(lambda group, plural: [], Server()))
    assert ledger.begin("three") is last
    with pytest.raises(UsageError, match="in manager three"):
        ledger.check_free("it", "four")
    assert ledger.begin("three") is None
