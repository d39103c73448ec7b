"""Validation of runtime classes, certificate requests and devices."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import any_of, variants
from tests.contract.variations import existing

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
DEVICES = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DEVICES}/namespaces/{{ns}}/resourceclaims"
TEMPLATES = f"{DEVICES}/namespaces/{{ns}}/resourceclaimtemplates"
CLASSES = f"{DEVICES}/deviceclasses"
SLICES = f"{DEVICES}/resourceslices"
PEM = """-----BEGIN CERTIFICATE REQUEST-----
MIHIMHECAQAwDzENMAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABAPwJ1w6CK+kwA/Y15z/1dVm5NQ+Ykfijok5JcpQINYMNZZMOtZAdxvcyXcO
wP5B6upgIwlqLmhQp3+tn9CjnsOgADAKBggqhkjOPQQDAgNHADBEAiAUE7B7Xlpp
+0SC8Lmqud+CP9dJtIM1yQ+qT61tmPHDOwIgbi2F6naM1mtIjQEAGJtScp/43rSG
kvIR+JW3IWiLHcg=
-----END CERTIFICATE REQUEST-----
"""
WANTED = {"deviceClassName": "gpu"}
Variants = list[dict[str, Any]]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


REQUEST: dict[str, Any] = {"request": encoded(PEM), "signerName": "example.com/s", "usages": ["client auth"]}


def asked(*requests: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"spec": {"devices": {"requests": list(requests)} | others}}


def exactly(name: str = "a", **wanted: Any) -> dict[str, Any]:
    return {"name": name, "exactly": WANTED | wanted}


SLICE: dict[str, Any] = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}
OPAQUE = {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}
WRONG: dict[str, tuple[str, Variants]] = {
    "runtime": (RUNTIMES, [
        {"handler": ""}, {"handler": "A.b"},
        *({"handler": "a", "scheduling": each} for each in any_of(
            {"nodeSelector": {"a b": "c"}}, {"nodeSelector": {"d": "e f"}},
            {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]},
            {"tolerations": [{"operator": "Wrong", "effect": "Wrong"}]},
        )),
        {"handler": "a", "overhead": {"podFixed": {"cpu": "-1"}}},
    ]),
    "request": (REQUESTS, [{"spec": REQUEST | each} for each in any_of(
        {"request": encoded("a")}, {"request": encoded(PEM.replace("CERTIFICATE REQUEST", "CERTIFICATE"))},
        {"usages": []}, {"usages": ["wrong", "client auth", "client auth"]}, {"expirationSeconds": 599},
    )]),
    "signer": (REQUESTS, [{"spec": REQUEST | {"signerName": each}} for each in any_of(
        "", "a", "a/b/c", "a/b", "A.b/c", "a.b/C_d", "a.b/", "kubernetes.io/legacy-unknown",
    )]),
    "claim": (CLAIMS, [
        asked({"name": "a"}), asked({"name": "A", "exactly": WANTED}), asked(exactly(deviceClassName="")),
        asked(exactly(deviceClassName="A")), asked(exactly(allocationMode="Wrong")), asked(exactly(count=-1)),
        asked(exactly(allocationMode="All", count=2)), asked(exactly(), exactly()),
        asked(exactly() | {"firstAvailable": [WANTED | {"name": "b"}]}),
        asked({"name": "a", "firstAvailable": [WANTED | {"name": "b"}, WANTED | {"name": "b"}]}),
        asked(exactly(selectors=[{}])), asked(*(exactly(f"a{n}") for n in range(33))),
    ]),
    "constraints": (CLAIMS, [
        asked(exactly(), constraints=[{"requests": ["b"], "matchAttribute": "example.com/a"}]),
        asked(exactly(), constraints=[{"requests": ["a/b/c", "A", "a/b"], "matchAttribute": "example.com/a"}]),
        asked(exactly(), constraints=[{}]), asked(exactly(), config=[{}]),
        asked(exactly(), config=[{"opaque": {"driver": "", "parameters": {"a": 1}}}]),
        asked(exactly(), config=[OPAQUE | {"requests": ["a", "a", "b"]}]),
    ]),
    "template": (TEMPLATES, [
        {"spec": asked({"name": "a"})}, {"spec": asked(exactly()) | {"metadata": {"labels": {"a b": "c"}}}},
    ]),
    "class": (CLASSES, [{"spec": each} for each in any_of(
        {"config": [{}]}, {"selectors": [{}]}, {"config": [{"opaque": {"driver": "A_", "parameters": {}}}]},
    )]),
    "slice": (SLICES, [{"spec": SLICE | each} for each in any_of(
        {"driver": ""}, {"driver": "A_b"}, {"pool": {}}, {"pool": {"name": "A/b", "resourceSliceCount": 0}},
        {"nodeName": None}, {"nodeName": ""}, {"nodeName": "A"}, {"allNodes": True}, {"allNodes": False},
        {"devices": [{"name": "A"}, {"name": "a"}, {"name": "a"}]},
        {"pool": {"name": "p", "resourceSliceCount": 1, "generation": -1}},
    )]),
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, wrong: tuple[str, Variants]) -> None:
    where, objects = wrong
    for obj in objects:
        answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
        assert answer.status == 422, obj


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "runtime": (RUNTIMES, {
        "handler": "kata", "overhead": {"podFixed": {"cpu": "100m", "memory": "1Gi"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    }),
    "claim": (CLAIMS, asked(
        exactly(count=2), {"name": "b", "firstAvailable": [WANTED | {"name": "c"}]},
        constraints=[{"requests": ["a", "b/c"], "matchAttribute": "example.com/a"}],
        config=[OPAQUE | {"requests": ["a"]}],
    )),
    "template": (TEMPLATES, {"spec": asked(exactly()) | {"metadata": {"labels": {"a": "b"}}}}),
    "class": (CLASSES, {"spec": {"config": [OPAQUE]}}),
    "slice": (SLICES, {"spec": SLICE | {"devices": [{"name": "a"}, {"name": "b"}]}}),
}  # fmt: skip


@variants("right", GOOD)
async def test_valid_objects_are_accepted(api: Conversation, right: tuple[str, dict[str, Any]]) -> None:
    where, obj = right
    answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
    assert answer.status == 201


CHANGES: dict[str, tuple[str, dict[str, Any], Variants]] = {
    "runtime": (RUNTIMES, {"handler": "a"}, [{"handler": "b"}, {"handler": ""}]),
    "claim": (CLAIMS, asked(exactly()), [asked(exactly(count=2)), asked({"name": "b"})]),
    "template": (TEMPLATES, {"spec": asked(exactly())}, [{"spec": asked(exactly(count=2))}]),
    "slice": (SLICES, {"spec": SLICE}, [
        {"spec": SLICE | {"nodeName": "m"}}, {"spec": SLICE | {"driver": "e"}},
        {"spec": SLICE | {"pool": {"name": "q", "resourceSliceCount": 1}}},
        {"spec": SLICE | {"devices": [{"name": "a"}]}},
    ]),
}  # fmt: skip


@variants("change", CHANGES)
async def test_updates_respect_immutable_fields(
    api: Conversation, change: tuple[str, dict[str, Any], Variants]
) -> None:
    where, obj, changes = change
    async with existing(api, where, obj) as (item, known):
        answers = [await api("PUT", f"{item}?dryRun=All", obj | each | known) for each in changes]
    assert {answer.status for answer in answers} <= {200, 422}


def without_uid(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the administrator's uid, which differs between servers."""
    return body | {"spec": {name: value for name, value in body["spec"].items() if name != "uid"}}


async def test_certificate_request_records_its_creator(api: Conversation) -> None:
    request = {"metadata": {"name": api.namespace}, "spec": REQUEST | {"expirationSeconds": 600, "username": "jane"}}
    item = f"{REQUESTS}/{api.namespace}"
    await api("POST", REQUESTS, request, shown=without_uid)
    try:
        changed = {"spec": {"usages": []}, "metadata": {"labels": {"a": "b"}}}
        answer = await api("PATCH", item, changed, content_type=MERGE_PATCH, shown=without_uid)
    finally:
        await api("DELETE", item, recorded=False)
    assert answer.status == 200
