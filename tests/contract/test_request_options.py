"""Options in query and body, and dry runs."""

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
async def test_delete_with_a_body_ignores_query_options(talk: Talk, query: str) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk("DELETE", f"{CONFIGMAPS}/a?{query}", {})
    assert answer.status == 200
    answer = await talk("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_deletecollection_takes_options_from_the_body(talk: Talk) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    await talk("DELETE", f"{CONFIGMAPS}?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1"})
    answer = await talk("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_create_with_a_resource_version_is_refused(talk: Talk) -> None:
    for query, status in (("", 500), ("?dryRun=All", 201)):
        answer = await talk("POST", f"{CONFIGMAPS}{query}", {"metadata": {"name": "a", "resourceVersion": "7"}})
        assert answer.status == status
