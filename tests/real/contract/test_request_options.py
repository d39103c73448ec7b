"""Options in query and body, and dry runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

QUERIES = {
    "dry-run": "dryRun=All",
    "unknown-dry-run": "dryRun=x",
    "policy": "propagationPolicy=x",
    "orphans": "orphanDependents=true&propagationPolicy=Orphan",
}


@variants("query", QUERIES)
async def test_delete_with_a_body_ignores_query_options(api: Conversation, query: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("DELETE", f"{CONFIGMAPS}/a?{query}", {})
    assert answer.status == 200
    answer = await api("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_deletecollection_takes_options_from_the_body(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    await api("DELETE", f"{CONFIGMAPS}?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1"})
    answer = await api("GET", f"{CONFIGMAPS}/a")
    assert answer.status == 404


async def test_create_with_a_resource_version_is_refused(api: Conversation) -> None:
    for query, status in (("", 500), ("?dryRun=All", 201)):
        answer = await api("POST", f"{CONFIGMAPS}{query}", {"metadata": {"name": "a", "resourceVersion": "7"}})
        assert answer.status == status
