"""client-go is the oracle: for each script, aioinformer must do what client-go did, or what a rule declares."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.virtual_time import VirtualTimeLoop
from tests.system.oracle import ours
from tests.system.oracle.compare import Record, describe, expect, load_rules, read
from tests.system.oracle.script import FOLDER, Script, load

SCRIPTS = load()
RULES = load_rules()
THEIRS = read()


#: Rows without a script: no server causes them, or client-go does not notice them. Other tests have them.
NOT_SCRIPTED = (
    "an index function raises",
    "memory or stack runs out",
    "an event whose object is of another kind",
    "the pages of a list do not end",
    # client-go waits for ever, so there is no record. tests/unit/reflector has the rules of these two, in
    # test_protocol_refusals.py and test_protocol_lists.py, and test_hostile_streams.py has a server that trickles.
    "429 for each streaming list",
    "a streaming list that brings fewer than 100",
)


@pytest.fixture(scope="module")
def played() -> dict[str, Record | BaseException]:
    """Play all scripts at once, in virtual time."""

    async def play_all() -> list[Record | BaseException]:
        return await asyncio.gather(*map(ours.play, SCRIPTS), return_exceptions=True)

    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(grace=0.02)) as runner:
        found = runner.run(play_all())
    return dict(zip((script.name for script in SCRIPTS), found, strict=True))


@pytest.mark.parametrize("script", [pytest.param(script, id=script.name) for script in SCRIPTS])
def test_script(script: Script, played: dict[str, Record | BaseException]) -> None:
    found = played[script.name]
    if isinstance(found, BaseException):
        raise found
    assert describe(expect(script, THEIRS[script.name], RULES).record, found) == []


# Scripts, records and rules are consistent.


def test_every_script_has_a_client_go_record() -> None:
    assert [script.name for script in SCRIPTS if script.name not in THEIRS] == [], "run make record-oracle"
    assert sorted(THEIRS) == sorted(script.name for script in SCRIPTS), "run make record-oracle"


def test_every_declared_difference_is_used() -> None:
    expectations = {script.name: expect(script, THEIRS[script.name], RULES) for script in SCRIPTS}
    assert {name: each.problems for name, each in expectations.items() if each.problems} == {}
    used = set[str]().union(*(each.used for each in expectations.values()))
    assert sorted(RULES.keys() - used) == [], "rules that no script uses"


def test_every_row_of_the_fault_page_has_a_script() -> None:
    page = (FOLDER.parents[2] / "docs" / "faults.md").read_text()
    table = page.split("| failure | what the informer does")[1].split("\n\n")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    rows = [row for row in rows if not row.startswith(NOT_SCRIPTED)]
    pieces = {piece for script in SCRIPTS for piece in script.faults}
    assert [row for row in rows if not any(piece in row for piece in pieces)] == [], "rows without a script"
    assert [piece for piece in pieces if not any(piece in row for row in rows)] == [], "pieces without a row"
