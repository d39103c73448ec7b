"""The structural schema of a class: what each type becomes, and what is refused."""

from __future__ import annotations

import decimal
import ipaddress
import re
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import Meta

from aioinformer import UsageError
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.client.changes.patches import document_of
from aioinformer.crds import INT32, LIST_SET, custom_resource, list_map, rule, rules
from aioinformer.crds.structural import find
from aioinformer.models import (
    ObjectMeta,
    apiextensions_v1,
    batch_v1,
    certificates_v1beta1,
    core_v1,
    resource_v1,
)
from aioinformer.testing import ApiServer, StatusError
from tests.support.declared_classes import FIELDS, MODEL_FIELDS, Pet, Tenant, Website, class_with, model_with
from tests.support.schema_values import values


def schema_with(annotation: Any, default: Any = msgspec.NODEFAULT) -> dict[str, Any]:
    """Return the schema of a field."""
    cls = msgspec.defstruct("Spec", [("value", annotation, default)], module=__name__)
    return dict(custom_resource(cls, "example.com", "v1").schema()["properties"]["value"])


def refused(annotation: Any) -> str:
    """Return the error for a field."""
    with pytest.raises(UsageError) as caught:
        schema_with(annotation)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("optional", {"type": "integer"}),
        ("nullable", {"type": "string", "nullable": True}),
        ("unset-or-null", {"type": "integer", "nullable": True}),
        ("null-beside-default", {"type": "integer", "nullable": True, "default": 3}),
        (
            "open-bounds",
            {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
        ),
        ("enumeration", {"type": "string", "enum": ["red", "green"], "default": "red"}),
        ("literal-or-null", {"type": "string", "pattern": "^(red)$", "nullable": True}),
        ("int-or-string", {"x-kubernetes-int-or-string": True}),
        ("open-map", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("set", {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        ("map", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("class-rule", {"minimum": 0, "maximum": 10}),
    ],
)
def test_type_becomes(name: str, schema: dict[str, Any]) -> None:
    found = schema_with(*FIELDS[name])
    assert (found["default"] if name == "class-rule" else found) == schema


def test_tagged_union_is_one_object_with_a_branch_for_each_class() -> None:
    found = schema_with(*FIELDS["tagged"])
    assert found["properties"]["type"] == {"type": "string", "enum": ["bucket", "disk"]} or found["properties"]["type"][
        "enum"
    ] == ["disk", "bucket"]
    branches = {each["properties"]["type"]["enum"][0]: each for each in found["oneOf"]}
    assert branches["disk"]["required"] == ["size", "type"]
    assert branches["bucket"]["not"] == {"anyOf": [{"required": ["size"]}]}
    assert "default" not in found["properties"]["label"]


def test_descriptions_come_from_docstrings_and_annotations() -> None:
    found = custom_resource(Website, "example.com", "v1").schema()
    assert found["description"] == "A website, and its pods."
    spec = found["properties"]["spec"]["properties"]
    assert spec["host"]["description"] == "The name under which it is served."
    assert spec["replicas"]["description"] == "How many pods serve it."
    port = schema_with(*FIELDS["list-map"])["items"]
    assert port["description"] == "A port of a service."
    assert port["properties"]["number"]["description"] == "the port on the node."


class Limits(msgspec.Struct):
    """The limits of something."""

    most: int


class Limited(msgspec.Struct):
    """What the user wants.

    Attributes:
        limits: of the pods.
    """

    limits: Limits
    others: Limits | None = None


def test_text_of_a_field_precedes_that_of_its_class() -> None:
    properties = custom_resource(Limited, "example.com", "v1").schema()["properties"]
    assert properties["limits"]["description"] == "of the pods."
    assert properties["others"]["description"] == "The limits of something."


def test_class_of_a_union_may_not_contain_itself() -> None:
    for annotation in (Leaf | Branch, Leaf | Branch | None):
        assert "Branch contains itself" in refused(annotation)


def test_rules_of_class_and_field_both_apply() -> None:
    @rules(rule("self.a > 0", message="must be positive"))
    class Part(msgspec.Struct):
        a: int

    found = schema_with(Annotated[Part, rule("self.a < 9")])
    assert [each["rule"] for each in found["x-kubernetes-validations"]] == ["self.a > 0", "self.a < 9"]
    optional = schema_with(Annotated[Part | None, rule("self.a < 9")], None)
    assert [each["rule"] for each in optional["x-kubernetes-validations"]] == ["self.a > 0", "self.a < 9"]


def test_pydantic_fields_have_constraints_rules_and_json_names() -> None:
    spec = custom_resource(Pet, "example.com", "v1").schema()["properties"]["spec"]
    size = spec["properties"]["size"]
    assert (size["minimum"], size["maximum"], size["exclusiveMaximum"]) == (1, 100, True)
    assert size["x-kubernetes-validations"] == [{"rule": "self != 13"}]
    assert "knownAs" in spec["properties"]
    assert spec["properties"]["names"]["x-kubernetes-list-type"] == "set"
    assert spec["properties"]["animal"]["required"] == ["kind"]
    assert spec["required"] == ["animal", "size"]


@pytest.mark.parametrize("pattern", [r"a*+", r"[*+]a++", r"\[a*+\]", r"(?=a)", r"[(]\1"])
def test_pattern_that_the_server_does_not_know_is_refused(pattern: str) -> None:
    extra = Meta(extra_json_schema={"pattern": pattern})
    assert "the API server does not know" in refused(Annotated[str, extra])


def test_type_of_the_api_has_the_schema_of_the_server() -> None:
    template = schema_with(core_v1.PodTemplateSpec)
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    container = containers["items"]
    assert container["required"] == ["name"]
    assert container["properties"]["name"] == {"type": "string"}
    ports = container["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}
    assert ports["items"]["properties"]["containerPort"] == {"type": "integer", "format": "int32"}
    probe = container["properties"]["livenessProbe"]["properties"]
    assert probe["httpGet"]["properties"]["port"] == {"x-kubernetes-int-or-string": True}
    limit = container["properties"]["resources"]["properties"]["limits"]["additionalProperties"]
    assert limit["x-kubernetes-int-or-string"]
    assert "pattern" in limit
    assert "default" not in container["properties"]["resources"]


@pytest.mark.parametrize("annotation", [core_v1.Probe, core_v1.Probe | None])
def test_pydantic_and_msgspec_have_one_schema_of_a_type_of_the_api(annotation: Any) -> None:
    model = pydantic.create_model("Spec", value=(annotation, ...))
    found = custom_resource(model, "example.com", "v1").schema()["properties"]["value"]
    assert found == schema_with(annotation)


def test_fields_of_the_api_are_described_on_request() -> None:
    cls = msgspec.defstruct("Spec", [("probe", core_v1.Probe), ("own", str)], module=__name__)
    plain = custom_resource(cls, "example.com", "v1")
    described = custom_resource(cls, "example.com", "v1", api_descriptions=True)
    assert "description" not in str(plain.schema())
    probe = described.schema()["properties"]["probe"]
    assert probe["description"].startswith("Probe describes a health check")
    assert "description" in probe["properties"]["httpGet"]["properties"]["port"]


def test_type_of_an_api_that_is_not_served_by_default_is_refused() -> None:
    assert "Spec.value: the schema of ClusterTrustBundleSpec is not known" in refused(
        certificates_v1beta1.ClusterTrustBundleSpec
    )


def test_quantity_of_the_api_is_text_also_if_it_is_sent_as_an_integer() -> None:
    volume = msgspec.json.decode(b'{"sizeLimit": 1024}', type=core_v1.EmptyDirVolumeSource)
    assert volume.size_limit == "1024"
    policy = msgspec.json.decode(b'{"validValues": [1, "2Gi"]}', type=resource_v1.CapacityRequestPolicy)
    assert policy.valid_values == ("1", "2Gi")


def test_dataclass_defaults_and_required_fields() -> None:
    found = custom_resource(Tenant, "example.com", "v1").schema()
    assert found["required"] == ["spec"]
    assert found["properties"]["either"] == {"x-kubernetes-int-or-string": True, "default": 1}
    assert "metadata" not in found["properties"]


def test_default_that_differs_with_each_object_is_left_to_the_class() -> None:
    assert "default" not in schema_with(int, msgspec.field(default_factory=iter(range(9)).__next__))


class Node(msgspec.Struct):
    children: list[Node]


class Tree(pydantic.BaseModel):
    parts: list[Tree]


class Leaf(msgspec.Struct, tag=True):
    size: int


class Branch(msgspec.Struct, tag=True):
    parts: list[Leaf | Branch]


class Row(msgspec.Struct, array_like=True):
    a: int


class Here(msgspec.Struct, tag="here"):
    x: int


class There(msgspec.Struct, tag="there"):
    x: str


class Custom: ...


class Holder(msgspec.Struct):
    job: batch_v1.Job | None = None


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (Node, "Node.children (.value.children[]): Node contains itself"),
        (apiextensions_v1.JSONSchemaProps, "contains itself"),
        (dict[int, str], "Spec.value: the keys of a map must be str"),
        (dict[Annotated[str, Meta(pattern="a")], str], "Spec.value: a schema cannot constrain keys"),
        (Row, "Spec.value: Row is an array in JSON"),
        (tuple[int, str], "Spec.value: a tuple with a type for each position"),
        (list[int] | str, "Spec.value: a union of array, string has no schema"),
        (Here | There, "Spec.value: x of There has another type than in another class of the union"),
        (Annotated[str, Meta(pattern="a(?=b)")], "the API server does not know '(?=' of the pattern"),
        (Annotated[list[int], list_map("name")], "list_map() is for lists of objects"),
        (Annotated[list[Node | None], LIST_SET], "contains itself"),
        (Annotated[list[dict[str, int]], LIST_SET], "the members of a set must be"),
        (Annotated[list[Here], list_map("name")], "list_map('name'): its members have no such field"),
        (Literal[1, None], "Spec.value: one of some numbers or None has no schema"),
        (Annotated[int, INT32, Meta(le=2**32 - 1)], "Spec.value: maximum 4294967295 is no integer of 32 bits"),
        (Annotated[int, INT32, Meta(gt=-(2**40))], "Spec.value: minimum -1099511627776 is no integer of 32 bits"),
        (Annotated[int, Meta(le=2**63 - 1)], "Spec.value: maximum 9223372036854775807 is no integer of 64 bits"),
        (Custom, "Spec.value: msgspec knows no JSON form of Custom"),
        (core_v1.Pod, "Spec.value has the class of whole objects, Pod, which come from the server; use EmbeddedPod of"),
        (list[Holder] | None, "Holder.job has the class of whole objects, Job, which come from the server; use Embe"),
    ],
)
def test_what_a_schema_cannot_say_is_an_error_with_class_and_field(annotation: Any, told: str) -> None:
    assert told in refused(annotation)


def test_class_that_contains_itself_is_refused_for_pydantic_too() -> None:
    class Forest(pydantic.BaseModel):
        tree: Tree

    for cls, told in ((Forest, "Tree contains itself"), (Tree, "contains itself")):
        with pytest.raises(UsageError, match=told):
            custom_resource(cls, "example.com", "v1").schema()


def test_two_fields_of_one_json_name_are_refused() -> None:
    class Twice(pydantic.BaseModel):
        a: int = pydantic.Field(alias="x")
        b: int = pydantic.Field(alias="x")

    with pytest.raises(UsageError, match=r"Twice\.x: two fields have this JSON name"):
        custom_resource(Twice, "example.com", "v1").schema()


def test_pydantic_union_of_several_types_is_refused() -> None:
    class Mixed(pydantic.BaseModel):
        value: list[int] | str

    with pytest.raises(UsageError, match=r"Mixed\.value: a union of array, string has no schema"):
        custom_resource(Mixed, "example.com", "v1").schema()


class ListOf(pydantic.RootModel[list[int]]):
    """A model without fields."""


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (pydantic.SecretStr, "a secret does not belong in a resource"),
        (pydantic.SecretBytes | None, "a secret does not belong in a resource"),
        (list[pydantic.Secret[int]], "a secret does not belong in a resource"),
        (ListOf, "ListOf is a RootModel, which has no fields; write the type of its root instead"),
        (pydantic.NaiveDatetime, "times have a time zone in Kubernetes; use AwareDatetime or datetime"),
        (Annotated[decimal.Decimal, pydantic.Field(ge=1)], "a schema cannot say ge of a Decimal"),
        (Annotated[bytes, pydantic.Field(max_length=3)], "a schema cannot limit the length of bytes"),
        (list[ipaddress.IPv4Network], "the server checks a network by a rule, and accepts no rule for any number"),
        (dict[str, pydantic.IPvAnyNetwork], "limit the list or map around it"),
        (pydantic.Json, "a schema cannot say that a text is JSON"),
        (re.Pattern[str], "a schema cannot say that a text is a pattern"),
        (apiextensions_v1.JSONSchemaProps, "contains itself"),
    ],
)
def test_field_of_pydantic_without_a_schema_is_named(annotation: Any, told: str) -> None:
    model = pydantic.create_model("Model", value=(annotation, ...))
    with pytest.raises(UsageError) as caught:
        custom_resource(model, "example.com", "v1").schema()
    assert re.match(r"(Model|JSONSchemaProps)\.\w+", str(caught.value))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "fine", "refused"),
    [
        (ipaddress.IPv4Network, ["10.0.0.0/8", "10.0.0.1"], ["10.0.0.1/8", "10.0.0.0/33", "fd00::/8"]),
        (ipaddress.IPv6Network, ["fd00::/8", "::1"], ["fd00::1/8", "10.0.0.0/8"]),
        (pydantic.IPvAnyNetwork, ["10.0.0.0/8", "fd00::/8"], ["10.0.0.1/8", "fd00::1/8"]),
        (decimal.Decimal, ["1E+2000", "-1e-999999"], ["1E+1000000"]),
    ],
)
def test_server_refuses_what_the_model_refuses(annotation: Any, fine: list[str], refused: list[str]) -> None:
    model = pydantic.create_model("Probe", metadata=(ObjectMeta, ...), value=(annotation, ...))
    resource, server = custom_resource(model, "example.com", "v1"), ApiServer()
    server.create("customresourcedefinitions", resource.crd())
    for number, text in enumerate([*fine, *refused]):
        body = {"apiVersion": resource.api_version, "kind": "Probe", "metadata": {"name": f"p{number}"}, "value": text}
        if text in fine:
            server.create(resource.plural, body, "default")
        else:
            with pytest.raises(StatusError, match=r"value: Invalid value: "):
                server.create(resource.plural, body, "default")


