"""Events in the core group and in events.k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.real.contract.conversation import MERGE_PATCH, PARTIAL, PARTIAL_LIST, TABLE
from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

CORE = "/api/v1/namespaces/{ns}/events"
NEWER = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
BOTH = {"core": CORE, "newer": NEWER}
EARLIER, LATER = "2024-05-01T10:00:00Z", "2024-05-01T10:05:00Z"
MOMENT = "2024-05-01T10:00:00.123456Z"


def old_event(api: Conversation, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Return an event of the core group."""
    involved = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u"}
    return {
        "metadata": {"name": name, "labels": {"n": name}},
        "involvedObject": involved | {"fieldPath": "spec.containers{c}", "resourceVersion": "5"},
        "reason": "Killing",
        "message": "Stopping container c",
        "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": EARLIER,
        "lastTimestamp": LATER,
        "count": 3,
        "type": "Normal",
        **fields,
    }


def new_event(api: Conversation, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Return an event of events.k8s.io."""
    return {
        "metadata": {"name": name, "labels": {"n": name}},
        "eventTime": MOMENT,
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-1",
        "action": "Stop",
        "reason": "Stopped",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        "note": "Stopped container c",
        "type": "Warning",
        **fields,
    }


@variants("where", BOTH)
async def test_event_is_served_in_both_groups(api: Conversation, where: str) -> None:
    event = old_event(api) if where == CORE else new_event(api, series={"count": 2, "lastObservedTime": MOMENT})
    await api("POST", where, event)
    core = await api("GET", f"{CORE}/a")
    newer = await api("GET", f"{NEWER}/a")
    assert (core.body["message"], core.body["metadata"]["uid"]) == (newer.body["note"], newer.body["metadata"]["uid"])


@variants("where", BOTH)
async def test_minimal_event_is_accepted(api: Conversation, where: str) -> None:
    little = {"involvedObject": {"namespace": api.namespace}} if where == CORE else new_event(api)
    little.pop("related", None)
    await api("POST", where, {**little, "metadata": {"generateName": "e-"}})
    await api("GET", CORE)
    answer = await api("GET", NEWER)
    assert len(answer.body["items"]) == 1


async def test_list_contains_events_of_both_groups(api: Conversation) -> None:
    await create_two(api)
    core, newer = [await api("GET", each) for each in (CORE, NEWER)]
    assert len(core.body["items"]) == len(newer.body["items"]) == 2


async def test_continue_token_works_in_the_other_group(api: Conversation) -> None:
    await create_two(api)
    page = await api("GET", f"{CORE}?limit=1")
    api.variables["token"] = page.metadata["continue"]
    answer = await api("GET", f"{NEWER}?limit=1&continue={{token}}")
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["b"]


@variants("where", BOTH)
async def test_watch_in_either_group(api: Conversation, where: str) -> None:
    made = await api.create(CORE, old_event(api))
    api.variables["v"] = made["metadata"]["resourceVersion"]
    await api.create(NEWER, new_event(api, "b"))
    await api("PATCH", f"{CORE}/a", {"count": 4}, content_type=MERGE_PATCH, recorded=False)
    await api("DELETE", f"{NEWER}/a", recorded=False)
    await api("DELETE", f"{CORE}/b", recorded=False)
    answer = await api.watch(f"{where}?watch=true&resourceVersion={{v}}", events=4)
    assert [event["type"] for event in answer.body] == ["ADDED", "MODIFIED", "DELETED", "DELETED"]


@pytest.mark.parametrize("accept", [TABLE, PARTIAL_LIST], ids=["table", "metadata"])
@variants("where", BOTH)
async def test_list_as_table_and_metadata(api: Conversation, where: str, accept: str) -> None:
    await create_two(api)
    answer = await api("GET", where, accept=accept)
    assert answer.status == 200


@pytest.mark.parametrize("accept", [TABLE, PARTIAL], ids=["table", "metadata"])
@variants("where", BOTH)
async def test_watch_as_table_and_metadata(api: Conversation, where: str, accept: str) -> None:
    await create_two(api)
    streaming = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await api.watch(f"{where}?{streaming}", accept=accept, events=3)
    assert answer.status == 200


@variants("where", BOTH)
async def test_delete_in_either_group(api: Conversation, where: str) -> None:
    await create_two(api)
    await api("DELETE", f"{where}/a")
    await api("DELETE", f"{where}/b")
    answer = await api("GET", f"{NEWER if where == CORE else CORE}/a")
    assert answer.status == 404


@variants("where", BOTH)
async def test_deletecollection_in_either_group(api: Conversation, where: str) -> None:
    await create_two(api)
    await api("DELETE", where)
    answer = await api("GET", NEWER if where == CORE else CORE)
    assert answer.body["items"] == []


@variants("where", BOTH)
async def test_name_is_taken_in_both_groups(api: Conversation, where: str) -> None:
    await create_two(api)
    event = new_event(api) if where == NEWER else old_event(api)
    answer = await api("POST", where, event)
    assert answer.status == 409


@variants("where", BOTH)
async def test_put_creates_an_event(api: Conversation, where: str) -> None:
    event = new_event(api) if where == NEWER else old_event(api)
    answer = await api("PUT", f"{where}/a", event)
    assert answer.status == 201


FIELDS = {
    "kind": "involvedObject.kind=Pod",
    "namespace": "involvedObject.namespace={ns}",
    "name": "involvedObject.name=q",
    "uid": "involvedObject.uid!=u",
    "version": "involvedObject.apiVersion=v1",
    "resource-version": "involvedObject.resourceVersion=5",
    "path": "involvedObject.fieldPath=spec.containers{c}",
    "reason": "reason=Killing",
    "reporter": "reportingComponent=example.com/controller",
    "source": "source=kubelet",
    "source-that-reports": "source=example.com/controller",
    "type": "type!=Normal",
    "two": "involvedObject.name=p,type=Warning",
    "own-name": "metadata.name=b",
    "regarding": "regarding.name=q",
    "regarding-kind": "regarding.kind=Pod",
    "regarding-path": "regarding.fieldPath!=",
    "controller": "reportingController=example.com/controller",
    "message": "message=x",
    "note": "note=x",
    "old-source": "deprecatedSource.component=kubelet",
    "related": "related.name=n",
}


@variants("selector", FIELDS)
@variants("where", BOTH)
async def test_field_selectors(api: Conversation, where: str, selector: str) -> None:
    await create_two(api)
    await api.create(CORE, old_event(api, "c", involvedObject={"name": "q", "namespace": api.namespace}))
    answer = await api("GET", f"{where}?fieldSelector={quote(selector, safe='{}')}", accept=PARTIAL_LIST)
    assert answer.status in (200, 400)


@variants("where", BOTH)
async def test_watch_selector_transitions_in_either_group(api: Conversation, where: str) -> None:
    made = await api.create(CORE, old_event(api))
    api.variables["v"] = made["metadata"]["resourceVersion"]
    for kind in ("Warning", "Normal"):
        await api("PATCH", f"{CORE}/a", {"type": kind}, content_type=MERGE_PATCH, recorded=False)
    answer = await api.watch(f"{where}?watch=true&resourceVersion={{v}}&fieldSelector=type%3DNormal", events=2)
    assert [event["type"] for event in answer.body] == ["DELETED", "ADDED"]


ANNOTATIONS = {
    "key": {"metadata": {"annotations": {"a b": "c"}}},
    "upper-case-key": {"metadata": {"annotations": {"A/b": "c"}}},
    "long": {"metadata": {"annotations": {"a": "x" * 262_144}}},
    "label": {"metadata": {"labels": {"a b": "c"}}},
    "finalizer": {"metadata": {"finalizers": ["x"]}},
    "owner": {"metadata": {"ownerReferences": [{"kind": "Pod", "name": "p"}]}},
    "name-and-series": {"metadata": {"annotations": {"a b": "c"}}, "series": {"count": 1}},
}


@variants("change", ANNOTATIONS)
@variants("where", BOTH)
async def test_metadata_is_validated_on_update(api: Conversation, where: str, change: dict[str, Any]) -> None:
    await api.create(where, old_event(api) if where == CORE else new_event(api))
    answer = await api("PATCH", f"{where}/a", change, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)


async def test_event_cannot_be_an_owner(api: Conversation) -> None:
    owner = {"kind": "Event", "name": "x", "uid": "x"}
    owners = [owner | {"apiVersion": version} for version in ("v1", "events.k8s.io/v1")]
    answer = await api("POST", CONFIGMAPS, {"metadata": {"name": "c", "ownerReferences": owners}})
    assert answer.status == 422


async def create_two(api: Conversation) -> None:
    """Create an event in each group: "a" in the core group, "b" in events.k8s.io."""
    await api.create(CORE, old_event(api))
    await api.create(NEWER, new_event(api, "b"))
