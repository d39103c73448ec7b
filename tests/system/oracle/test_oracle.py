"""client-go is the oracle: for each script, aioinformer must do what client-go did, or what a rule declares."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.system.oracle import ours, records
from tests.system.oracle.compare import Rule, describe, expect, load_rules
from tests.system.oracle.player import STAGGER
from tests.system.oracle.records import Record
from tests.system.oracle.script import FOLDER, KINDS, VERBS, Script, decode_event, decode_object, encode_object, load
from tests.system.oracle.steady import SteadyLoop

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = load()
RULES = load_rules()
THEIRS = records.read()


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

    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
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


def test_suite_keeps_its_size() -> None:
    assert 80 <= len(SCRIPTS) <= 120
    assert len(RULES) <= 25
    assert len(VERBS) <= 15
    assert len((FOLDER / "player.py").read_text().splitlines()) <= 600


def test_every_row_of_the_fault_page_has_a_script() -> None:
    page = (FOLDER.parents[2] / "docs" / "faults.md").read_text()
    table = page.split("| failure | what the informer does")[1].split("\n\n")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    rows = [row for row in rows if not row.startswith(NOT_SCRIPTED)]
    pieces = {piece for script in SCRIPTS for piece in script.faults}
    assert [row for row in rows if not any(piece in row for piece in pieces)] == [], "rows without a script"
    assert [piece for piece in pieces if not any(piece in row for row in rows)] == [], "pieces without a row"


def test_steady_clock_stops_while_the_loop_is_blocked() -> None:
    async def block() -> float:
        clock = asyncio.get_running_loop().time
        before = clock()
        time.sleep(0.3)  # noqa: ASYNC251
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return clock() - before

    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        assert runner.run(block()) < 0.15


# The notation.


@pytest.mark.parametrize("text", ["a@10", "other/a@10", "a@10=x", "a@=x", "a@10#u-2", "a@#", "a@10=x#u-2"])
def test_object_notation_round_trips(text: str) -> None:
    item = decode_object(text)
    metadata = item["metadata"]
    version, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    assert encode_object(metadata["namespace"], metadata["name"], version, uid, item["spec"]["value"]) == text


@pytest.mark.parametrize("text", ["a10", "@", "a@1 b@2"])
def test_invalid_object_notation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an object"):
        decode_object(text if text != "@" else "a/b/c@1")


def test_event_notation_is_parsed() -> None:
    assert [decode_event(text)["type"] for text in ("+a@1", "~a@2", "-a@3", "?a@4", "=5", "!410")] == [
        "ADDED",
        "MODIFIED",
        "DELETED",
        "UNKNOWN",
        "BOOKMARK",
        "ERROR",
    ]
    end, not_yet = decode_event("=5!"), decode_event("=5?")
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert not_yet["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "false"}


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ('["shout 5"]', "'shout 5' has none of the verbs"),
        ('["head"]', "must end with one of"),
        ('["half wait 3", "end"]', "must be followed by `list` or `send`"),
    ],
)
def test_invalid_script_is_refused(tmp_path: Path, reply: str, complaint: str) -> None:
    (tmp_path / "some.toml").write_text(f'[[script]]\nname = "x"\nsummary = "y"\nlist = [{reply}]\n')
    with pytest.raises(ValueError, match=re.escape(complaint)):
        load(tmp_path)


# The comparison itself.


def _script(**fields: object) -> Script:
    return Script("x", "some", "summary", dict.fromkeys(KINDS, ()), **fields)  # type: ignore[arg-type]


GENERAL = Rule("general", "differs", "reason", part="requests", pattern=r"(.*list) rv=\d+", becomes=r"\1 rv=")
CITED = Rule("cited", "differs", "reason", part="requests", pattern="backoff: (.*)", becomes=r"at once: \1", cited=True)
REASON = Rule("reason", "differs", "reason")
SOME = {rule.name: rule for rule in (GENERAL, CITED, REASON)}


def test_general_rule_replaces_lines() -> None:
    expectation = expect(_script(), Record(["list rv=0", "backoff: watch rv=5"]), SOME)
    assert (expectation.record.requests, expectation.used, expectation.problems) == (
        ["list rv=", "backoff: watch rv=5"],
        {"general"},
        [],
    )


def test_cited_rule_applies_once_where_it_is_cited() -> None:
    expectation = expect(_script(differs=("cited",)), Record(["backoff: watch rv=5", "backoff: watch rv=6"]), SOME)
    assert (expectation.record.requests, expectation.problems) == (["at once: watch rv=5", "backoff: watch rv=6"], [])


def test_script_can_exclude_a_rule() -> None:
    expectation = expect(_script(without=("general",)), Record(["list rv=0"]), SOME)
    assert (expectation.record.requests, expectation.used) == (["list rv=0"], set())


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
