"""CustomResourceDefinitions and their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, MERGE_PATCH
from tests.real.contract.custom_resources import ANYTHING, define, definition, path, version, widget, with_spec
from tests.real.contract.tables import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Conversation


@pytest.fixture(autouse=True)
async def clean(api: Conversation) -> AsyncIterator[None]:
    """Delete the CRDs of the row, which are cluster-scoped."""
    yield
    await api("DELETE", f"{DEFINITIONS}/widgets.{api.namespace}.example.com", recorded=False)


@pytest.mark.conformance("FK-06")
async def test_crd_is_established_and_discovered(api: Conversation) -> None:
    where = await define(api)
    await api("GET", where)
    resources = f"/apis/{api.namespace}.example.com/v1"
    await api.poll(resources, lambda answer: answer.status == 200, recorded=False)
    answer = await api("GET", resources, shown=_without_hash)
    assert [row["name"] for row in answer.body["resources"]] == ["widgets"]


def _without_hash(body: dict[str, Any]) -> dict[str, Any]:
    # The hash depends on the name of the group.
    rows = [{name: row[name] for name in row if name != "storageVersionHash"} for row in body["resources"]]
    return body | {"resources": rows}


async def test_create_update_patch_delete(api: Conversation) -> None:
    await define(api)
    made = await api("POST", path(api), widget(api, spec={"size": 1}, status={"x": 1}))
    await api("PUT", path(api, "a"), made.body | {"spec": {"size": 2}})
    await api("PATCH", path(api, "a"), {"spec": {"size": 3}}, content_type=MERGE_PATCH)
    await api("GET", path(api))
    await api("DELETE", path(api, "a"))


async def test_update_requires_a_resource_version(api: Conversation) -> None:
    await define(api)
    await api.create(path(api), widget(api))
    answer = await api("PUT", path(api, "a"), widget(api))
    assert answer.status == 422


FINALIZERS = {"with_a_domain": "resources-finalizer.example.com", "plain": "Foo", "odd": "a b"}


@pytest.mark.parametrize("name", FINALIZERS)
async def test_finalizer_without_a_path_is_accepted_with_a_warning(api: Conversation, name: str) -> None:
    await define(api)
    finalizers = ["example.com/first", FINALIZERS[name]]
    await api("POST", path(api), widget(api, metadata={"name": "a", "finalizers": finalizers}))
    await api("PATCH", path(api, "a"), {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE_PATCH)
    await api("PATCH", path(api, "a"), {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)


async def test_status_has_its_default_from_creation_on(api: Conversation) -> None:
    status = {
        "type": "object",
        "default": {"phase": "Unknown"},
        "properties": {"phase": {"type": "string"}, "size": {"type": "integer", "default": 1}},
    }
    schema = {"type": "object", "properties": {"status": status}}
    await define(api, version(schema=schema, subresources={"status": {}}))
    answer = await api("POST", path(api), widget(api, status={"phase": "Sent"}))
    assert answer.body["status"] == {"phase": "Unknown", "size": 1}


NULLS: dict[str, Any] = {
    "object": {"obj": None},
    "nullable": {"maybe": None},
    "default": {"size": None},
    "all": None,
}
WITH_NULLS = with_spec(
    obj={"type": "object"},
    maybe={"type": "string", "nullable": True},
    size={"type": "integer", "default": 3},
)


@pytest.mark.parametrize("name", NULLS)
async def test_null_is_decoded_by_a_create_and_kept_by_an_apply(api: Conversation, name: str) -> None:
    await define(api, version(schema=WITH_NULLS))
    await api("POST", path(api), widget(api, spec=NULLS[name]))
    where = f"{path(api, 'b')}?fieldManager=one"
    await api("PATCH", where, widget(api, metadata={"name": "b"}, spec=NULLS[name]), content_type=APPLY)


@pytest.mark.parametrize("pattern", ["^(?i)(red|blue)?$", "(?<n>a)", r"\pL", "a(?=b)", "(", r"(a)\1"])
async def test_pattern_is_one_of_go(api: Conversation, pattern: str) -> None:
    schema = with_spec(colour={"type": "string", "pattern": pattern})
    await api("POST", f"{DEFINITIONS}?dryRun=All", definition(api, version(schema=schema)))


@pytest.mark.parametrize("value", ["RED", "green"])
async def test_value_matches_the_pattern(api: Conversation, value: str) -> None:
    await define(api, version(schema=with_spec(colour={"type": "string", "pattern": "^(?i)(red|blue)?$"})))
    await api("POST", path(api), widget(api, spec={"colour": value}))


FORMATS: dict[str, dict[str, Any]] = {
    "date-time": {"type": "string", "format": "date-time", "maxLength": 1},
    "uuid": {"type": "string", "format": "u-u-i-d", "pattern": "^a"},
    "password": {"type": "string", "format": "password"},
    "unknown": {"type": "string", "format": "colour"},
    "none": {"type": "string"},
    "number": {"type": "integer", "format": "int32"},
    "one of": {"type": "string", "format": "byte", "enum": ["YQ=="]},
    "boolean": {"type": "boolean", "format": "uuid"},
}


@pytest.mark.parametrize("value", [[], ["x", 1], [{"a": "b"}, ["c"]], "x"], ids=["empty", "flat", "nested", "text"])
@pytest.mark.parametrize("name", FORMATS)
async def test_list_in_place_of_a_text(api: Conversation, name: str, value: Any) -> None:
    """The server compares no list with the type of a text that has a format."""
    await define(api, version(schema=with_spec(value=FORMATS[name])))
    await api("POST", path(api), widget(api, spec={"value": value}))


APPROVALS: dict[str, dict[str, str] | None] = {
    "none": None,
    "empty": {"api-approved.kubernetes.io": ""},
    "other_text": {"api-approved.kubernetes.io": "yes"},
    "url": {"api-approved.kubernetes.io": "https://example.com/approval"},
    "reason": {"api-approved.kubernetes.io": "unapproved, a test"},
}


@pytest.mark.parametrize("group", ["toys.k8s.io", "toys.kubernetes.io", "k8s.io", "xk8s.io"])
@pytest.mark.parametrize("approval", APPROVALS)
async def test_groups_of_kubernetes_need_an_approval(api: Conversation, approval: str, group: str) -> None:
    told = definition(api, group=group)
    told["metadata"]["annotations"] = APPROVALS[approval]
    await api("POST", f"{DEFINITIONS}?dryRun=All", told)


async def test_conversion_webhook_has_a_default_port(api: Conversation) -> None:
    client = {"service": {"name": "s", "namespace": "n"}}
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
    answer = await api("POST", f"{DEFINITIONS}?dryRun=All", definition(api, conversion=conversion))
    assert answer.status == 201


async def test_all_causes_are_reported(api: Conversation) -> None:
    schema = with_spec(size={"type": "integer"}, obj={"type": "object"})
    odd = {"name": "B_", "finalizers": ["a b"], "labels": {"a b": "c"}}
    wrong = definition(api, version(schema=with_spec(size={"type": "odd"})))
    await api("POST", DEFINITIONS, {**wrong, "metadata": {"name": "Foo_", "labels": {"a b": "c"}}})
    await define(api, version(schema=schema))
    await api("POST", path(api), widget(api, metadata=odd, spec={"size": "x", "obj": 3}))


NAMES: dict[str, dict[str, Any]] = {
    "kind": {"kind": "Other"},
    "name": {"metadata": {"name": "A_"}},
}


@pytest.mark.parametrize("case", NAMES)
async def test_apiversion_kind_and_name_are_checked(api: Conversation, case: str) -> None:
    await define(api)
    await api("POST", path(api), widget(api) | NAMES[case])


FIELDS: dict[str, Any] = {
    "int": {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2},
    "str": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]*$"},
    "enum": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "nullable": {"type": "string", "nullable": True},
    "bool": {"type": "boolean"},
    "port": {"x-kubernetes-int-or-string": True},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "map": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        },
    },
    "obj": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}},
    "add": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
    "any": {**ANYTHING, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "raw": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
}
SPECS: dict[str, Any] = {
    "nothing": {},
    "good": {
        "int": 2,
        "str": "abc",
        "port": "http",
        "list": ["a"],
        "set": ["a", "b"],
        "nullable": None,
        "add": {"x": 1},
    },
    "unknown": {"extra": 1, "obj": {"y": 1}, "any": {"a": {"deep": 1}}},
    "defaults": {"obj": {}},
    "too_large": {"int": 12},
    "too_short": {"str": "a"},
    "pattern": {"str": "AB"},
    "enum": {"enum": "c"},
    "items": {"list": [1]},
    "map": {"map": [{"k": "a"}, {"k": "a"}]},
    "no_key": {"map": [{"v": 1}]},
    "embedded": {"raw": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}},
}


@pytest.mark.parametrize("case", SPECS)
async def test_schema_validates_objects(api: Conversation, case: str) -> None:
    await define(api, version(schema=with_spec(**FIELDS)))
    await api("POST", path(api), widget(api, spec=SPECS[case]))


@pytest.mark.parametrize("directive", ["Strict", "Warn", "Ignore"], ids=["strict", "warn", "ignore"])
async def test_field_validation_of_unknown_fields(api: Conversation, directive: str) -> None:
    await define(api, version(schema=with_spec(size={"type": "integer"})))
    obj = widget(api, spec={"size": 1, "sise": 2}) | {"more": {}}
    answer = await api("POST", f"{path(api)}?fieldValidation={directive}", obj)
    assert answer.status == (400 if directive == "Strict" else 201)


async def test_status_subresource_separates_spec_and_status(api: Conversation) -> None:
    await define(api, version(subresources={"status": {}}))
    await api("POST", path(api), widget(api, spec={"size": 1}, status={"x": 1}))
    both = {"spec": {"size": 2}, "status": {"x": 2}}
    await api(
        "PATCH", f"{path(api, 'a')}/status", both | {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE_PATCH
    )
    answer = await api("PATCH", path(api, "a"), both | {"status": {"x": 3}}, content_type=MERGE_PATCH)
    assert answer.body["status"] == {"x": 2}


SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.size",
    "labelSelectorPath": ".status.selector",
}


async def test_scale_paths_come_from_the_crd(api: Conversation) -> None:
    await define(api, version(subresources={"scale": SCALE, "status": {}}))
    await api.create(path(api), widget(api, spec={"size": 2}))
    await api("PATCH", f"{path(api, 'a')}/status", {"status": {"size": 1, "selector": "a=b"}}, content_type=MERGE_PATCH)
    await api("GET", f"{path(api, 'a')}/scale")
    await api("PUT", f"{path(api, 'a')}/scale", {"metadata": {"name": "a"}, "spec": {"replicas": 5}})
    answer = await api("GET", path(api, "a"), shown=lambda body: body["spec"])
    assert answer.body["spec"] == {"size": 5}


async def test_object_is_read_in_every_served_version(api: Conversation) -> None:
    await define(api, version("v1"), version("v2"), version("v1beta1", deprecated=True))
    await api.create(path(api), widget(api, spec={"size": 1}))
    await api("GET", path(api, "a", "v2"))
    await api("GET", path(api, "a", "v1beta1"))
    await api("PATCH", path(api, "a", "v2"), {"spec": {"size": 2}}, content_type=MERGE_PATCH)
    await api("GET", path(api))
    group = f"/apis/{api.namespace}.example.com"
    answer = await api.poll(group, lambda answer: len(answer.body.get("versions", ())) == 3)
    assert answer.body["preferredVersion"]["version"] == "v2"


async def test_selectable_fields_select(api: Conversation) -> None:
    schema = with_spec(colour={"type": "string"}, size={"type": "integer"})
    await define(api, version(schema=schema, selectableFields=[{"jsonPath": ".spec.colour"}]))
    await api.create(path(api), widget(api, spec={"colour": "red"}))
    await api("GET", f"{path(api)}?fieldSelector=spec.colour%3Dred")
    await api("GET", f"{path(api)}?fieldSelector=spec.colour%3Dblue")
    answer = await api("GET", f"{path(api)}?fieldSelector=spec.size%3D1")
    assert answer.status == 400


async def test_deleting_the_crd_deletes_its_objects(api: Conversation) -> None:
    where = await define(api)
    await api.create(path(api), widget(api))
    async with api.open_watch(f"{path(api)}?watch=1&resourceVersion=0") as watching:
        await watching.read()
        await api("DELETE", where, recorded=False)
        await watching.read()
    await api.poll(where, lambda answer: answer.status == 404)
    answer = await api.poll(path(api), lambda answer: answer.status == 404)
    assert answer.body == "404 page not found\n"


INVALID: dict[str, Any] = {
    "no_schema": (("spec", "versions"), [{"name": "v1", "served": True, "storage": True}]),
    "no_keys": (
        ("spec", "versions"),
        [version(schema=with_spec(x={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}))],
    ),
    "no_storage": (("spec", "versions"), [version("v2")]),
    "not_structural": (("spec", "versions"), [version(schema={"properties": {"spec": {}}})]),
    "bad_default": (("spec", "versions"), [version(schema=with_spec(x={"type": "integer", "default": "1"}))]),
}


@pytest.mark.parametrize("case", INVALID)
async def test_crd_is_validated(api: Conversation, case: str) -> None:
    *parents, last = INVALID[case][0]
    obj = definition(api)
    place = obj
    for part in parents:
        place = place[part]
    place[last] = INVALID[case][1]
    await api("POST", DEFINITIONS, obj)
