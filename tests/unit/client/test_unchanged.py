"""Which configurations `apply_if_changed` does not send: the record of the cached object proves them unchanged."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aioinformer import Client, Resource
from tests.support.scripted_transport import Scripted

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
SPEC: dict[str, Any] = {
    "size": 1,
    "labels": {"app": "web"},
    "empty": {},
    "args": ["a", "b"],
    "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53}],
    "zones": ["x", "y"],
}
FIELDS: dict[str, Any] = {
    "f:size": {},
    "f:labels": {"f:app": {}},
    "f:empty": {},
    "f:args": {},
    "f:ports": {
        'k:{"name":"http"}': {".": {}, "f:name": {}, "f:port": {}},
        'k:{"name":"dns"}': {".": {}, "f:name": {}, "f:port": {}},
    },
    "f:zones": {'v:"x"': {}, 'v:"y"': {}},
}


def entry(**changes: Any) -> dict[str, Any]:
    made = {"manager": "tests", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1"}
    return {**made, "fieldsV1": {"f:spec": FIELDS}, **changes}


def stored(*entries: dict[str, Any], spec: Any = None, **metadata: Any) -> dict[str, Any]:
    managed = list(entries or [entry()])
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "shop", "uid": "1", "managedFields": managed, **metadata},
        "spec": copy.deepcopy(SPEC) if spec is None else spec,
    }


def desired(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {
        **found,
        "metadata": {"name": "a", "namespace": "shop", **metadata},
        "spec": copy.deepcopy(SPEC) if spec is None else spec,
    }


async def reason_of(wanted: Any, cached: Any) -> str:
    """Return why a configuration is sent; "" if no request leaves."""
    transport = Scripted()
    found = await Client(transport, field_manager="tests").resource(WIDGETS).apply_if_changed(wanted, cached)
    assert found.skipped is not bool(transport.requests)
    assert found.skipped is (found.reason == "")
    return found.reason


async def test_recorded_configuration_is_not_sent() -> None:
    assert await reason_of(desired(), stored()) == ""


@pytest.mark.parametrize("member", ["size", "labels", "args", "ports", "zones"])
async def test_member_that_is_left_out_is_sent(member: str) -> None:
    wanted = desired({name: value for name, value in SPEC.items() if name != member})
    assert await reason_of(wanted, stored()) == f".spec.{member} is left out"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"size": 2}, ".spec.size differs"),
        ({"size": True}, ".spec.size differs"),
        ({"size": None}, ".spec.size differs"),
        ({"more": 1}, ".spec.more is not among the recorded fields"),
        ({"labels": {"app": "db"}}, ".spec.labels.app differs"),
        ({"labels": {"app": "web", "tier": "1"}}, ".spec.labels.tier is not among the recorded fields"),
        ({"labels": {}}, ".spec.labels"),
        ({"labels": ["app"]}, ".spec.labels differs"),
        ({"empty": {"a": 1}}, ".spec.empty"),
        ({"args": ["b", "a"]}, ".spec.args differs"),
        ({"args": ["a"]}, ".spec.args differs"),
        ({"args": []}, ".spec.args"),
        ({"ports": [{"name": "http", "port": 81}, {"name": "dns", "port": 53}]}, ".spec.ports[0].port differs"),
        ({"ports": [{"name": "http", "port": 80}]}, ".spec.ports has other elements"),
        ({"ports": [{"name": "dns", "port": 53}, {"name": "http", "port": 80}]}, ".spec.ports has another order"),
        (
            {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 53}]},
            ".spec.ports[1] is not among the recorded elements",
        ),
        ({"ports": [{"name": "http", "port": 80}, "dns"]}, ".spec.ports[1] is not among the recorded elements"),
        ({"ports": [{"name": "http", "port": 80}, {"name": "dns"}]}, ".spec.ports[1].port is left out"),
        ({"zones": ["y", "x"]}, ".spec.zones has another order"),
        ({"zones": ["x"]}, ".spec.zones has other elements"),
        ({"zones": ["x", "z"]}, ".spec.zones has other elements"),
        ({"zones": ["x", "y", "y"]}, ".spec.zones has other elements"),
    ],
)
async def test_other_configuration_is_sent_with_the_reason(change: dict[str, Any], reason: str) -> None:
    assert (await reason_of(desired({**SPEC, **change}), stored())).startswith(reason)


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        ({"size": 2}, True),
        ({"labels": {"app": "db"}}, True),
        ({"labels": {"app": "web", "of-others": "1"}}, False),
        ({"labels": None}, True),
        ({"empty": {"of-others": 1}}, True),
        ({"args": ["a", "b", "c"]}, True),
        ({"ports": [{"name": "dns", "port": 53}, {"name": "http", "port": 80}]}, True),
        ({"ports": [*SPEC["ports"], {"name": "of-others", "port": 1}]}, False),
        ({"ports": [{"name": "http", "port": 80, "of-others": 1}, {"name": "dns", "port": 53}]}, False),
        ({"ports": [{"name": "http", "port": 80}]}, True),
        ({"ports": [*SPEC["ports"], {"name": "dns", "port": 53}]}, True),
        ({"ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 54}]}, True),
        ({"zones": ["y", "x"]}, True),
        ({"zones": ["x", "of-others", "y"]}, False),
        ({"zones": ["x"]}, True),
        ({"of-others": 1}, False),
    ],
)
async def test_object_that_others_have_changed_is_sent_where_a_field_differs(
    change: dict[str, Any], sent: bool
) -> None:
    assert bool(await reason_of(desired(), stored(spec={**SPEC, **change}))) is sent


@pytest.mark.parametrize(
    ("cached", "reason"),
    [
        (None, "the object is not in the cache"),
        (stored(name="b"), "metadata.name differs"),
        (stored(namespace="bank"), "metadata.namespace differs"),
        ({**stored(), "kind": "Door"}, "kind differs"),
        ({**stored(), "apiVersion": "example.com/v2"}, "apiVersion differs"),
        (stored(entry(manager="others")), "the cached object has no managed fields of tests"),
        (stored(entry(operation="Update")), "the cached object has no managed fields of tests"),
        (stored(entry(subresource="status")), "the cached object has no managed fields of tests"),
        (stored(entry(), entry()), "the cached object has no managed fields of tests"),
        (stored(managedFields=None), "the cached object has no managed fields of tests"),
        (stored(entry(apiVersion="example.com/v2")), "the managed fields are of another version"),
        (stored(entry(fieldsType="FieldsV2")), "the managed fields are of another version"),
        (stored(entry(fieldsV1=[])), "the managed fields are of another form"),
        (stored(entry(fieldsV1={})), "the object differs"),
        (stored(entry(fieldsV1={"f:spec": []})), ".spec is recorded in another form"),
        (stored(entry(fieldsV1={"f:spec": {**FIELDS, "f:gone": {}}})), ".spec.gone is left out"),
        (stored(entry(), entry(manager="others"), entry(operation="Update"), entry(subresource="status")), ""),
    ],
)
async def test_only_the_record_of_this_manager_is_a_proof(cached: Any, reason: str) -> None:
    assert await reason_of(desired(), cached) == reason


async def test_configuration_without_a_namespace_is_that_of_the_client() -> None:
    wanted = desired()
    del wanted["metadata"]["namespace"]
    transport = Scripted()
    client = Client(transport, namespace="shop", field_manager="tests")
    assert (await client.resource(WIDGETS).apply_if_changed(wanted, stored())).skipped
    bank = client.with_options(namespace="bank")
    assert not (await bank.resource(WIDGETS).apply_if_changed(wanted, stored())).skipped


async def creator_of(wanted: dict[str, Any]) -> str:
    """Return the field manager under which a configuration is created."""
    transport = Scripted()
    await Client(transport, field_manager="tests").resource(WIDGETS).apply_new(wanted)
    return dict(transport.requests[-1].query)["fieldManager"]


@pytest.mark.parametrize(
    ("former", "live", "more", "reason"),
    [
        ({}, {}, (), ""),
        ({}, {"of-defaults": 1}, (), ""),
        ({"size": 2}, {}, (), ""),  # the values are in no name
        ({"size": 2}, {"size": 2}, (), ".spec.size differs"),
        ({"more": 1}, {}, (), "the object was created with another configuration"),
        ({}, {}, (entry(),), "the object was created with another configuration"),
    ],
)
async def test_record_of_a_creation_is_a_proof_for_the_same_members(
    former: dict[str, Any], live: dict[str, Any], more: Any, reason: str
) -> None:
    manager = await creator_of(desired({**SPEC, **former}))
    fields = {**FIELDS, **{f"f:{name}": {} for name in live}}
    created = entry(manager=manager, operation="Update", fieldsV1={"f:spec": fields})
    assert await reason_of(desired(), stored(created, *more, spec={**SPEC, **live})) == reason
