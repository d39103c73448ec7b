"""CustomResourceDefinitions and their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import DEFINITIONS
from tests.contract.talk import MERGE_PATCH, STRATEGIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.contract.talk import Answer, Talk


@pytest.fixture(autouse=True)
async def clean(talk: Talk) -> AsyncIterator[None]:
    """Takes the definitions of the row away again: they lie outside of its namespace."""
    yield
    for plural in ("widgets", "gadgets"):
        await talk("DELETE", f"{DEFINITIONS}/{plural}.{talk.namespace}.example.com", kept=False)


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", schema: Mapping[str, Any] = ANYTHING, **fields: Any) -> dict[str, Any]:
    stored = {"served": True, "storage": name == "v1"}
    return {"name": name, **stored, "schema": {"openAPIV3Schema": schema}, **fields}


def with_spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def definition(talk: Talk, *versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    group = f"{talk.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    told = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **spec}
    return {"metadata": {"name": f"{told['names']['plural']}.{told['group']}"}, "spec": told}


def path(talk: Talk, name: str = "", api_version: str = "v1") -> str:
    base = f"/apis/{talk.namespace}.example.com/{api_version}/namespaces/{{ns}}/widgets"
    return f"{base}/{name}" if name else base


def widget(talk: Talk, api_version: str = "v1", **content: Any) -> dict[str, Any]:
    named = {"apiVersion": f"{talk.namespace}.example.com/{api_version}", "kind": "Widget", "metadata": {"name": "a"}}
    return named | content


async def defined(talk: Talk, *versions: dict[str, Any], **spec: Any) -> str:
    """Serves widgets, and gives where their definition is."""
    made = await talk.made(DEFINITIONS, definition(talk, *versions, **spec))
    where = f"{DEFINITIONS}/{made['metadata']['name']}"
    await talk.until(where, _is_established, kept=False)
    for each in versions or [version()]:
        if each["served"]:
            served = f"/apis/{talk.namespace}.example.com/{each['name']}/widgets"
            await talk.until(served, lambda answer: answer.status == 200, kept=False)
    return where


def _is_established(answer: Answer) -> bool:
    conditions = (answer.body.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.mark.conformance("FK-06")
async def test_crd_is_established_and_discovered(talk: Talk) -> None:
    where = await defined(talk)
    await talk("GET", where)
    resources = f"/apis/{talk.namespace}.example.com/v1"
    await talk.until(resources, lambda answer: answer.status == 200, kept=False)
    answer = await talk("GET", resources, shown=_without_hash)
    assert [row["name"] for row in answer.body["resources"]] == ["widgets"]


def _without_hash(body: dict[str, Any]) -> dict[str, Any]:
    # It is made of the name of the group.
    rows = [{name: row[name] for name in row if name != "storageVersionHash"} for row in body["resources"]]
    return body | {"resources": rows}


async def test_create_update_patch_delete(talk: Talk) -> None:
    await defined(talk)
    made = await talk("POST", path(talk), widget(talk, spec={"size": 1}, status={"x": 1}))
    await talk("PUT", path(talk, "a"), made.body | {"spec": {"size": 2}})
    await talk("PATCH", path(talk, "a"), {"spec": {"size": 3}}, content_type=MERGE_PATCH)
    await talk("GET", path(talk))
    answer = await talk("DELETE", path(talk, "a"))
    assert answer.status == 200


async def test_update_requires_a_resource_version(talk: Talk) -> None:
    await defined(talk)
    await talk.made(path(talk), widget(talk))
    answer = await talk("PUT", path(talk, "a"), widget(talk))
    assert answer.status == 422


async def test_strategic_merge_patch_is_415(talk: Talk) -> None:
    await defined(talk)
    await talk.made(path(talk), widget(talk))
    answer = await talk("PATCH", path(talk, "a"), {}, content_type=STRATEGIC)
    assert answer.status == 415


NAMES: dict[str, dict[str, Any]] = {
    "kind": {"kind": "Other"},
    "no_kind": {"kind": ""},
    "version": {"apiVersion": "example.com/v1"},
    "no_version": {"apiVersion": ""},
    "name": {"metadata": {"name": "A_"}},
    "no_name": {"metadata": {}},
    "labels": {"metadata": {"name": "a", "labels": {"a": 1}}},
    "label": {"metadata": {"name": "a", "labels": {"a b": "c"}}},
    "namespace": {"metadata": {"name": "a", "namespace": "other"}},
    "metadata": {"metadata": []},
}


@pytest.mark.parametrize("case", NAMES)
async def test_apiversion_kind_and_name_are_checked(talk: Talk, case: str) -> None:
    await defined(talk)
    answer = await talk("POST", path(talk), widget(talk) | NAMES[case])
    assert answer.status in (400, 422)


FIELDS: dict[str, Any] = {
    "int": {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2},
    "exc": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True},
    "str": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]*$"},
    "enum": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "when": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
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
    "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "not": {"type": "string", "not": {"enum": ["bad"]}},
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
    "number": {"port": 80, "int": 4.0, "exc": 0.5},
    "unknown": {"extra": 1, "obj": {"y": 1}, "any": {"a": {"deep": 1}}},
    "defaults": {"obj": {}},
    "null_default": {"enum": None},
    "no_multiple": {"int": 3},
    "too_small": {"int": -2},
    "too_large": {"int": 12},
    "too_close": {"exc": 0},
    "too_far": {"exc": 5},
    "too_short": {"str": "a"},
    "too_long": {"str": "abcde"},
    "pattern": {"str": "AB"},
    "enum": {"enum": "c"},
    "when": {"when": "2026-01-01"},
    "day": {"day": "tomorrow"},
    "null": {"bool": None},
    "text_for_bool": {"bool": "yes"},
    "list_for_port": {"port": []},
    "text_for_int": {"int": "1"},
    "empty_list": {"list": []},
    "long_list": {"list": ["a", "b", "c"]},
    "items": {"list": [1]},
    "set": {"set": ["a", "b", "a"]},
    "map": {"map": [{"k": "a"}, {"k": "a"}]},
    "no_key": {"map": [{"v": 1}]},
    "values": {"add": {"x": "1"}},
    "many": {"add": {"x": 1, "y": 2, "z": 3}},
    "any": {"any": {"c": 1}},
    "none": {"one": {}},
    "both": {"one": {"a": "", "b": ""}},
    "not": {"not": "bad"},
    "embedded": {"raw": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}},
    "nameless": {"raw": {"metadata": {"name": "a"}}},
    "bad_metadata": {"raw": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A_", "labels": {"a": "b c"}}}},
    "no_object": 5,
}


@pytest.mark.parametrize("case", SPECS)
async def test_schema_validates_objects(talk: Talk, case: str) -> None:
    await defined(talk, version(schema=with_spec(**FIELDS)))
    answer = await talk("POST", path(talk), widget(talk, spec=SPECS[case]))
    assert answer.status in (201, 422)


@pytest.mark.parametrize("directive", ["Strict", "Warn", "Ignore"], ids=["strict", "warn", "ignore"])
async def test_field_validation_of_unknown_fields(talk: Talk, directive: str) -> None:
    await defined(talk, version(schema=with_spec(size={"type": "integer"})))
    obj = widget(talk, spec={"size": 1, "sise": 2}) | {"more": {}}
    answer = await talk("POST", f"{path(talk)}?fieldValidation={directive}", obj)
    assert answer.status == (400 if directive == "Strict" else 201)


async def test_status_subresource_separates_spec_and_status(talk: Talk) -> None:
    await defined(talk, version(subresources={"status": {}}))
    await talk("POST", path(talk), widget(talk, spec={"size": 1}, status={"x": 1}))
    both = {"spec": {"size": 2}, "status": {"x": 2}}
    await talk(
        "PATCH", f"{path(talk, 'a')}/status", both | {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE_PATCH
    )
    answer = await talk("PATCH", path(talk, "a"), both | {"status": {"x": 3}}, content_type=MERGE_PATCH)
    assert answer.body["status"] == {"x": 2}


async def test_without_status_subresource_status_is_a_plain_field(talk: Talk) -> None:
    await defined(talk)
    await talk("POST", path(talk), widget(talk, status={"x": 1}))
    await talk("PATCH", path(talk, "a"), {"status": {"x": 2}}, content_type=MERGE_PATCH)
    answer = await talk("PATCH", f"{path(talk, 'a')}/status", {}, content_type=MERGE_PATCH)
    assert answer.status == 404


SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.size",
    "labelSelectorPath": ".status.selector",
}


async def test_scale_paths_come_from_the_crd(talk: Talk) -> None:
    await defined(talk, version(subresources={"scale": SCALE, "status": {}}))
    await talk.made(path(talk), widget(talk, spec={"size": 2}))
    await talk(
        "PATCH", f"{path(talk, 'a')}/status", {"status": {"size": 1, "selector": "a=b"}}, content_type=MERGE_PATCH
    )
    await talk("GET", f"{path(talk, 'a')}/scale")
    await talk("PUT", f"{path(talk, 'a')}/scale", {"metadata": {"name": "a"}, "spec": {"replicas": 5}})
    answer = await talk("GET", path(talk, "a"), shown=lambda body: body["spec"])
    assert answer.body["spec"] == {"size": 5}


async def test_scale_without_replicas_is_500(talk: Talk) -> None:
    await defined(talk, version(subresources={"scale": SCALE}))
    await talk.made(path(talk), widget(talk))
    answer = await talk("GET", f"{path(talk, 'a')}/scale")
    assert answer.status == 500


async def test_object_is_read_in_every_served_version(talk: Talk) -> None:
    await defined(talk, version("v1"), version("v2"), version("v1beta1", deprecated=True))
    await talk.made(path(talk), widget(talk, spec={"size": 1}))
    await talk("GET", path(talk, "a", "v2"))
    await talk("GET", path(talk, "a", "v1beta1"))
    await talk("PATCH", path(talk, "a", "v2"), {"spec": {"size": 2}}, content_type=MERGE_PATCH)
    await talk("GET", path(talk))
    group = f"/apis/{talk.namespace}.example.com"
    answer = await talk.until(group, lambda answer: len(answer.body.get("versions", ())) == 3)
    assert answer.body["preferredVersion"]["version"] == "v2"


async def test_deprecated_version_returns_its_warning(talk: Talk) -> None:
    old = version("v1beta1", deprecated=True, deprecationWarning="use v1 instead")
    await defined(talk, version(), old)
    answer = await talk("POST", path(talk, api_version="v1beta1"), widget(talk, "v1beta1"))
    assert "use v1 instead" in answer.headers["Warning"]


async def test_unserved_version_is_404(talk: Talk) -> None:
    await defined(talk, version(), version("v2") | {"served": False})
    answer = await talk("GET", path(talk, api_version="v2"))
    assert answer.status == 404


async def test_selectable_fields_select(talk: Talk) -> None:
    schema = with_spec(colour={"type": "string"}, size={"type": "integer"})
    await defined(talk, version(schema=schema, selectableFields=[{"jsonPath": ".spec.colour"}]))
    await talk.made(path(talk), widget(talk, spec={"colour": "red"}))
    await talk("GET", f"{path(talk)}?fieldSelector=spec.colour%3Dred")
    await talk("GET", f"{path(talk)}?fieldSelector=spec.colour%3Dblue")
    answer = await talk("GET", f"{path(talk)}?fieldSelector=spec.size%3D1")
    assert answer.status == 400


async def test_printer_columns(talk: Talk) -> None:
    columns = [
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "description": "what it looks like"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
    ]
    await defined(talk, version(additionalPrinterColumns=columns))
    await talk.made(path(talk), widget(talk, spec={"colour": "red"}))
    answer = await talk("GET", path(talk), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert answer.body["rows"][0]["cells"] == ["a", "red", None]


async def test_deleting_the_crd_deletes_its_objects(talk: Talk) -> None:
    where = await defined(talk)
    await talk.made(path(talk), widget(talk))
    async with talk.watching(f"{path(talk)}?watch=1&resourceVersion=0") as watching:
        await watching.read()
        await talk("DELETE", where, kept=False)
        await watching.read()
    await talk.until(where, lambda answer: answer.status == 404)
    answer = await talk.until(path(talk), lambda answer: answer.status == 404)
    assert answer.body == "404 page not found\n"


async def test_crd_with_taken_names_is_not_accepted(talk: Talk) -> None:
    await defined(talk)
    names = {"plural": "gadgets", "kind": "Widget"}
    other = await talk.made(DEFINITIONS, definition(talk, names=names))
    where = f"{DEFINITIONS}/{other['metadata']['name']}"
    answer = await talk.until(where, lambda answer: bool(answer.body["status"]["conditions"]))
    assert answer.body["status"]["conditions"][0]["status"] == "False"


async def test_crd_is_accepted_once_names_are_free(talk: Talk) -> None:
    where = await defined(talk)
    other = await talk.made(DEFINITIONS, definition(talk, names={"plural": "gadgets", "kind": "Widget"}))
    waiting = f"{DEFINITIONS}/{other['metadata']['name']}"
    await talk.until(waiting, lambda answer: bool(answer.body["status"]["conditions"]), kept=False)
    await talk("DELETE", where, kept=False)
    await talk.until(waiting, _is_established, kept=False)
    answer = await talk("GET", waiting, shown=lambda body: body["status"])
    assert answer.body["status"]["acceptedNames"]["kind"] == "Widget"


async def test_cel_rules_are_enforced(talk: Talk) -> None:
    schema = with_spec(size={"type": "integer"})
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": "self.size < 3", "message": "too large"}]
    await defined(talk, version(schema=schema))
    answer = await talk("POST", path(talk), widget(talk, spec={"size": 4}))
    assert answer.status == 422


INVALID: dict[str, Any] = {
    "no_spec": (("spec",), {}),
    "no_group": (("spec", "group"), ""),
    "no_kind": (("spec", "names", "kind"), ""),
    "bad_kind": (("spec", "names", "kind"), "a_b"),
    "bad_plural": (("spec", "names", "plural"), "Wid_gets"),
    "bad_short_name": (("spec", "names", "shortNames"), ["W_"]),
    "bad_scope": (("spec", "scope"), "Everywhere"),
    "no_scope": (("spec", "scope"), ""),
    "no_versions": (("spec", "versions"), []),
    "no_schema": (("spec", "versions"), [{"name": "v1", "served": True, "storage": True}]),
    "no_storage": (("spec", "versions"), [version("v2")]),
    "two_storages": (("spec", "versions"), [version("v1"), version("v2") | {"storage": True}]),
    "twice": (("spec", "versions"), [version("v1"), version("v1") | {"storage": False}]),
    "bad_version": (("spec", "versions"), [version("v1"), version("V_2")]),
    "other_name": (("metadata", "name"), "bad"),
    "not_structural": (("spec", "versions"), [version(schema={"properties": {"spec": {}}})]),
    "no_type": (("spec", "versions"), [version(schema={"type": "object", "properties": {"spec": {}}})]),
    "array_without_items": (("spec", "versions"), [version(schema=with_spec(list={"type": "array"}))]),
    "bad_type": (("spec", "versions"), [version(schema=with_spec(x={"type": "text"}))]),
    "bad_default": (("spec", "versions"), [version(schema=with_spec(x={"type": "integer", "default": "1"}))]),
    "keys_without_map": (
        ("spec", "versions"),
        [
            version(
                schema=with_spec(x={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]})
            )
        ],
    ),
    "no_keys": (
        ("spec", "versions"),
        [version(schema=with_spec(x={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}))],
    ),
    "both_properties": (
        ("spec", "versions"),
        [
            version(
                schema=with_spec(
                    x={"type": "object", "properties": {"a": ANYTHING}, "additionalProperties": {"type": "string"}}
                )
            )
        ],
    ),
    "webhook": (("spec", "conversion"), {"strategy": "Webhook"}),
    "bad_conversion": (("spec", "conversion"), {"strategy": "Magic"}),
    "bad_pattern": (("spec", "versions"), [version(schema=with_spec(x={"type": "string", "pattern": "["}))]),
    "scale_without_path": (("spec", "versions"), [version(subresources={"scale": {}})]),
    "bad_column": (
        ("spec", "versions"),
        [version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": "a"}])],
    ),
    "bad_selectable": (("spec", "versions"), [version(schema=with_spec(), selectableFields=[{"jsonPath": ".spec.x"}])]),
}


@pytest.mark.parametrize("case", INVALID)
async def test_crd_is_validated(talk: Talk, case: str) -> None:
    *parents, last = INVALID[case][0]
    obj = definition(talk)
    place = obj
    for part in parents:
        place = place[part]
    place[last] = INVALID[case][1]
    answer = await talk("POST", DEFINITIONS, obj)
    assert answer.status in (400, 422)


@pytest.mark.parametrize("field", ["scope", "group", "plural", "kind"])
async def test_crd_identity_is_immutable(talk: Talk, field: str) -> None:
    where = await defined(talk)
    spec = {"scope": {"scope": "Cluster"}, "group": {"group": "example.com"}}
    patch = spec.get(field, {"names": {field: "others"}})
    answer = await talk("PATCH", where, {"spec": patch}, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)
