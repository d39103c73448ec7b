"""Validation of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import dry_run_creates, dry_run_updates, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Object

MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
LARGE = "x" * (1024 * 1024)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(kind: str, **data: str) -> Object:
    return {"type": kind, "data": {name: encoded(text) for name, text in data.items()}}


def docker(text: str, kind: str = "dockerconfigjson") -> Object:
    return {"type": f"kubernetes.io/{kind}", "stringData": {f".{kind}": text}}


KEYS = ("", "a b", ".", "..", "..a", "a/b", "ä", "a" * 254)
WRONG: dict[str, tuple[str, list[Object]]] = {
    "keys-of-maps": (MAPS, [{"data": {key: "v"}} for key in KEYS]),
    "keys-of-bytes": (MAPS, [{"binaryData": {key: "dg=="}} for key in KEYS[:3]]),
    "keys-of-secrets": (SECRETS, [{"stringData": {key: "v"}} for key in KEYS]),
    "maps": (
        MAPS,
        [
            {"data": {"a": "v"}, "binaryData": {"a": "dg=="}},
            {"data": {"a": f"{LARGE}x"}},
            {"data": {"a": LARGE}, "binaryData": {"b": "dg=="}},
            {"metadata": {"name": "A"}},
            {"metadata": {"name": "a_b"}},
        ],
    ),
    "types": (
        SECRETS,
        [
            secret("kubernetes.io/service-account-token"),
            secret("kubernetes.io/basic-auth", user="a"),
            secret("kubernetes.io/ssh-auth"),
            secret("kubernetes.io/ssh-auth", **{"ssh-privatekey": ""}),
            secret("kubernetes.io/tls"),
            secret("kubernetes.io/tls", **{"tls.crt": "a"}),
            secret("Opaque", a=f"{LARGE}x"),
            secret("", **{"a b": "c"}),
        ],
    ),
    "documents": (
        SECRETS,
        [
            secret("kubernetes.io/dockerconfigjson"),
            secret("kubernetes.io/dockercfg", a="{}"),
            docker(""),
            docker("x"),
            docker("{"),
            docker("[]"),
            docker('"a"'),
            docker("1"),
            docker('{"a": }'),
            docker("{} {}", "dockercfg"),
        ],
    ),
    "accounts": (ACCOUNTS, [{"metadata": {"name": "A"}}, {"metadata": {"name": "a_b"}}]),
}


@variants("case", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {422}


RIGHT: dict[str, tuple[str, list[Object]]] = {
    "maps": (
        MAPS,
        [
            {},
            {"data": None, "binaryData": {}},
            {"data": {"a": "", "A-b_c.d": "ä", "1": "\n"}, "binaryData": {"e": "AAEC/w=="}, "immutable": True},
            {"data": {".a": "v"}, "metadata": {"name": "1.a"}},
        ],
    ),
    "secrets": (
        SECRETS,
        [
            {},
            {"data": {"a": "dg==", "b": ""}, "stringData": {"a": "other", "c": "d"}, "immutable": False},
            secret("example.com/own", a="b"),
            secret("kubernetes.io/basic-auth", username=""),
            secret("kubernetes.io/ssh-auth", **{"ssh-privatekey": "a"}),
            secret("kubernetes.io/tls", **{"tls.crt": "", "tls.key": ""}),
            secret("bootstrap.kubernetes.io/token"),
            docker("{}"),
            docker("null"),
            docker('{"auths": {}}', "dockercfg"),
            secret("kubernetes.io/service-account-token")
            | {"metadata": {"annotations": {"kubernetes.io/service-account.name": "a"}}},
        ],
    ),
    "accounts": (
        ACCOUNTS,
        [
            {},
            {
                "automountServiceAccountToken": False,
                "imagePullSecrets": [{"name": "a"}, {}],
                "secrets": [{"name": "b", "kind": "Secret"}],
            },
            {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}},
        ],
    ),
}


@variants("case", RIGHT)
async def test_valid_objects_are_accepted(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {201}


UNREADABLE: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "maps": (
        MAPS,
        [{"data": {"a": 1}}, {"data": {"a": {}}}, {"data": []}, {"binaryData": {"a": "x"}}, {"immutable": "true"}],
    ),
    "secrets": (
        SECRETS,
        [
            {"data": {"a": "plain text"}},
            {"data": {"a": "dg="}},
            {"data": {"a": 1}},
            {"stringData": {"a": True}},
            {"data": {"a": "dGVzdA==x"}},
            {"data": {"a": "dGVzdA"}},
        ],
    ),
}


@variants("case", UNREADABLE)
async def test_undecodable_objects_are_400(api: Conversation, case: tuple[str, list[dict[str, Any]]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {400}


async def test_immutable_configmap_rejects_changes(api: Conversation) -> None:
    old: Object = {"data": {"a": "b"}, "binaryData": {"c": "dg=="}, "immutable": True}
    changes = [
        {**old, "data": {"a": "c"}},
        {**old, "data": {"a": "b", "d": ""}},
        {**old, "binaryData": {}},
        {**old, "immutable": False},
        {"data": {"a b": "c"}},
        {**old, "metadata": {"labels": {"a": "b"}}},
    ]
    assert await dry_run_updates(api, MAPS, old, changes) == [422, 422, 422, 422, 422, 200]


async def test_immutable_secret_rejects_changes(api: Conversation) -> None:
    old: Object = {"data": {"a": "dg=="}, "immutable": True}
    changes = [
        {**old, "data": {"a": "dw=="}},
        {**old, "stringData": {"a": "v"}},
        {**old, "stringData": {"b": "v"}},
        {**old, "immutable": False},
        {"data": {"a": "dg=="}},
        {**old, "metadata": {"labels": {"a": "b"}}},
    ]
    assert await dry_run_updates(api, SECRETS, old, changes) == [422, 200, 422, 422, 422, 200]


async def test_secret_type_is_immutable(api: Conversation) -> None:
    await api.create(SECRETS, manifest(docker("{}")))
    changes: list[dict[str, Any]] = [
        {"type": "Opaque"},
        {"type": None},
        {"stringData": {".dockerconfigjson": "x"}},
        {"data": {".dockerconfigjson": None}},
        {"data": {"more": "dg=="}, "immutable": True},
    ]
    answers = [await api("PATCH", f"{SECRETS}/a?dryRun=All", change, content_type=MERGE_PATCH) for change in changes]
    assert [answer.status for answer in answers] == [422, 422, 422, 422, 200]