def test_bytes_of_pydantic_have_the_form_that_the_model_writes() -> None:
    def of(**config: Any) -> Any:
        model = pydantic.create_model("Model", __config__=config, value=(bytes, ...))  # type: ignore[call-overload]
        return custom_resource(model, "example.com", "v1").schema()["properties"]["value"]

    assert of() == TEXT
    assert of(ser_json_bytes="hex", val_json_bytes="hex") == {**TEXT, "pattern": "^([0-9a-fA-F]{2})*$"}
    assert of(ser_json_bytes="base64", val_json_bytes="base64")["pattern"].startswith("^([A-Za-z0-9_-]{4})*")
    with pytest.raises(UsageError, match=r"Model\.value: ser_json_bytes and val_json_bytes differ"):
        of(ser_json_bytes="base64")


@pytest.mark.parametrize("name", MODEL_FIELDS)
def test_model_decodes_and_writes_what_the_server_for_tests_stores(name: str) -> None:
    resource = custom_resource(model_with(name), "example.com", "v1")
    server, objects, body = ApiServer(), ObjectType[Any](resource), resource.crd()
    server.create("customresourcedefinitions", body)
    names = iter(map(str, range(1000)))

    @settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values(resource.schema()["properties"]["spec"]))
    def check(spec: Any) -> None:
        made = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": next(names)}}
        try:
            stored = server.create(resource.plural, {**made, "spec": spec}, "default")
        except Exception:
            return  # the server refuses it
        obj = objects.to_view(objects.on_arrival(objects.record_of(stored)))
        again = {**made, "metadata": {"name": next(names)}, "spec": document_of(obj)["spec"]}
        server.create(resource.plural, again, "default")

    check()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.image", "string"),
        ('.status.conditions[?(@.type=="Ready")].status', "string"),
        (".spec.nothing", None),
        (".spec.image.name", None),
        (".spec..", None),
    ],
)
def test_path_finds_the_schema_of_a_field(path: str, found: str | None) -> None:
    schema = find(custom_resource(Website, "example.com", "v1").schema(), path)
    assert (schema and schema["type"]) == found


@pytest.mark.parametrize("name", FIELDS)
def test_definition_of_each_type_is_accepted_by_the_server_for_tests(name: str) -> None:
    body = custom_resource(class_with(name), "example.com", "v1").crd()
    stored = ApiServer().create("customresourcedefinitions", body)
    assert stored["spec"]["versions"][0]["schema"] == body["spec"]["versions"][0]["schema"]
    assert msgspec.json.decode(msgspec.json.encode(body)) == body
