"""`custom_resource`: the resource and the definition of a declaration."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from aioinformer import Resource, UsageError
from aioinformer.cli.projects.compatibility import breaks
from aioinformer.cli.projects.definitions import spec_differences
from aioinformer.client import set_controller_reference
from aioinformer.crds import KEEP_UNKNOWN, Column, CustomResource, Scale, custom_resource, rules
from aioinformer.errors import OptionError
from aioinformer.models import ObjectMeta
from aioinformer.resources import ObjectReference, get_reference
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


def test_definition_has_labels_and_annotations() -> None:
    body = declared(labels={"app": "web"}, annotations={"example.com/owner": "a team"})
    assert body["metadata"]["labels"] == {"app": "web"}
    assert body["metadata"]["annotations"] == {"example.com/owner": "a team"}


def test_group_of_kubernetes_needs_an_approval() -> None:
    with pytest.raises(OptionError, match=r"web\.k8s\.io.*api-approved\.kubernetes\.io"):
        custom_resource(Website, "web.k8s.io", "v1")
    approved = {"api-approved.kubernetes.io": "unapproved, an experiment"}
    assert custom_resource(Website, "web.k8s.io", "v1", annotations=approved).crd()["metadata"]["annotations"]


def test_group_whose_name_ends_like_one_of_kubernetes_needs_no_approval() -> None:
    for group in ("myk8s.io", "notkubernetes.io"):
        assert custom_resource(Website, group, "v1").group == group


def test_labels_are_texts() -> None:
    with pytest.raises(OptionError, match="labels: expected texts, not 'tier': 1"):
        declared(labels={"tier": 1})


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
    assert old["subresources"] == {"status": {}}


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
        ({"served": "false"}, "served: expected True or False, not 'false'"),
        ({"deprecated": 1}, "deprecated: expected a warning, or True for that of the server, not 1"),
        ({"deprecated": "use\nv2"}, "deprecated: expected at most 256 bytes in one line"),
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
    assert spec_differences(changed(SPEC, more={"type": "string"}), changed("")) == [
        "versions.v1.spec.more: missing; the class has {'type': 'string'}"
    ]
    found = changed(f"{SPEC}/replicas", minimum=1, maximum=None, multipleOf=2)
    path = "versions.v1.spec.replicas"
    assert spec_differences(changed(""), found) == [
        f"{path}: maximum is missing; the class has 100",
        f"{path}: minimum is 1; the class has 0",
        f"{path}: multipleOf is 2; the class does not have it",
    ]
    other = changed(SPEC, more={"type": "string"})
    other["spec"]["names"]["shortNames"] = ["site"]
    other["spec"]["versions"][0]["served"] = False
    other["spec"]["versions"].append({"name": "v2"})
    assert spec_differences(changed(""), other) == [
        "names.shortNames: ['site']; the class has ['web']",
        "versions.v1.served: False; the class has True",
        "versions.v1.spec.more: {'type': 'string'}; the class does not have it",
        "versions.v2: {'name': 'v2'}; the class does not have it",
    ]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (changed(f"{SPEC}/replicas", minimum=1), "versions.v1.spec.replicas: minimum is now 1"),
        (changed(f"{SPEC}/replicas", exclusiveMinimum=True), "versions.v1.spec.replicas: minimum is now 0"),
        (changed(f"{SPEC}/replicas", maximum=9), "versions.v1.spec.replicas: maximum is now 9"),
        (
            changed(f"{SPEC}/replicas", type="string", minimum=None, maximum=None),
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
        "scope: changed from Namespaced to Cluster: it is another resource",
        "names.shortNames: web removed",
    ]


def test_deprecated_version_has_a_warning_of_its_own_or_that_of_the_server() -> None:
    versions = [declared(deprecated=each)["spec"]["versions"][0] for each in ("use v2", True, False, "")]
    shown = [(each.get("deprecated"), each.get("deprecationWarning")) for each in versions]
    assert shown == [(True, "use v2"), (True, None), (None, None), (None, None)]


# Versions between which the server does not convert.


def version(name: str, fields: dict[str, Any], *, served: bool = True, keep: bool = False) -> CustomResource[Any]:
    spec = msgspec.defstruct("Spec", [(field, kind, None) for field, kind in fields.items()])
    if keep:
        spec = rules(KEEP_UNKNOWN)(spec)
    cls = msgspec.defstruct("Thing", [("metadata", ObjectMeta), ("spec", spec)])
    return custom_resource(cls, "example.com", name, storage=False, served=served)


def together(fields: dict[str, Any], *others: CustomResource[Any]) -> CustomResource[Any]:
    spec = msgspec.defstruct("Spec", [(field, kind, None) for field, kind in fields.items()])
    cls = msgspec.defstruct("Thing", [("metadata", ObjectMeta), ("spec", spec)])
    return custom_resource(cls, "example.com", "v1", others=others)


class Part(msgspec.Struct, frozen=True):
    name: str


class LongPart(msgspec.Struct, frozen=True):
    name: str
    size: int = 0


@pytest.mark.parametrize(
    ("new", "old", "told"),
    [
        ({"a": int, "b": str}, {"a": int}, "spec.b is in v1 only, and a write through v1beta1 removes it"),
        ({"a": int}, {"a": int, "b": str}, "spec.b is in v1beta1 only, and a write through v1 removes it"),
        ({"a": int}, {"a": str}, "spec.a is integer in v1 and string in v1beta1"),
        ({"a": int}, {"a": Any}, "spec.a is integer in v1 and any JSON in v1beta1"),
        ({"a": list[LongPart]}, {"a": list[Part]}, "spec.a[].size is in v1 only, and a write through v1beta1"),
        ({"a": dict[str, LongPart]}, {"a": dict[str, Part]}, "spec.a{}.size is in v1 only, and a write through"),
        ({"a": dict[str, str]}, {"a": Part}, "spec.a{} is in v1 only, and a write through v1beta1 removes it"),
    ],
)
def test_versions_that_differ_are_refused(new: dict[str, Any], old: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=f"others: v1 and v1beta1 of Thing differ, .*{re.escape(told)}"):
        together(new, version("v1beta1", old))


def test_versions_that_lose_nothing_are_accepted() -> None:
    same = {"a": int, "b": list[Part], "c": dict[str, int]}
    together(same, version("v1beta1", same), version("v1alpha1", {"a": str}, served=False))
    together({"a": int, "b": str}, version("v1beta1", {"a": int}, keep=True))
    others = version("v1beta1", {"b": int}, keep=True), version("v1alpha1", {"c": int})
    with pytest.raises(OptionError, match="others: v1 and v1alpha1 of Thing differ"):
        together({"a": Annotated[int, Meta(ge=1)], "b": int, "c": int}, *others)


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
