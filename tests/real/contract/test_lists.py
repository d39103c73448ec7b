"""Lists: versions, pages, selectors, invalid parameters, compacted versions, expired continue tokens."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH, PARTIAL_LIST, TABLE
from tests.real.contract.tables import CONFIGMAPS, PODS, variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation
    from tests.real.contract.servers import Operator


# Values of each parameter. At {v} there were two of the three objects; {token} continues after the first.
VERSIONS = {"none": "", "zero": "&resourceVersion=0", "old": "&resourceVersion={v}"}
MATCHES = {
    "none": "",
    "exact": "&resourceVersionMatch=Exact",
    "newer": "&resourceVersionMatch=NotOlderThan",
}
LIMITS = {"all": "", "limit": "&limit=1"}
CONTINUED = {"start": "", "token": "&continue={token}"}
INITIAL = {"list": "", "initial": "&sendInitialEvents=true"}
COMBINATIONS = {
    "-".join(names): "".join(queries).removeprefix("&")
    for combination in product(VERSIONS.items(), MATCHES.items(), LIMITS.items(), CONTINUED.items(), INITIAL.items())
    for names, queries in [zip(*combination, strict=True)]
}
PARAMETERS = {
    "negative-version": "resourceVersion=-1",
    "word-as-limit": "limit=abc",
    "timeout": "timeoutSeconds=10",
}
LABELS = {
    "name": "n",
    "equal": "n=1",
    "unequal": "n!=1",
    "in": "n in (1,2)",
    "not-in": "n notin (1,2)",
    "in-nothing": "n in ()",
    "not-in-nothing": "n notin ()",
    "greater": "n>1",
    "two": "n=1,odd=1",
    "no-key": "=1",
}
FIELDS = {
    "name": "metadata.name=b",
    "unequal": "metadata.name!=b",
    "other-namespace": "metadata.namespace=default",
    "uid": "metadata.uid=x",
    "data": "data.k=v",
}


@variants("query", COMBINATIONS)
async def test_version_match_limit_and_continue_together(api: Conversation, query: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?{query}")


@variants("query", PARAMETERS)
async def test_parameter_values(api: Conversation, query: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?{query}")


@variants("selector", LABELS)
async def test_label_selectors(api: Conversation, selector: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?labelSelector={quote(selector, safe='')}")


@variants("selector", FIELDS)
async def test_field_selectors(api: Conversation, selector: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?fieldSelector={quote(selector, safe='')}")


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


READS = {
    "any": "a",
    "future": "a?resourceVersion=999999999",
    "missing": "missing",
}


@variants("path", READS)
async def test_get_one_object(api: Conversation, path: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}/{path}")


POD_FIELDS = {
    "node": "spec.nodeName=n",
    "phase": "status.phase=Pending",
    "policy": "spec.restartPolicy!=Never",
}


@variants("selector", POD_FIELDS)
async def test_pod_field_selectors(api: Conversation, selector: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    await api.create(PODS, {"metadata": {"name": "b"}, "spec": spec | {"nodeName": "n", "restartPolicy": "Never"}})
    await api("GET", f"{PODS}?fieldSelector={quote(selector, safe='')}", accept=PARTIAL_LIST)


async def create_three(api: Conversation, *, numbered: bool = True) -> None:
    """Create three objects. Set {v} to the version of the second, and {token} to continue after the first."""
    made = [
        await api.create(
            CONFIGMAPS,
            {"metadata": {"name": name, "labels": {"odd": str(n % 2)} | ({"n": str(n)} if numbered else {})}},
        )
        for n, name in enumerate("abc", 1)
    ]
    listed = await api("GET", f"{CONFIGMAPS}?limit=1", recorded=False)
    api.variables["v"] = made[1]["metadata"]["resourceVersion"]
    api.variables["token"] = listed.metadata["continue"]


def token(**content: Any) -> str:
    """Return a continue token in the form of kube-apiserver."""
    text = json.dumps({"v": "meta.k8s.io/v1", **content}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


FORMS = {"json": JSON, "table": TABLE, "metadata": PARTIAL_LIST}


async def test_expired_continue_token_returns_a_new_token(api: Conversation, operator: Operator) -> None:
    await expire_token(api, operator)
    for accept in FORMS.values():
        answer = await api("GET", f"{CONFIGMAPS}?limit=1&continue={{token}}", accept=accept)
        assert answer.status == 410


QUERIES = ("", "&limit=1", "&labelSelector=odd%3D1&limit=1", "&fieldSelector=metadata.name%21%3Dc&limit=1")


async def test_new_continue_token_lists_from_current_state(api: Conversation, operator: Operator) -> None:
    refusal = await expire_token(api, operator)
    for query in QUERIES:
        answer = refusal
        while following := answer.metadata.get("continue"):
            api.variables["token"] = following
            answer = await api("GET", f"{CONFIGMAPS}?continue={{token}}{query}")
        assert answer.status == 200


OLD = ("resourceVersionMatch=Exact", "limit=1", "limit=1&labelSelector=odd%3D1")


async def test_list_at_a_compacted_version_is_410(api: Conversation, operator: Operator) -> None:
    await expire_token(api, operator)
    for query in OLD:
        answer = await api("GET", f"{CONFIGMAPS}?resourceVersion={{v}}&{query}")
        assert answer.status == 410


YOUNG = {
    "not-older": "resourceVersion={v}&resourceVersionMatch=NotOlderThan",
    "zero": "resourceVersion=0",
}


@variants("query", YOUNG)
async def test_compacted_version_is_valid_where_newer_will_do(
    api: Conversation, operator: Operator, query: str
) -> None:
    await create_three(api, numbered=False)
    await operator.compact()
    answer = await api("GET", f"{CONFIGMAPS}?{query}")
    assert len(answer.body["items"]) in (1, 3)


async def test_watch_from_a_compacted_version_fails(api: Conversation, operator: Operator) -> None:
    await create_three(api, numbered=False)
    await operator.restart()
    for accept in FORMS.values():
        answer = await api.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={{v}}", accept=accept)
        assert answer.status in (200, 406)


async def test_streaming_list_at_a_compacted_version_is_current(api: Conversation, operator: Operator) -> None:
    await create_three(api, numbered=False)
    await operator.compact()
    streaming = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await api.watch(f"{CONFIGMAPS}?{streaming}&resourceVersion=1", events=4)
    assert [event["type"] for event in answer.body] == ["ADDED"] * 3 + ["BOOKMARK"]


CONTINUE_TOKENS = {
    "future": token(rv=999999999, start="a\0"),
    "no-version": token(start="a\0"),
    "no-json": base64.urlsafe_b64encode(b"{").decode().rstrip("="),
}


@variants("text", CONTINUE_TOKENS)
async def test_continue_token_is_validated(api: Conversation, text: str) -> None:
    await create_three(api, numbered=False)
    await api("GET", f"{CONFIGMAPS}?limit=1&continue={quote(text, safe='')}")


async def change_objects(api: Conversation) -> None:
    """Delete "b" and create "bb" and "d", so that current state differs from the snapshot of {token}."""
    await api("DELETE", f"{CONFIGMAPS}/b", recorded=False)
    for name in ("bb", "d"):
        await api.create(CONFIGMAPS, {"metadata": {"name": name, "labels": {"odd": "1"}}})


async def expire_token(api: Conversation, operator: Operator) -> Answer:
    """Create three objects, let {token} expire, and return the server's refusal of it."""
    await create_three(api, numbered=False)
    await change_objects(api)
    await operator.compact()
    return await api.poll(f"{CONFIGMAPS}?continue={{token}}", is_gone, recorded=False)


def is_gone(answer: Answer) -> bool:
    return answer.status == 410
