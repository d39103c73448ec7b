"""Compacted versions and expired continue tokens."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.real.contract.conversation import JSON, PARTIAL_LIST, TABLE
from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.tables import variants
from tests.real.contract.test_custom_resources import define, path, widget

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation
    from tests.real.contract.operators import Operator

ALL = "/api/v1/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
OTHER = "/api/v1/namespaces/{ns}-other/configmaps"


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


async def test_continue_tokens_of_custom_resources_expire(api: Conversation, operator: Operator) -> None:
    definition = await define(api)
    for name in "abc":
        await api.create(path(api), widget(api, metadata={"name": name}))
    where = path(api)
    listed = await api("GET", f"{where}?limit=1", recorded=False)
    api.variables["token"] = listed.metadata["continue"]
    await api("DELETE", path(api, "b"), recorded=False)
    await operator.compact()
    answer = await api.poll(f"{where}?limit=1&continue={{token}}", is_gone)
    api.variables["token"] = answer.metadata["continue"]
    answer = await api("GET", f"{where}?limit=1&continue={{token}}")
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["c"]
    await api("DELETE", definition, recorded=False)


OLD = ("resourceVersionMatch=Exact", "limit=1", "limit=1&labelSelector=odd%3D1")


async def test_list_at_a_compacted_version_is_410(api: Conversation, operator: Operator) -> None:
    await expire_token(api, operator)
    for query in OLD:
        answer = await api("GET", f"{CONFIGMAPS}?resourceVersion={{v}}&{query}")
        assert answer.status == 410


YOUNG = {
    "not-older": "resourceVersion={v}&resourceVersionMatch=NotOlderThan",
    "not-older-limit": "resourceVersion={v}&resourceVersionMatch=NotOlderThan&limit=1",
    "any": "resourceVersion={v}",
    "zero": "resourceVersion=0",
}


@variants("query", YOUNG)
async def test_compacted_version_is_valid_where_newer_will_do(
    api: Conversation, operator: Operator, query: str
) -> None:
    await create_three(api)
    await operator.compact()
    answer = await api("GET", f"{CONFIGMAPS}?{query}")
    assert len(answer.body["items"]) in (1, 3)


async def test_get_ignores_a_compacted_version(api: Conversation, operator: Operator) -> None:
    await create_three(api)
    await operator.compact()
    answer = await api("GET", f"{CONFIGMAPS}/a?resourceVersion={{v}}")
    assert answer.status == 200


async def test_watch_from_a_compacted_version_fails(api: Conversation, operator: Operator) -> None:
    await create_three(api)
    await operator.restart()
    for accept in FORMS.values():
        answer = await api.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={{v}}", accept=accept)
        assert answer.status in (200, 406)


async def test_streaming_list_at_a_compacted_version_is_current(api: Conversation, operator: Operator) -> None:
    await create_three(api)
    await operator.compact()
    streaming = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await api.watch(f"{CONFIGMAPS}?{streaming}&resourceVersion=1", events=4)
    assert [event["type"] for event in answer.body] == ["ADDED"] * 3 + ["BOOKMARK"]


ELSEWHERE = {
    "other-limit": f"{CONFIGMAPS}?limit=2&",
    "no-limit": f"{CONFIGMAPS}?",
    "labels": f"{CONFIGMAPS}?labelSelector=odd%3D1&",
    "limit-and-labels": f"{CONFIGMAPS}?labelSelector=odd%3D1&limit=1&",
    "fields": f"{CONFIGMAPS}?fieldSelector=metadata.name%3Da&",
    "other-namespace": f"{OTHER}?",
    "all-namespaces": f"{ALL}?limit=1&fieldSelector=metadata.namespace%3D{{ns}}&",
    "other-resource": f"{SECRETS}?",
    "timeout": f"{CONFIGMAPS}?timeoutSeconds=3&",
}


@variants("where", ELSEWHERE)
async def test_continue_token_works_on_other_paths(api: Conversation, where: str) -> None:
    await create_three(api)
    await api("GET", f"{CONFIGMAPS}?limit=1")
    answer = await api("GET", f"{where}continue={{token}}")
    assert answer.status == 200


async def test_continue_token_across_namespaces_names_one(api: Conversation) -> None:
    await create_three(api)
    listed = await api("GET", f"{ALL}?fieldSelector=metadata.namespace%3D{{ns}}&limit=1", recorded=False)
    api.variables["token"] = listed.metadata["continue"]
    answer = await api("GET", f"{CONFIGMAPS}?continue={{token}}")
    assert answer.status == 200


TOKENS = {
    "no-moment": token(rv=-1, start="a\0"),
    "no-moment-middle": token(rv=-1, start="ab"),
    "no-moment-slash": token(rv=-1, start="/a\0"),
    "future": token(rv=999999999, start="a\0"),
    "below": token(rv=-2, start="a\0"),
    "no-version": token(start="a\0"),
    "zero": token(rv=0, start="a\0"),
    "text-as-version": token(rv="1", start="a\0"),
    "part-of-a-version": token(rv=1.5, start="a\0"),
    "huge-version": token(rv=2**64, start="a\0"),
    "no-start": token(rv=-1),
    "empty-start": token(rv=-1, start=""),
    "number-as-start": token(rv=-1, start=1),
    "root": token(rv=-1, start="/"),
    "two-slashes": token(rv=-1, start="//a"),
    "dots": token(rv=-1, start="a/../b"),
    "other-names": base64.urlsafe_b64encode(b'{"V":"meta.k8s.io/v1","RV":-1,"Start":"a"}').decode().rstrip("="),
    "unknown-field": token(rv=-1, start="a\0", more=1),
    "no-json": base64.urlsafe_b64encode(b"{").decode().rstrip("="),
    "nothing": base64.urlsafe_b64encode(b"null").decode().rstrip("="),
    "number": base64.urlsafe_b64encode(b"1").decode().rstrip("="),
    "padded": base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":-1,"start":"a"}').decode(),
    "standard-alphabet": "+/+/",
    "space": "a b",
    "one-letter": "x",
    "five-letters": "abcde",
    "nine-letters": "abcdefghi",
    "letter-and-padding": "x===",
    "wrong-early": "=abcdefg",
    "wrong-in-the-middle": "abcd=fghijk",
    "wrong-late": "abcdefghij=",
    "new-line": "abcd\nx",
}


@variants("text", TOKENS)
async def test_continue_token_is_validated(api: Conversation, text: str) -> None:
    await create_three(api)
    answer = await api("GET", f"{CONFIGMAPS}?limit=1&continue={quote(text, safe='')}")
    assert answer.status in (200, 400, 410, 500, 504)


async def test_deletecollection_starts_at_a_continue_token(api: Conversation) -> None:
    await create_three(api)
    await api("DELETE", f"{CONFIGMAPS}?continue={{token}}")
    answer = await api("GET", CONFIGMAPS)
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["a"]


async def create_three(api: Conversation) -> None:
    """Create three objects. Set {v} to the version of the second, and {token} to continue after the first."""
    made = [
        await api.create(CONFIGMAPS, {"metadata": {"name": name, "labels": {"odd": str(number % 2)}}})
        for number, name in enumerate("abc", 1)
    ]
    listed = await api("GET", f"{CONFIGMAPS}?limit=1", recorded=False)
    api.variables["v"] = made[1]["metadata"]["resourceVersion"]
    api.variables["token"] = listed.metadata["continue"]


async def change_objects(api: Conversation) -> None:
    """Delete "b" and create "bb" and "d", so that current state differs from the snapshot of {token}."""
    await api("DELETE", f"{CONFIGMAPS}/b", recorded=False)
    for name in ("bb", "d"):
        await api.create(CONFIGMAPS, {"metadata": {"name": name, "labels": {"odd": "1"}}})


async def expire_token(api: Conversation, operator: Operator) -> Answer:
    """Create three objects, let {token} expire, and return the server's refusal of it."""
    await create_three(api)
    await change_objects(api)
    await operator.compact()
    return await api.poll(f"{CONFIGMAPS}?continue={{token}}", is_gone, recorded=False)


def is_gone(answer: Answer) -> bool:
    return answer.status == 410
