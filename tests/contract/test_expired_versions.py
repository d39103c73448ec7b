"""Compacted versions and expired continue tokens."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants
from tests.contract.talk import JSON, PARTIAL_LIST, TABLE, YAML
from tests.contract.test_custom_resources import defined, path, widget

if TYPE_CHECKING:
    from tests.contract.operators import Operator
    from tests.contract.talk import Answer, Talk

ALL = "/api/v1/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
OTHER = "/api/v1/namespaces/{ns}-other/configmaps"


def token(**content: Any) -> str:
    """A token as a server could have made it."""
    text = json.dumps({"v": "meta.k8s.io/v1", **content}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


FORMS = {"json": JSON, "yaml": YAML, "table": TABLE, "metadata": PARTIAL_LIST}


async def test_expired_continue_token_returns_a_new_token(talk: Talk, operator: Operator) -> None:
    await expired(talk, operator)
    for accept in FORMS.values():
        answer = await talk("GET", f"{CONFIGMAPS}?limit=1&continue={{token}}", accept=accept)
        assert answer.status == 410


QUERIES = ("", "&limit=1", "&labelSelector=odd%3D1&limit=1", "&fieldSelector=metadata.name%21%3Dc&limit=1")


async def test_new_continue_token_lists_from_current_state(talk: Talk, operator: Operator) -> None:
    refusal = await expired(talk, operator)
    for query in QUERIES:
        answer = refusal
        while following := answer.metadata.get("continue"):
            talk.words["token"] = following
            answer = await talk("GET", f"{CONFIGMAPS}?continue={{token}}{query}")
        assert answer.status == 200


async def test_continue_tokens_of_custom_resources_expire(talk: Talk, operator: Operator) -> None:
    definition = await defined(talk)
    for name in "abc":
        await talk.made(path(talk), widget(talk, metadata={"name": name}))
    where = path(talk)
    listed = await talk("GET", f"{where}?limit=1", kept=False)
    talk.words["token"] = listed.metadata["continue"]
    await talk("DELETE", path(talk, "b"), kept=False)
    await operator.compact()
    answer = await talk.until(f"{where}?limit=1&continue={{token}}", is_gone)
    talk.words["token"] = answer.metadata["continue"]
    answer = await talk("GET", f"{where}?limit=1&continue={{token}}")
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["c"]
    await talk("DELETE", definition, kept=False)


OLD = ("resourceVersionMatch=Exact", "limit=1", "limit=1&labelSelector=odd%3D1")


async def test_list_at_a_compacted_version_is_410(talk: Talk, operator: Operator) -> None:
    await expired(talk, operator)
    for query in OLD:
        answer = await talk("GET", f"{CONFIGMAPS}?resourceVersion={{v}}&{query}")
        assert answer.status == 410


YOUNG = {
    "not-older": "resourceVersion={v}&resourceVersionMatch=NotOlderThan",
    "not-older-limit": "resourceVersion={v}&resourceVersionMatch=NotOlderThan&limit=1",
    "any": "resourceVersion={v}",
    "zero": "resourceVersion=0",
}


@variants("query", YOUNG)
async def test_compacted_version_is_valid_where_newer_will_do(talk: Talk, operator: Operator, query: str) -> None:
    await three(talk)
    await operator.compact()
    answer = await talk("GET", f"{CONFIGMAPS}?{query}")
    assert len(answer.body["items"]) in (1, 3)


async def test_get_ignores_a_compacted_version(talk: Talk, operator: Operator) -> None:
    await three(talk)
    await operator.compact()
    answer = await talk("GET", f"{CONFIGMAPS}/a?resourceVersion={{v}}")
    assert answer.status == 200


async def test_watch_from_a_compacted_version_fails(talk: Talk, operator: Operator) -> None:
    await three(talk)
    await operator.restart()
    for accept in FORMS.values():
        answer = await talk.watched(f"{CONFIGMAPS}?watch=true&resourceVersion={{v}}", accept=accept)
        assert answer.status in (200, 406)


async def test_streaming_list_at_a_compacted_version_is_current(talk: Talk, operator: Operator) -> None:
    await three(talk)
    await operator.compact()
    streaming = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await talk.watched(f"{CONFIGMAPS}?{streaming}&resourceVersion=1", events=4)
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
async def test_continue_token_works_on_other_paths(talk: Talk, where: str) -> None:
    await three(talk)
    await talk("GET", f"{CONFIGMAPS}?limit=1")
    answer = await talk("GET", f"{where}continue={{token}}")
    assert answer.status == 200


async def test_continue_token_across_namespaces_names_one(talk: Talk) -> None:
    await three(talk)
    listed = await talk("GET", f"{ALL}?fieldSelector=metadata.namespace%3D{{ns}}&limit=1", kept=False)
    talk.words["token"] = listed.metadata["continue"]
    answer = await talk("GET", f"{CONFIGMAPS}?continue={{token}}")
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
async def test_continue_token_is_validated(talk: Talk, text: str) -> None:
    await three(talk)
    answer = await talk("GET", f"{CONFIGMAPS}?limit=1&continue={quote(text, safe='')}")
    assert answer.status in (200, 400, 410, 500, 504)


async def test_deletecollection_starts_at_a_continue_token(talk: Talk) -> None:
    await three(talk)
    await talk("DELETE", f"{CONFIGMAPS}?continue={{token}}")
    answer = await talk("GET", CONFIGMAPS)
    assert [each["metadata"]["name"] for each in answer.body["items"]] == ["a"]


async def three(talk: Talk) -> None:
    """Three objects. Sets {v}, the version of the second, and {token}, to go on behind the first."""
    made = [
        await talk.made(CONFIGMAPS, {"metadata": {"name": name, "labels": {"odd": str(number % 2)}}})
        for number, name in enumerate("abc", 1)
    ]
    listed = await talk("GET", f"{CONFIGMAPS}?limit=1", kept=False)
    talk.words["v"] = made[1]["metadata"]["resourceVersion"]
    talk.words["token"] = listed.metadata["continue"]


async def changed(talk: Talk) -> None:
    """What a list that goes on now does not agree with: "b" has gone, "bb" and "d" have come."""
    await talk("DELETE", f"{CONFIGMAPS}/b", kept=False)
    for name in ("bb", "d"):
        await talk.made(CONFIGMAPS, {"metadata": {"name": name, "labels": {"odd": "1"}}})


async def expired(talk: Talk, operator: Operator) -> Answer:
    """Three objects and a token that was for them, and how the server refuses it."""
    await three(talk)
    await changed(talk)
    await operator.compact()
    return await talk.until(f"{CONFIGMAPS}?continue={{token}}", is_gone, kept=False)


def is_gone(answer: Answer) -> bool:
    return answer.status == 410
