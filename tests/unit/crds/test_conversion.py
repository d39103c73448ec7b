"""Conversion between versions: no step loses a value, whatever an object lacks, and live values win."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.crds import (
    ConversionError,
    Converter,
    CustomResource,
    Default,
    Function,
    Join,
    Map,
    Move,
    Split,
    custom_resource,
    list_map,
)
from aioinformer.crds.conversion import kept
from aioinformer.crds.conversion.kept import unreadable
from aioinformer.errors import OptionError
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec reads it
from tests.support.schema_values import values

OLD, NEW, OTHER = "example.com/v1alpha1", "example.com/v1", "example.com/v1beta1"


class OldPort(msgspec.Struct):
    name: str
    port: int = 0
    comment: str = ""


class OldSpec(msgspec.Struct):
    size: int | None = None
    address: str | None = None
    port: str | None = None
    level: str | None = None
    ports: Annotated[list[OldPort], list_map("name")] = []
    steps: list[OldPort] = []
    pools: dict[str, OldPort] = {}
    first: str | None = None
    last: str | None = None
    legacy: str | None = None


class OldSite(msgspec.Struct):
    metadata: ObjectMeta
    spec: OldSpec


class Port(msgspec.Struct):
    name: str
    number: int = 0
    protocol: str = "TCP"


class Scaling(msgspec.Struct):
    replicas: int | None = None
    most: int | None = None


class Spec(msgspec.Struct):
    scaling: Scaling | None = None
    host: str | None = None
    zone: str | None = None
    port: int | None = None
    level: int | None = None
    ports: Annotated[list[Port], list_map("name")] = []
    steps: list[Port] = []
    pools: dict[str, Port] = {}
    full: str | None = None
    tier: str | None = None
    extra: dict[str, Any] | None = None


class Site(msgspec.Struct):
    metadata: ObjectMeta
    spec: Spec


class OtherSpec(msgspec.Struct):
    host: str | None = None
    note: str | None = None


class OtherSite(msgspec.Struct):
    metadata: ObjectMeta
    spec: OtherSpec


def level_of(text: Any) -> Any:
    return {"low": 1, "high": 9}.get(text, 5) if isinstance(text, str) else text


def name_of(level: Any) -> Any:
    return ("low" if level < 5 else "high") if isinstance(level, (int, float)) else level


def number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else text


STEPS = [
    Move("spec.size", "spec.scaling.replicas"),
    Split("spec.address", ["spec.host", "spec.zone"], separator="/"),
    Map("spec.port", to=number, back=lambda value: str(value) if isinstance(value, int) else value),
    Map("spec.level", to=level_of, back=name_of),
    Move("spec.ports[].port", "spec.ports[].number"),
    Move("spec.steps[].port", "spec.steps[].number"),
    Move("spec.pools{}.port", "spec.pools{}.number"),
    Join(["spec.first", "spec.last"], "spec.full", separator=" "),
    Default("spec.tier", "basic"),
]


def sites(steps: Any = None, **options: Any) -> CustomResource[Site]:
    old = custom_resource(
        OldSite, "example.com", "v1alpha1", kind="Site", storage=False, conversion=STEPS if steps is None else steps
    )
    other = custom_resource(OtherSite, "example.com", "v1beta1", kind="Site", storage=False, conversion=[])
    return custom_resource(Site, "example.com", "v1", others=[old, other], **options)


CONVERTER = Converter(sites())


def site(version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "Site", "metadata": {"name": "a", "uid": "1"}, "spec": spec}


def convert(document: dict[str, Any], version: str) -> dict[str, Any]:
    before = copy.deepcopy(document)
    found = CONVERTER.convert(document, version)
    assert document == before
    return found


def test_steps_go_both_ways() -> None:
    old = site(
        OLD, size=3, address="web/eu", port="80", level="low", first="A", last="B C", ports=[{"name": "x", "port": 1}]
    )
    new = convert(old, NEW)
    assert new == site(
        NEW,
        scaling={"replicas": 3},
        host="web",
        zone="eu",
        port=80,
        level=1,
        full="A B C",
        tier="basic",
        ports=[{"name": "x", "number": 1}],
    )
    assert convert(new, OLD) == old


def test_fields_that_a_version_lacks_are_kept_in_an_annotation_only() -> None:
    new = site(NEW, host="web", extra={"a": [1]}, tier="gold")
    old = convert(new, OLD)
    assert old["spec"] == {}
    (name, text) = old["metadata"].pop("annotations").popitem()
    assert name == "aioinformer/lost-v1"
    assert {each["path"][-1]: each["value"] for each in json.loads(text)["kept"]} == {
        "host": "web",
        "extra": {"a": [1]},
        "tier": "gold",
    }
    assert old["metadata"] == new["metadata"]


def changed(document: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**document, "spec": {**document["spec"], **spec}}


def test_result_in_the_same_version_shares_nothing_with_the_given_object() -> None:
    for version in (OLD, NEW, OTHER):
        given = {"apiVersion": version, "kind": "Site", "metadata": {"name": "a"}, "spec": {}}
        result = CONVERTER.convert(given, version)
        result["metadata"]["name"] = "b"
        assert given["metadata"] == {"name": "a"}


def test_change_of_one_field_keeps_the_others() -> None:
    new = site(NEW, scaling={"replicas": 1, "most": 5}, level=7, host="web", extra={"a": 1})
    old = convert(new, OLD)
    assert convert(changed(old, size=2), NEW) == changed(new, scaling={"replicas": 2, "most": 5})
    assert convert(changed(old, level="low"), NEW) == changed(new, level=1)
    assert convert(changed(old, address="other/us"), NEW) == changed(new, host="other", zone="us")


def test_what_is_removed_is_not_restored() -> None:
    new = site(NEW, scaling={"replicas": 1, "most": 5}, level=7)
    old = convert(new, OLD)
    del old["spec"]["level"]
    assert "level" not in convert(old, NEW)["spec"]
    del old["spec"]
    assert "spec" not in convert(old, NEW)


def test_members_with_keys_keep_their_fields_wherever_they_move() -> None:
    new = site(
        NEW, ports=[{"name": "a", "number": 1, "protocol": "UDP"}, {"name": "b", "number": 2, "protocol": "SCTP"}]
    )
    old = convert(new, OLD)
    first, second = old["spec"]["ports"]
    moved = convert(changed(old, ports=[second | {"port": 9}, {"name": "c", "port": 3}, first]), NEW)
    assert moved["spec"]["ports"] == [
        {"name": "b", "number": 9, "protocol": "SCTP"},
        {"name": "c", "number": 3},
        {"name": "a", "number": 1, "protocol": "UDP"},
    ]


def test_members_without_keys_keep_their_fields_until_they_change() -> None:
    new = site(
        NEW, steps=[{"name": "a", "number": 1, "protocol": "UDP"}, {"name": "a", "number": 2, "protocol": "SCTP"}]
    )
    old = convert(new, OLD)
    first, second = old["spec"]["steps"]
    assert convert(changed(old, steps=[second]), NEW)["spec"]["steps"] == [new["spec"]["steps"][1]]
    found = convert(changed(old, steps=[first | {"port": 8}, second]), NEW)["spec"]["steps"]
    assert found == [{"name": "a", "number": 8}, new["spec"]["steps"][1]]


def test_equal_members_keep_each_its_own_fields() -> None:
    steps = [{"name": "a", "number": 1, "protocol": each} for each in ("UDP", "SCTP")]
    assert convert(convert(site(NEW, steps=steps), OLD), NEW)["spec"]["steps"] == steps


def equal_steps(*protocols: str) -> list[dict[str, Any]]:
    return [{"name": "a", "number": 1, "protocol": each} for each in protocols]


def test_equal_members_stay_apart_when_others_come_or_go() -> None:
    old = convert(site(NEW, steps=[{"name": "x", "number": 9}, *equal_steps("UDP", "SCTP")]), OLD)
    first, *equal = old["spec"]["steps"]
    without = convert(changed(old, steps=equal), NEW)
    assert without["spec"]["steps"] == equal_steps("UDP", "SCTP")
    more = convert(changed(old, steps=[{"name": "n", "port": 1}, first, *equal]), NEW)
    assert more["spec"]["steps"][2:] == equal_steps("UDP", "SCTP")


@pytest.mark.parametrize("field", ["steps", "ports"])
def test_one_of_equal_members_is_removed(field: str) -> None:
    defaults = [Default(f"spec.{each}[].protocol", "TCP") for each in ("steps", "ports")]
    others = [each for each in STEPS if "spec.tier" not in each.there]
    converter = Converter(sites([*defaults, *others]))
    new = site(NEW, **{field: [{"name": "a", "number": 1}, {"name": "a", "number": 1}]})
    old = converter.convert(new, OLD)
    del old["spec"][field][0]
    assert converter.convert(old, NEW)["spec"][field] == [{"name": "a", "number": 1}]


def test_members_of_a_long_list_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    old = convert(site(NEW, steps=[{"name": f"n{at}", "protocol": "UDP"} for at in range(500)]), OLD)
    digests: list[Any] = []
    digest = kept._digest

    def counted(value: Any) -> str:
        digests.append(value)
        return digest(value)

    monkeypatch.setattr(kept, "_digest", counted)
    new = convert(changed(old, steps=old["spec"]["steps"][1:]), NEW)
    assert [each["protocol"] for each in new["spec"]["steps"]] == ["UDP"] * 499
    assert len(digests) < 5_000


def annotated(*fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object with an annotation that its user has written, with a digest that is right."""
    text = json.dumps({"kept": fields, "sum": kept._digest(list(fields))})
    return {**site(OLD, steps=[{"name": "a"}]), "metadata": {"annotations": {"aioinformer/lost-v1": text}}}


