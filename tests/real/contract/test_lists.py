"""Lists: versions, pages, selectors, invalid parameters."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.real.contract.conversation import MERGE_PATCH, PARTIAL_LIST
from tests.real.contract.paths import CONFIGMAPS, PODS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

# Values of each parameter. At {v} there were two of the three objects; {token} continues after the first.
VERSIONS = {"none": "", "zero": "&resourceVersion=0", "old": "&resourceVersion={v}", "word": "&resourceVersion=abc"}
MATCHES = {
    "none": "",
    "exact": "&resourceVersionMatch=Exact",
    "newer": "&resourceVersionMatch=NotOlderThan",
    "other": "&resourceVersionMatch=Foo",
}
LIMITS = {"all": "", "limit": "&limit=1"}
TOKENS = {"start": "", "token": "&continue={token}"}
INITIAL = {"list": "", "initial": "&sendInitialEvents=true"}
COMBINATIONS = {
    "-".join(names): "".join(queries).removeprefix("&")
    for combination in product(VERSIONS.items(), MATCHES.items(), LIMITS.items(), TOKENS.items(), INITIAL.items())
    for names, queries in [zip(*combination, strict=True)]
}
PARAMETERS = {
    "empty-version": "resourceVersion=",
    "negative-version": "resourceVersion=-1",
    "version-with-a-zero": "resourceVersion=01",
    "version-in-parts": "resourceVersion=1.5",
    "huge-version": "resourceVersion=18446744073709551616",
    "two-versions": "resourceVersion=0&resourceVersion=abc",
    "empty-match": "resourceVersionMatch=",
    "match-in-lower-case": "resourceVersionMatch=exact",
    "empty-limit": "limit=",
    "no-limit": "limit=0",
    "negative-limit": "limit=-1",
    "word-as-limit": "limit=abc",
    "limit-in-parts": "limit=1.5",
    "huge-limit": "limit=9223372036854775808",
    "just-enough": "limit=3",
    "more-than-enough": "limit=4",
    "empty-token": "continue=",
    "short-token": "continue=abc",
    "token-of-stars": "continue=***",
    "token-of-nothing": "continue=e30",
    "token-of-a-list": "continue=W10",
    "token-without-version": "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
    "token-of-another-form": "continue=eyJ2IjoidjIiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "token-of-no-moment": "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9",
    "token-of-elsewhere": "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYSJ9",
    "no-initial-events": "sendInitialEvents=false",
    "empty-initial-events": "sendInitialEvents=",
    "word-as-initial-events": "sendInitialEvents=abc",
    "bookmarks": "allowWatchBookmarks=true",
    "word-as-bookmarks": "allowWatchBookmarks=abc",
    "timeout": "timeoutSeconds=10",
    "word-as-timeout": "timeoutSeconds=abc",
    "negative-timeout": "timeoutSeconds=-1",
    "no-watch": "watch=false",
    "watch-0": "watch=0",
    "unknown": "unknown=1",
}
LABELS = {
    "empty": "",
    "name": "n",
    "no-name": "!n",
    "equal": "n=1",
    "equal-twice": "n==1",
    "unequal": "n!=1",
    "in": "n in (1,2)",
    "not-in": "n notin (1,2)",
    "in-nothing": "n in ()",
    "greater": "n>1",
    "less": "n<2",
    "greater-than-a-word": "n>x",
    "two": "n=1,odd=1",
    "contradiction": "n=1,n=2",
    "equal-and-none": "odd=1,!m",
    "empty-value": "n=",
    "in-with-empty": "n in (,1)",
    "unequal-to-absent": "m!=x",
    "two-words": "a b",
    "no-key": "=1",
    "comma-last": "n=1,",
    "comma-first": ",n=1",
    "value-of-two-words": "n=a b",
    "in-without-parenthesis": "n in 1",
    "in-unclosed": "n in (1",
    "not-in-at-the-end": "n notin",
    "mark-alone": "!",
    "mark-and-value": "!n=1",
    "dash-first": "-n=1",
    "dash-in-value": "n=-1",
    "long-value": "n=" + "x" * 64,
    "long-name": "x" * 64 + "=1",
    "two-slashes": "a/b/c=1",
    "slash-first": "/n=1",
    "all-signs": "N_x.y-z=1",
    "prefix": "example.com/n=1",
    "prefix-in-capitals": "Example.com/n=1",
    "blanks": "n = 1",
    "at-sign": "n@1",
    "letter-with-dots": "n=ä",
    "parentheses": "(n=1)",
    "or": "n=1 or n=2",
}
FIELDS = {
    "empty": "",
    "name": "metadata.name=b",
    "equal-twice": "metadata.name==b",
    "unequal": "metadata.name!=b",
    "contradiction": "metadata.name=b,metadata.name=c",
    "two": "metadata.name!=b,metadata.name!=c",
    "empty-value": "metadata.name=",
    "no-operator": "metadata.name",
    "two-operators": "metadata.name=b=c",
    "comma-last": "metadata.name=b,",
    "comma-first": ",metadata.name=b",
    "escaped-comma": "metadata.name=b\\,c",
    "bad-escape": "metadata.name=b\\x",
    "set": "metadata.name in (b)",
    "absent": "!metadata.name",
    "other-namespace": "metadata.namespace=default",
    "not-other-namespace": "metadata.namespace!=default",
    "uid": "metadata.uid=x",
    "label": "metadata.labels.n=1",
    "name-alone": "name=b",
    "data": "data.k=v",
    "no-path": "=b",
    "blank-first": " metadata.name=b",
    "blanks": "metadata.name = b",
}


@variants("query", COMBINATIONS)
async def test_version_match_limit_and_continue_together(api: Conversation, query: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?{query}")
    assert answer.status in (200, 400, 410, 422)


@variants("query", PARAMETERS)
async def test_parameter_values(api: Conversation, query: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?{query}")
    assert answer.status in (200, 400, 422)


@variants("selector", LABELS)
async def test_label_selectors(api: Conversation, selector: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?labelSelector={quote(selector, safe='')}")
    assert answer.status in (200, 400)


@variants("selector", FIELDS)
async def test_field_selectors(api: Conversation, selector: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?fieldSelector={quote(selector, safe='')}")
    assert answer.status in (200, 400)


@pytest.mark.conformance("FK-03")
@pytest.mark.parametrize("query", ["", "&resourceVersion=0", "&labelSelector=odd%3D1"], ids=["all", "zero", "labels"])
async def test_pages_show_the_snapshot_of_the_first_page(api: Conversation, query: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?limit=1{query}")
    await api("DELETE", f"{CONFIGMAPS}/b", recorded=False)
    await api.create(CONFIGMAPS, {"metadata": {"name": "bb"}})
    page = await api("GET", f"{CONFIGMAPS}?limit=1&continue={{token}}{query.replace('&resourceVersion=0', '')}")
    rest = await api("GET", f"{CONFIGMAPS}?continue={{token}}{query.replace('&resourceVersion=0', '')}")
    assert page.metadata["resourceVersion"] == rest.metadata["resourceVersion"]


async def test_exact_version_lists_the_past(api: Conversation) -> None:
    await create_three(api)
    await api("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, content_type=MERGE_PATCH, recorded=False)
    await api("DELETE", f"{CONFIGMAPS}/b", recorded=False)
    answer = await api("GET", f"{CONFIGMAPS}?resourceVersion={{v}}&resourceVersionMatch=Exact")
    assert answer.metadata["resourceVersion"] == api.variables["v"]


@pytest.mark.parametrize("match", ["NotOlderThan", "Exact", ""])
async def test_future_version_is_too_large(api: Conversation, match: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?resourceVersion=999999999&resourceVersionMatch={match}")
    assert answer.status == 504


async def test_cluster_wide_list_narrowed_to_one_namespace(api: Conversation) -> None:
    await create_three(api)
    answer = await api("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3D{ns}")
    assert len(answer.body["items"]) == 3


async def test_missing_namespace_lists_nothing(api: Conversation) -> None:
    answer = await api("GET", "/api/v1/namespaces/{ns}-none/configmaps")
    assert answer.body["items"] == []


READS = {
    "any": "a",
    "zero": "a?resourceVersion=0",
    "old": "a?resourceVersion={v}",
    "future": "a?resourceVersion=999999999",
    "word": "a?resourceVersion=abc",
    "negative": "a?resourceVersion=-1",
    "missing": "missing",
    "missing-zero": "missing?resourceVersion=0",
    "other-parameters": "a?labelSelector=n%3D2&fieldSelector=x&limit=abc",
}


@variants("path", READS)
async def test_get_one_object(api: Conversation, path: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}/{path}")
    assert answer.status in (200, 404, 500, 504)


POD_FIELDS = {
    "node": "spec.nodeName=n",
    "no-node": "spec.nodeName=",
    "phase": "status.phase=Pending",
    "policy": "spec.restartPolicy!=Never",
    "scheduler": "spec.schedulerName=default-scheduler",
    "network": "spec.hostNetwork=false",
    "address": "status.podIP=",
    "two": "status.phase=Pending,spec.nodeName=n",
    "image": "spec.containers=x",
    "label": "metadata.labels.a=b",
}


@variants("selector", POD_FIELDS)
async def test_pod_field_selectors(api: Conversation, selector: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    await api.create(PODS, {"metadata": {"name": "b"}, "spec": spec | {"nodeName": "n", "restartPolicy": "Never"}})
    answer = await api("GET", f"{PODS}?fieldSelector={quote(selector, safe='')}", accept=PARTIAL_LIST)
    assert answer.status in (200, 400)


async def create_three(api: Conversation) -> None:
    """Create three objects. Set {v} to the version of the second, and {token} to continue after the first."""
    made = [
        await api.create(CONFIGMAPS, {"metadata": {"name": name, "labels": {"n": str(n), "odd": str(n % 2)}}})
        for n, name in enumerate("abc", 1)
    ]
    listed = await api("GET", f"{CONFIGMAPS}?limit=1", recorded=False)
    api.variables["v"] = made[1]["metadata"]["resourceVersion"]
    api.variables["token"] = listed.metadata["continue"]
