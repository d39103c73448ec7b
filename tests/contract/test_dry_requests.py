"""Where options are looked for, and what a dry run passes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.talk import Talk

QUERIES = {
    "dry-run": "dryRun=All",
    "unknown-dry-run": "dryRun=x",
    "policy": "propagationPolicy=x",
    "orphans": "orphanDependents=true&propagationPolicy=Orphan",
}


@variants("query", QUERIES)
async def test_who_sends_a_body_has_no_options_in_the_query(talk: Talk, query: str) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk("DELETE", f"{CONFIGMAPS}/a?{query}", {})
    assert answer.status == 200
    answer = await talk("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_a_collection_is_deleted_by_the_options_of_a_body(talk: Talk) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    await talk("DELETE", f"{CONFIGMAPS}?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1"})
    answer = await talk("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_nothing_has_a_version_before_it_is_created_but_in_a_dry_run(talk: Talk) -> None:
    for query, status in (("", 500), ("?dryRun=All", 201)):
        answer = await talk("POST", f"{CONFIGMAPS}{query}", {"metadata": {"name": "a", "resourceVersion": "7"}})
        assert answer.status == status