def test_annotation_that_a_user_made_up_fails_no_conversion() -> None:
    tier = kept._digest("basic")
    twice = [{"path": ["spec", "tier"], "digest": tier}] * 2
    member = {"path": ["spec", "steps", {"digest": kept._digest({"name": "a"})}], "digest": kept._digest({"name": "a"})}
    below = [
        {"path": ["spec"], "value": 1, "digest": "x"},
        {"path": ["spec", "tier", "a", {"nth": -1}], "digest": tier},
    ]
    for fields in (twice, [member, member], below):
        assert convert(annotated(*fields), NEW)["spec"]["steps"] == [{"name": "a"}]


@pytest.mark.parametrize("metadata", [None, [], {"name": "a", "annotations": None}, {"name": "a", "annotations": []}])
def test_fields_are_kept_whatever_the_metadata_is(metadata: Any) -> None:
    new = {**site(NEW, tier="gold"), "metadata": metadata}
    assert convert(convert(new, OLD), NEW)["spec"] == {"tier": "gold"}


def test_version_by_way_of_the_hub_keeps_what_both_others_lack() -> None:
    old = site(OLD, size=2, legacy="x", address="web/eu")
    other = convert(old, OTHER)
    assert other["spec"] == {"host": "web"}
    assert convert(changed(other, note="seen"), OLD)["spec"] == old["spec"]
    assert convert(convert(changed(other, note="seen"), OLD), OTHER)["spec"] == {"host": "web", "note": "seen"}


