"""Watches: start, events, invalid parameters."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH, PARTIAL, TABLE
from tests.real.contract.tables import CONFIGMAPS, PODS, variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
# Values of each parameter. At {v} there was one of the two objects.
VERSIONS = {
    "none": "",
    "zero": "&resourceVersion=0",
    "old": "&resourceVersion={v}",
}
MATCHES = {
    "none": "",
    "exact": "&resourceVersionMatch=Exact",
    "newer": "&resourceVersionMatch=NotOlderThan",
}
INITIAL = {"none": "", "initial": "&sendInitialEvents=true", "later": "&sendInitialEvents=false"}
BOOKMARKS = {"none": "", "bookmarks": "&allowWatchBookmarks=true"}
COMBINATIONS = {
    "-".join(names): "".join(queries)
    for combination in product(VERSIONS.items(), MATCHES.items(), INITIAL.items(), BOOKMARKS.items())
    for names, queries in [zip(*combination, strict=True)]
}
PARAMETERS = {
    "word-as-limit": "limit=abc",
    "word-as-timeout": "timeoutSeconds=abc",
    "labels": "labelSelector=!n",
    "name": "fieldSelector=metadata.name!=b",
    "bad-field": "fieldSelector=data.k=v",
}


@variants("query", COMBINATIONS)
async def test_version_match_and_initial_events_together(api: Conversation, query: str) -> None:
    await create_two(api)
    await follow(api, f"{CONFIGMAPS}?watch=true{query}")


@variants("query", PARAMETERS)
async def test_parameter_values(api: Conversation, query: str) -> None:
    await create_two(api)
    await follow(api, f"{CONFIGMAPS}?watch=true&{query}")


@pytest.mark.conformance("FK-03", "FK-04")
async def test_events_are_delivered_in_order(api: Conversation) -> None:
    made = await api.create(CONFIGMAPS, configmap("a"))
    await api("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    await api("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    await api("DELETE", A)
    await api.create(CONFIGMAPS, configmap("a"))
    answer = await api.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={version(api, made)}", events=3)
    assert kinds(answer.body) == ["MODIFIED", "DELETED", "ADDED"]


async def test_finalized_deletion_is_modified_then_deleted(api: Conversation) -> None:
    made = await api.create(CONFIGMAPS, configmap("a", finalizers=["example.com/hold"]))
    await api("DELETE", A)
    await api("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    answer = await api.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={version(api, made)}", events=2)
    assert kinds(answer.body) == ["MODIFIED", "DELETED"]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_selector_transitions_become_deleted_and_added(api: Conversation) -> None:
    made = await api.create(CONFIGMAPS, configmap("a", labels={"on": "1"}))
    for labels in ({"on": "0"}, {"other": "x"}, {"on": "1"}, {"other": "y"}):
        await api("PATCH", A, {"metadata": {"labels": labels}}, content_type=MERGE_PATCH)
    query = f"watch=true&labelSelector=on%3D1&resourceVersion={version(api, made)}"
    answer = await api.watch(f"{CONFIGMAPS}?{query}", events=3)
    assert kinds(answer.body) == ["DELETED", "ADDED", "MODIFIED"]


@pytest.mark.parametrize("query", ["", "&resourceVersion=0", "&resourceVersion={v}"], ids=["none", "zero", "old"])
async def test_watch_by_name(api: Conversation, query: str) -> None:
    await create_two(api)
    path = f"{CONFIGMAPS}?watch=true&fieldSelector=metadata.name%3Db{query}"
    async with api.open_watch(path) as watch:
        await watch.read()
        await api("DELETE", f"{CONFIGMAPS}/a", recorded=False)
        await api("DELETE", f"{CONFIGMAPS}/b", recorded=False)
        await watch.read()
    assert kinds(watch.events) == ["ADDED", "DELETED"]


async def test_pod_watch_by_phase(api: Conversation) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    for phase in ("Running", "Succeeded"):
        await api("PATCH", f"{PODS}/a/status", {"status": {"phase": phase}}, content_type=MERGE_PATCH)
    query = f"watch=true&fieldSelector=status.phase%3DRunning&resourceVersion={version(api, made)}"
    answer = await api.watch(f"{PODS}?{query}", events=2)
    assert kinds(answer.body) == ["ADDED", "DELETED"]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_streaming_list_ends_with_an_annotated_bookmark(api: Conversation) -> None:
    await create_two(api)
    answer = await api.watch(f"{CONFIGMAPS}?{STREAMING}", events=3)
    assert answer.body[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_streaming_list_with_a_selector(api: Conversation) -> None:
    await create_two(api)
    answer = await api.watch(f"{CONFIGMAPS}?{STREAMING}&labelSelector=n%3D2", events=2)
    assert kinds(answer.body) == ["ADDED", "BOOKMARK"]


async def test_watch_ends_at_timeout_seconds(api: Conversation) -> None:
    await create_two(api)
    answer = await api.watch(f"{CONFIGMAPS}?watch=true&timeoutSeconds=1")
    assert len(answer.body) == 2


async def test_streaming_list_at_a_future_version_fails(api: Conversation) -> None:
    await api.watch(f"{CONFIGMAPS}?{STREAMING}&resourceVersion=999999999", events=1)


@variants(
    "accept",
    {
        "partial": PARTIAL,
        "table": TABLE,
        "yaml": "application/yaml",
    },
)
async def test_accept_header_selects_the_representation(api: Conversation, accept: str) -> None:
    await create_two(api)
    await api.watch(f"{CONFIGMAPS}?{STREAMING}", accept=accept, events=3)


STREAMING = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


def configmap(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def kinds(events: list[Any]) -> list[str]:
    return [event["type"] for event in events]


def version(api: Conversation, obj: dict[str, Any]) -> str:
    """Set {v} to the version of an object, and return the placeholder for paths."""
    api.variables["v"] = obj["metadata"]["resourceVersion"]
    return "{v}"


async def create_two(api: Conversation) -> None:
    """Create two objects, and set {v} to the version of the first."""
    version(api, await api.create(CONFIGMAPS, configmap("a", labels={"n": "1"})))
    await api.create(CONFIGMAPS, configmap("b", labels={"n": "2"}))


async def follow(api: Conversation, path: str) -> None:
    """Watch, create "z" once the watch is open, and read up to its event."""
    async with api.open_watch(path) as watch:
        if "sendInitialEvents=true" in path and "allowWatchBookmarks" in path:
            await watch.read_until(lambda event: event.get("type") in (None, "BOOKMARK", "ERROR"))
        await api.create(CONFIGMAPS, configmap("z"))
        await watch.read_until(lambda event: event.get("type") in (None, "ERROR") or named(event) == "z")


def named(event: Any) -> str:
    name: str = event["object"]["metadata"].get("name", "")
    return name
