"""client-go is the oracle: for each script, aioinformer must do what client-go did, or what a rule declares."""

from __future__ import annotations

import asyncio

import pytest

from tests.system.oracle import ours
from tests.system.oracle.compare import Record, Rule, describe, expect, load_rules, read
from tests.system.oracle.player import STAGGER
from tests.system.oracle.script import FOLDER, KINDS, Script, load

SCRIPTS = load()
RULES = load_rules()
THEIRS = read()


#: Rows without a script: no server causes them, or client-go does not notice them. Other tests have them.
NOT_SCRIPTED = (
    "an index function raises",
    "memory or stack runs out",
    "an event whose object is of another kind",
    "the pages of a list do not end",
)


@pytest.fixture(scope="module")
def played() -> dict[str, Record | Exception]:
    """Play all scripts in parallel, because they mostly wait."""

    async def one(position: int, script: Script) -> Record | Exception:
        await asyncio.sleep(position * STAGGER)
        try:
            return await ours.play(script)
        except Exception as error:
            return error

    async def play_all() -> list[Record | Exception]:
        return await asyncio.gather(*(one(*each) for each in enumerate(SCRIPTS)))

    with asyncio.Runner(loop_factory=ours.SteadyLoop) as runner:
        found = runner.run(play_all())
    return dict(zip((script.name for script in SCRIPTS), found, strict=True))


@pytest.mark.timeout(200)
@pytest.mark.parametrize("script", [pytest.param(script, id=script.name) for script in SCRIPTS])
def test_script(script: Script, played: dict[str, Record | Exception]) -> None:
    found = played[script.name]
    if isinstance(found, Exception):
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


# The comparison itself.


def _script(**fields: object) -> Script:
    return Script("x", "some", "summary", dict.fromkeys(KINDS, ()), **fields)  # type: ignore[arg-type]


GENERAL = Rule("general", "differs", "reason", part="requests", pattern=r"(.*list) rv=\d+", becomes=r"\1 rv=")
CITED = Rule("cited", "differs", "reason", part="requests", pattern="backoff: (.*)", becomes=r"at once: \1", cited=True)
REASON = Rule("reason", "differs", "reason")
BACKOFFS = ["backoff: watch rv=5", "backoff: watch rv=6"]
SOME = {rule.name: rule for rule in (GENERAL, CITED, REASON)}


@pytest.mark.parametrize(
    ("script", "requests", "used"),
    [
        pytest.param(_script(), ["list rv=", *BACKOFFS], {"general"}, id="a general rule applies to all"),
        pytest.param(_script(without=("general",)), ["list rv=0", *BACKOFFS], set(), id="unless it is excluded"),
        pytest.param(
            _script(differs=("cited",), without=("general",)),
            ["list rv=0", "at once: watch rv=5", BACKOFFS[1]],
            {"cited"},
            id="a cited rule applies once",
        ),
    ],
)
def test_rules_rewrite_lines_of_client_go(script: Script, requests: list[str], used: set[str]) -> None:
    expectation = expect(script, Record(["list rv=0", *BACKOFFS]), SOME)
    assert (expectation.record.requests, expectation.used, expectation.problems) == (requests, used, [])


def test_declared_difference_must_match_exactly() -> None:
    script = _script(differs=("reason",), ours={"store": ["b@2"]})
    expectation = expect(script, Record(["list rv="], store=["a@1"]), SOME)
    assert (expectation.record, expectation.used, expectation.problems) == (
        Record(["list rv="], store=["b@2"]),
        {"reason"},
        [],
    )
    assert describe(expectation.record, Record(["list rv="], store=["c@3"])) == [
        "store:\n  expected ['b@2']\n  found    ['c@3']"
    ]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        pytest.param(_script(differs=("no-such",)), "no-such is not a rule of differences.toml", id="unknown"),
        pytest.param(_script(differs=("cited",)), "cited makes no difference", id="idle"),
        pytest.param(_script(ours={"store": []}), "`ours.store` is the same as client-go's record", id="the same"),
        pytest.param(_script(ours={"store": ["b@2"]}), "`ours` needs a rule", id="unexplained"),
        pytest.param(_script(differs=("reason",)), "`ours` needs a rule", id="nothing to explain"),
    ],
)
def test_unused_declaration_is_a_problem(script: Script, problem: str) -> None:
    assert any(each.startswith(problem) for each in expect(script, Record(["list rv="]), SOME).problems)