SCHEMAS = {each.api_version: each.schema() for each in (sites(), *sites().others)}


def partly(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of which any field may be absent."""
    if schema.get("type") == "object" and "properties" in schema:
        optional = {name: partly(each) for name, each in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=optional)
    if schema.get("type") == "array":
        return st.lists(partly(schema["items"]), max_size=3)
    return values(schema)


@pytest.mark.parametrize("source", SCHEMAS)
@pytest.mark.parametrize("target", SCHEMAS)
@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_no_value_is_lost_there_and_back(source: str, target: str, data: st.DataObject) -> None:
    document = {"apiVersion": source, "kind": "Site", "metadata": {"name": "a"}, **data.draw(partly(SCHEMAS[source]))}
    converted = convert(document, target)
    assert converted["apiVersion"] == target
    assert converted["metadata"].keys() <= {"name", "annotations"}
    assert convert(converted, source) == document
    # A second time, what is kept has not grown.
    assert convert(convert(converted, source), target) == converted


@pytest.mark.parametrize("spec", [None, 1, "text", [], [1], {"size": {}, "ports": {}, "pools": [], "steps": [[]]}])
def test_objects_that_no_server_would_accept_come_back(spec: Any) -> None:
    document = {"apiVersion": OLD, "kind": "Site", "metadata": {"name": "a"}, "spec": spec}
    assert convert(convert(document, NEW), OLD) == document


def test_annotation_that_was_edited_stays_and_restores_nothing() -> None:
    old = convert(site(NEW, tier="gold"), OLD)
    name = "aioinformer/lost-v1"
    for text in ("", "{}", old["metadata"]["annotations"][name].replace("gold", "lead")):
        edited = copy.deepcopy(old)
        edited["metadata"]["annotations"] = {name: text, "own": "kept"}
        found = convert(edited, NEW)
        assert found["metadata"]["annotations"] == {name: text, "own": "kept"}
        assert found["spec"] == {"tier": "basic"}


@pytest.mark.parametrize("text", ['{"version":2,"values":{"spec.extra":1}}', "edited"])
def test_annotation_that_cannot_be_read_is_kept_when_another_is_needed(text: str) -> None:
    # A client writes in the old version what the stored one lacks, beside what a later format has kept.
    written = {**site(OLD, legacy="x"), "metadata": {"name": "a"}}
    name = "aioinformer/lost-v1alpha1"
    [kept] = convert(written, NEW)["metadata"]["annotations"].values()
    written["metadata"] = {"name": "a", "annotations": {name: text}}
    found = convert(written, NEW)
    assert found["metadata"]["annotations"] == {name: kept, "aioinformer/unread-v1alpha1": text}
    assert convert(found, OLD)["spec"] == written["spec"]


def test_annotation_of_a_later_format_is_named_with_both_formats() -> None:
    reason = unreadable('{"version":2,"kept":"in another form"}')
    assert reason.startswith("has format 2, and this version of aioinformer knows 1; run the version that")
    assert unreadable('{"kept":[],"sum":"edited"}') == "has been edited; repair or remove it"


def test_what_is_too_large_to_keep_is_an_error_that_names_the_field() -> None:
    with pytest.raises(
        ConversionError, match=r"^example.com/v1 to example.com/v1alpha1: spec\.extra: .* may have 65536$"
    ):
        convert(site(NEW, tier="gold", extra={"a": "x" * 70_000}), OLD)


def test_size_of_what_is_kept_counts_in_bytes() -> None:
    kept = convert(site(NEW, tier="gold", extra={"a": "x" * 40_000}), OLD)
    assert len(kept["metadata"]["annotations"]) == 1
    with pytest.raises(ConversionError, match=r"spec\.extra: what the other version lacks has 12\d{4} bytes"):
        convert(site(NEW, tier="gold", extra={"a": "字" * 40_000}), OLD)


class Options(msgspec.Struct):
    options: dict[str, Any] = {}


class Configured(msgspec.Struct):
    metadata: ObjectMeta
    spec: Options


class Empty(msgspec.Struct):
    pass


class Plain(msgspec.Struct):
    metadata: ObjectMeta
    spec: Empty


def test_value_that_one_object_keeps_is_no_default_of_others() -> None:
    steps = [Default("spec.options", {"a": {}})]
    plain = custom_resource(Plain, "example.com", "v1alpha1", kind="Site", storage=False, conversion=steps)
    converter = Converter(custom_resource(Configured, "example.com", "v1", kind="Site", others=[plain]))
    set_by_user = site(NEW, options={"a": {"x": 1}})
    assert converter.convert(converter.convert(set_by_user, OLD), NEW) == set_by_user
    assert converter.convert(site(OLD), NEW)["spec"] == {"options": {"a": {}}}


def test_function_that_fails_is_an_error_that_names_the_field() -> None:
    converter = Converter(sites([Map("spec.port", to=int, back=str), Map("spec.level", to=level_of, back=name_of)]))
    with pytest.raises(ConversionError, match=r"v1alpha1 to example.com/v1: spec\.port: int raised ValueError$"):
        converter.convert(site(OLD, port="secret"), NEW)


class Other:
    pass


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("-inf")]}, Other(), "\ud800"])
def test_function_that_returns_what_json_has_not_is_an_error_that_names_the_field(value: Any) -> None:
    converter = Converter(sites([Map("spec.port", to=lambda text: value, back=str), *STEPS[:2], *STEPS[3:]]))
    with pytest.raises(ConversionError, match=r"spec\.port: .*<lambda> returned a value that JSON does not have: "):
        converter.convert(site(OLD, port="80"), NEW)


def test_what_a_function_returns_becomes_json() -> None:
    converter = Converter(sites([Map("spec.port", to=lambda text: (1, 2), back=str), *STEPS[:2], *STEPS[3:]]))
    assert converter.convert(site(OLD, port="80"), NEW)["spec"]["port"] == [1, 2]


def test_split_that_returns_no_list_is_an_error_that_names_the_field() -> None:
    split = Split("spec.address", ["spec.host", "spec.zone"], split=len, join=max)  # type: ignore[arg-type]
    converter = Converter(sites([STEPS[0], split, *STEPS[2:]]))
    with pytest.raises(ConversionError, match=r"spec\.address: len returned no list; return a value for each part"):
        converter.convert(site(OLD, address="a/b"), NEW)


def test_function_converts_whole_objects_and_no_metadata_but_labels() -> None:
    def to(document: dict[str, Any]) -> dict[str, Any]:
        document["spec"]["host"] = document["spec"].pop("legacy", None)
        document["metadata"] = {"name": "other", "uid": "2", "labels": {"app": "web"}}
        return document

    def back(document: dict[str, Any]) -> dict[str, Any]:
        document["spec"]["legacy"] = document["spec"].pop("host", None)
        document["metadata"]["labels"] = {}
        return document

    found = Converter(sites([Function(to, back)])).convert(site(OLD, legacy="web"), NEW)
    assert found["metadata"] == {"name": "a", "uid": "1", "labels": {"app": "web"}}
    assert found["spec"] == {"host": "web"}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([*STEPS, Move("spec.sice", "spec.tier")], "v1alpha1 of Site has no field spec.sice"),
        ([*STEPS, Move("spec.legacy", "spec.teir")], "v1 of Site has no field spec.teir"),
        ([*STEPS, Move("spec.size", "spec.tier")], "v1alpha1: two steps convert spec.size"),
        ([*STEPS, Default("spec.host", "x")], "v1: two steps convert spec.host"),
        ([Move("spec.ports[].port", "spec.ports[].number"), Move("spec.ports", "spec.steps")], "two steps convert"),
        ([Move("spec.size", "spec.host")], "spec.size of v1alpha1 and spec.host of v1 differ: integer and string"),
        ([Map("spec.port", to=int, back=str)], "spec.level is integer in v1 and string in v1alpha1"),
    ],
)
def test_steps_that_do_not_fit_are_refused(steps: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"conversion: .*{message}"):
        sites(steps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Move("spec.", "spec.size"), "'spec.' is no path"),
        (lambda: Move("spec.ports[]", "spec.size"), r"'spec.ports\[\]' is no path"),
        (lambda: Move("metadata.name", "spec.name"), "metadata.name: a conversion cannot change it"),
        (lambda: Move("spec.ports[].port", "spec.port"), "are not in the same members"),
        (lambda: Split("spec.a", ["spec.b"], separator="/"), "at least two parts"),
        (lambda: Split("spec.a", ["spec.b", "spec.c"]), "give a separator, or both"),
        (lambda: Join("spec.a", "spec.b", separator="/"), "at least two parts, as a list"),
    ],
)
def test_paths_that_are_none_are_refused(make: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


def test_each_version_needs_a_way_to_a_stored_one_that_is_served() -> None:
    with pytest.raises(OptionError, match="v1 is the stored version, which all others convert to; serve it"):
        sites(served=False)
    with pytest.raises(OptionError, match="v1 is the stored version; declare the steps of the other versions"):
        sites(conversion=[])
    old = custom_resource(OldSite, "example.com", "v1alpha1", kind="Site", storage=False, conversion=STEPS)
    other = custom_resource(OtherSite, "example.com", "v1beta1", kind="Site", storage=False)
    with pytest.raises(OptionError, match=r"v1beta1 has no way to v1: spec\.scaling is in v1 only"):
        custom_resource(Site, "example.com", "v1", others=[old, other])


def test_resource_with_steps_is_a_key_of_dictionaries() -> None:
    steps = [Split("spec.address", ["spec.host", "spec.zone"], separator="/"), Default("spec.extra", {"a": [1]})]
    steps += [Map("spec.port", to=number, back=str), Map("spec.level", to=level_of, back=name_of)]
    resource = sites(steps)
    assert {each: each.version for each in (resource, *resource.others)}[resource] == "v1"


def test_definition_names_the_webhook() -> None:
    client = {"service": {"namespace": "shop", "name": "sites", "path": "/convert"}}
    assert sites().crd(client)["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    }
    with pytest.raises(Exception, match="versions that convert, so its definition names a webhook"):
        sites().crd()
