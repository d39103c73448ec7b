"""client-go is the oracle: every script is played to aioinformer, whose record must be that of client-go."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.oracle import ours, record
from tests.oracle.compare import Comparison, compare, load_rules
from tests.oracle.script import Script, load

SCRIPTS = load()
RULES = load_rules()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played() -> dict[str, ours.Record | Exception]:
    """Play all scripts at once; what waits for one does not wait for the others."""

    async def one(position: int, script: Script) -> ours.Record | Exception:
        await asyncio.sleep(position * record.STAGGER)
        try:
            return await ours.play(script)
        except Exception as error:
            return error

    records = await asyncio.gather(*(one(*each) for each in enumerate(SCRIPTS)))
    return dict(zip((script.name for script in SCRIPTS), records, strict=True))


@pytest.fixture(scope="module")
def recorded() -> dict[str, ours.Record]:
    return record.read()


def _compare(
    script: Script, recorded: dict[str, ours.Record], played: dict[str, ours.Record | Exception]
) -> Comparison:
    mine = played[script.name]
    if isinstance(mine, Exception):
        raise mine
    return compare(script, recorded[script.name], mine, RULES)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script(script: Script, recorded: dict[str, ours.Record], played: dict[str, ours.Record | Exception]) -> None:
    assert script.name in recorded, "make record-oracle"
    assert not _compare(script, recorded, played).undeclared
