"""`custom_resource`: the resource and the definition of a declaration."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import Resource, UsageError
from aioinformer.cli.projects.definitions import breaks, spec_differences
from aioinformer.client import set_controller_reference
from aioinformer.crds import Column, Scale, custom_resource
from aioinformer.errors import OptionError
from aioinformer.models import ObjectMeta
from aioinformer.resources.references import ObjectReference, get_reference
from tests.support.declared_classes import OldWebsite, Tenant, Website

OLD = custom_resource(OldWebsite, "example.com", "v1beta1", kind="Website", storage=False, deprecated="use v1")


def declared(**options: Any) -> dict[str, Any]:
    return custom_resource(Website, "example.com", "v1", **options).crd()


def test_declaration_is_a_resource_with_its_class_as_decoder() -> None:
    websites = custom_resource(Website, "example.com", "v1", short_names=["web"])
    assert isinstance(websites, Resource)
    assert (websites.gvr, websites.singular, websites.decoder) == ("example.com/v1/websites", "website", Website)
    assert websites.subresources == ("status",)
    assert {websites: 1}[custom_resource(Website, "example.com", "v1", short_names=["web"])] == 1


@pytest.mark.parametrize(
    ("kind", "plural"), [("Policy", "policies"), ("Proxy", "proxies"), ("Box", "boxes"), ("Key", "keys")]
)
def test_plural_is_that_of_english(kind: str, plural: str) -> None:
    assert custom_resource(Website, "example.com", "v1", kind=kind).plural == plural


def test_definition_has_names_versions_columns_and_subresources() -> None:
    body = declared(
        categories=["all"],
        scale=Scale(selector=".status.selector"),
        columns=[Column("Replicas", ".spec.replicas", priority=1), Column("Age", ".metadata.creationTimestamp")],
        selectable=[".spec.image"],
        others=[OLD],
    )
    assert body["metadata"] == {"name": "websites.example.com"}
    spec = body["spec"]
    assert spec["names"]["listKind"] == "WebsiteList"
    version, old = spec["versions"]
    assert (version["storage"], old["storage"], old["deprecationWarning"]) == (True, False, "use v1")
    assert version["subresources"]["scale"]["labelSelectorPath"] == ".status.selector"
    assert version["additionalPrinterColumns"][0]["type"] == "integer"
    assert version["additionalPrinterColumns"][1]["type"] == "date"
    assert version["selectableFields"] == [{"jsonPath": ".spec.image"}]
    assert "subresources" not in old


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"columns": [Column("Size", ".spec.size")]}, "Website: columns: '.spec.size' names no field"),
        ({"selectable": [".status.conditions"]}, "Website: selectable: .status.conditions must be a text"),
        ({"scale": Scale(".spec.image")}, "Website: scale: .spec.image must be of type integer"),
    ],
)
def test_path_without_a_field_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told.replace(".", r"\.")):
        declared(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "website"}, "kind: expected letters and digits"),
        ({"plural": "Websites"}, "plural: expected lower-case"),
        ({"short_names": "web"}, 'short_names: give a list of names, not the text "web"'),
        (
            {"others": [custom_resource(Tenant, "example.com", "v2")]},
            "others: example.com/v2/tenants is another resource",
        ),
        ({"others": [OLD], "storage": False}, "storage: one of the versions must be stored, not none"),
    ],
)
def test_invalid_declaration_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        declared(**options)


def test_group_must_be_a_domain() -> None:
    with pytest.raises(OptionError, match="group: expected a domain"):
        custom_resource(Website, "example", "v1")


def test_definition_of_a_server_has_no_spec_differences() -> None:
    body = declared(others=[OLD])
    stored = {**body, "status": {"conditions": []}, "spec": {**body["spec"], "conversion": {"strategy": "None"}}}
    stored["spec"]["versions"] = stored["spec"]["versions"][::-1]
    assert spec_differences(body, stored) == []


def changed(path: str, **keywords: Any) -> dict[str, Any]:
    """Return the definition with other keywords at a path of the first version; None removes one."""
    body = declared(scale=Scale(), selectable=[".spec.image"], short_names=["web"])
    here = body["spec"]["versions"][0]
    for part in path.split("/") if path else ():
        here = here[part]
    for name, value in keywords.items():
        here[name] = value
        if value is None:
            del here[name]
    return body


SCHEMA = "schema/openAPIV3Schema"
SPEC = f"{SCHEMA}/properties/spec/properties"


def test_each_difference_is_a_line() -> None:
    found = changed(f"{SPEC}/replicas", minimum=1, maximum=None, multipleOf=2)
    path = "spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties.replicas"
    assert spec_differences(changed(""), found) == [
        f"{path}.maximum: missing; the class has 100",
        f"{path}.minimum: 1; the class has 0",
        f"{path}.multipleOf: 2; which the class does not have",
    ]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (changed(f"{SPEC}/replicas", minimum=1), "versions.v1.spec.replicas: minimum is now 1"),
        (changed(f"{SPEC}/replicas", exclusiveMinimum=True), "versions.v1.spec.replicas: minimum is now 0"),
        (changed(f"{SPEC}/replicas", maximum=9), "versions.v1.spec.replicas: maximum is now 9"),
        (
            changed(f"{SPEC}/replicas", type="string", minimum=None, maximum=None, default=None),
            "versions.v1.spec.replicas: type narrowed from integer to string",
        ),
        (changed(f"{SPEC}/image", pattern="a"), "versions.v1.spec.image: pattern changed from none to a"),
        (changed(f"{SPEC}/image", enum=["a"]), "versions.v1.spec.image: only ['a'] are accepted now"),
        (changed(SPEC, host=None), "versions.v1.spec.host: removed"),
        (changed(f"{SCHEMA}/properties/spec", required=["host", "image"]), "versions.v1.spec.host: newly required"),
        (changed("", served=False), "versions.v1: no longer served"),
        (changed("", name="v2"), "versions.v1: removed; objects may be stored in it"),
        (changed("subresources", scale=None), "versions.v1: subresource scale removed"),
        (changed("", selectableFields=[]), "versions.v1: .spec.image is no longer selectable"),
        (changed(SCHEMA, **{"x-kubernetes-validations": [{"rule": "false"}]}), "versions.v1: rule 'false' is new"),
    ],
)
def test_break_is_named(new: dict[str, Any], told: str) -> None:
    assert breaks(changed(""), new) == [told]


@pytest.mark.parametrize(
    "new",
    [
        changed(f"{SPEC}/replicas", minimum=None),
        changed(f"{SPEC}/replicas", type="number"),
        changed(SPEC, more={"type": "string"}),
        changed(f"{SCHEMA}/properties/spec", required=None),
        changed(f"{SPEC}/image", nullable=True, description="what it runs"),
    ],
)
def test_wider_definition_breaks_nothing(new: dict[str, Any]) -> None:
    assert breaks(changed(""), new) == []


def test_other_scope_and_names_break() -> None:
    new = declared(namespaced=False)
    assert breaks(declared(short_names=["web"]), new) == [
        "spec.scope: changed from Namespaced to Cluster: it is another resource",
        "spec.names.shortNames: web removed",
    ]


# The kind of an object, by its class.


class Named(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


def test_objects_of_the_class_have_its_kind() -> None:
    custom_resource(Named, "example.com", "v1beta1", storage=False)
    custom_resource(Named, "example.com", "v1")
    custom_resource(Named, "example.com", "v2", storage=False)
    owner = Named(ObjectMeta(name="o", namespace="ns", uid="u"))
    assert get_reference(owner) == ObjectReference("example.com/v1", "Named", "o", "ns", "u")
    made: dict[str, Any] = {"metadata": {"name": "c", "namespace": "ns"}}
    child = set_controller_reference(made, owner)
    (reference,) = child["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"], reference["uid"]) == ("example.com/v1", "Named", "u")


class Derived(Named, frozen=True):
    """Not declared, though its base is."""


def test_class_of_no_kind_or_of_several_is_an_error_with_the_remedy() -> None:
    custom_resource(Named, "example.com", "v1")
    with pytest.raises(UsageError, match=r"Derived o has no kind: .* custom_resource\(\), or pass an ObjectReference"):
        get_reference(Derived(ObjectMeta(name="o")))
    both = msgspec.defstruct("Both", [("metadata", ObjectMeta)])
    custom_resource(both, "example.com", "v1")
    custom_resource(both, "example.com", "v1", kind="Other")
    with pytest.raises(UsageError, match=r"Both is the class of Both.example.com and Other.example.com"):
        get_reference(both(ObjectMeta(name="o")))
