"""Events in the core group and in events.k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH, PARTIAL, PARTIAL_LIST, STRATEGIC, TABLE
from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

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


async def test_put_replaces_the_whole_event(api: Conversation) -> None:
    await api.create(CORE, old_event(api))
    newer = await api("GET", f"{NEWER}/a", recorded=False)
    changed = newer.body | {"series": {"count": 5, "lastObservedTime": MOMENT}}
    await api("PUT", f"{NEWER}/a", changed)
    answer = await api("GET", f"{CORE}/a")
    assert answer.body["series"]["count"] == 5


async def test_put_in_one_group_drops_owners_of_the_other(api: Conversation) -> None:
    await api.create(CORE, old_event(api))
    newer = await api("GET", f"{NEWER}/a", recorded=False)
    await api("PUT", f"{NEWER}/a", newer.body)
    answer = await api("PUT", f"{NEWER}/a", newer.body | {"metadata": {"name": "a", "labels": {"n": "a"}}})
    assert "managedFields" not in answer.metadata


PATCHES = {
    "merge": (MERGE_PATCH, {"series": {"count": 9, "lastObservedTime": MOMENT}}),
    "strategic": (STRATEGIC, {"series": {"count": 9, "lastObservedTime": MOMENT}}),
    "json": (JSON_PATCH, [{"op": "add", "path": "/series", "value": {"count": 9, "lastObservedTime": MOMENT}}]),
    "labels": (MERGE_PATCH, {"metadata": {"labels": {"m": "1"}}}),
}


@variants("patch", PATCHES)
@variants("where", BOTH)
async def test_patch_in_either_group(api: Conversation, where: str, patch: tuple[str, Any]) -> None:
    await create_two(api)
    kind, body = patch
    for name in "ab":
        await api("PATCH", f"{where}/{name}", body, content_type=kind)
    answer = await api("GET", NEWER if where == CORE else CORE)
    assert answer.status == 200


@variants("where", BOTH)
async def test_field_owner_is_recorded_in_its_group(api: Conversation, where: str) -> None:
    await api.create(CORE, old_event(api))
    other = NEWER if where == CORE else CORE
    series = {"series": {"count": 2, "lastObservedTime": MOMENT}}
    await api("PATCH", f"{other}/a?fieldManager=other", series, content_type=MERGE_PATCH)
    answer = await api("PATCH", f"{CORE}/a?fieldManager=third", {"count": 7, "series": None}, content_type=MERGE_PATCH)
    assert answer.status == 200


async def test_apply_conflicts_with_the_owner_in_the_other_group(api: Conversation) -> None:
    named = {"apiVersion": "events.k8s.io/v1", "kind": "Event", **new_event(api)}
    await api("PATCH", f"{NEWER}/a?fieldManager=one", named, content_type=APPLY)
    config = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "message": "other"}
    await api("PATCH", f"{CORE}/a?fieldManager=two", config, content_type=APPLY)
    answer = await api("PATCH", f"{CORE}/a?fieldManager=two&force=true", config, content_type=APPLY)
    assert answer.body["message"] == "other"


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


LONG = "x" * 129
WRONG: dict[str, dict[str, Any]] = {
    "no-time": {"eventTime": None},
    "no-controller": {"reportingController": ""},
    "controller-of-words": {"reportingController": "a b"},
    "long-controller": {"reportingController": "x" * 64},
    "no-instance": {"reportingInstance": ""},
    "long-instance": {"reportingInstance": LONG},
    "no-action": {"action": ""},
    "long-action": {"action": LONG},
    "no-reason": {"reason": ""},
    "long-reason": {"reason": LONG},
    "long-note": {"note": "x" * 1025},
    "no-type": {"type": ""},
    "other-type": {"type": "Error"},
    "series-of-one": {"series": {"count": 1, "lastObservedTime": MOMENT}},
    "series-without-time": {"series": {"count": 2}},
    "first-time": {"deprecatedFirstTimestamp": EARLIER},
    "last-time": {"deprecatedLastTimestamp": LATER},
    "count": {"deprecatedCount": 1},
    "source": {"deprecatedSource": {"component": "c"}},
    "no-regarding": {"regarding": None},
    "regarding-elsewhere": {"regarding": {"kind": "Pod", "name": "p", "namespace": "other"}},
    "words-of-core": {"message": "x", "involvedObject": {"name": "x"}, "reportingComponent": "x"},
    "time-of-seconds": {"eventTime": EARLIER},
    "time-of-nanoseconds": {"eventTime": "2024-05-01T10:00:00.123456789Z"},
    "time-of-words": {"eventTime": "yesterday"},
    "name": {"metadata": {"name": "A_b"}},
    "path-name": {"metadata": {"name": "a/b"}},
    "everything": {"eventTime": None, "type": "", "regarding": None, "series": {}, "deprecatedCount": 2},
}


@variants("wrong", WRONG)
async def test_new_group_validates_events(api: Conversation, wrong: dict[str, Any]) -> None:
    answer = await api("POST", NEWER, new_event(api, **wrong))
    assert answer.status in (201, 400, 422)


WRONG_IN_CORE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "involved-elsewhere": {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"}},
    "no-involved": {"involvedObject": {"kind": "Node", "name": "n"}},
    "no-reason": {"reason": ""},
    "long-reason": {"reason": LONG},
    "other-type": {"type": "Error"},
    "series-of-one": {"series": {"count": 1, "lastObservedTime": MOMENT}},
    "time-alone": {"eventTime": MOMENT},
    "time-and-reporter": {"eventTime": MOMENT, "reportingComponent": "a b", "reportingInstance": "i", "action": "A"},
    "time-and-all": {"eventTime": MOMENT, "reportingComponent": "c", "reportingInstance": "i", "action": LONG},
    "words-of-newer": {"note": "x", "regarding": {"name": "x"}, "reportingController": "x"},
    "name": {"metadata": {"name": "A_b"}},
}


@variants("wrong", WRONG_IN_CORE)
async def test_core_group_validates_less(api: Conversation, wrong: dict[str, Any]) -> None:
    answer = await api("POST", CORE, old_event(api, **wrong))
    assert answer.status in (201, 400, 422)


CHANGES: dict[str, dict[str, Any]] = {
    "series": {"series": {"count": 1}},
    "regarding": {"regarding": {"name": "other"}},
    "reason": {"reason": "Other"},
    "note": {"note": "other"},
    "source": {"deprecatedSource": {"host": "h"}},
    "first": {"deprecatedFirstTimestamp": EARLIER},
    "last": {"deprecatedLastTimestamp": LATER},
    "count": {"deprecatedCount": 5},
    "type": {"type": "Normal"},
    "time": {"eventTime": "2024-05-01T10:00:00.123457Z"},
    "time-below-microseconds": {"eventTime": "2024-05-01T10:00:00.123456789Z"},
    "no-time": {"eventTime": None},
    "action": {"action": "Other"},
    "related": {"related": {"name": "m"}},
    "no-related": {"related": None},
    "controller": {"reportingController": "other"},
    "instance": {"reportingInstance": "other"},
    "annotations": {"metadata": {"annotations": {"a": "b"}}},
}


@variants("change", CHANGES)
async def test_new_group_makes_most_fields_immutable(api: Conversation, change: dict[str, Any]) -> None:
    await api.create(NEWER, new_event(api))
    answer = await api("PATCH", f"{NEWER}/a", change, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)


@variants("change", {"note": {"message": "other"}, "reason": {"reason": ""}, "series": {"series": {"count": 1}}})
async def test_core_group_allows_updates(api: Conversation, change: dict[str, Any]) -> None:
    await api.create(NEWER, new_event(api))
    answer = await api("PATCH", f"{CORE}/a", change, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)


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
