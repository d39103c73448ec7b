"""Selectors compared with a reference matcher, and corner cases of the grammar of apimachinery."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import SelectorError, UsageError
from aioinformer.resources import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
from aioinformer.resources.selectors import FieldRequirement, LabelRequirement, Operator, everything, nothing

if TYPE_CHECKING:
    from collections.abc import Mapping

# No deadline: tests must not fail on a busy machine.
KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/tier", "A_b.c"])
VALUES = st.sampled_from(["", "0", "1", "7", "10", "x", "y", "in", "notin", "a.b-c"])


@st.composite
def label_requirements(draw: st.DrawFn) -> LabelRequirement:
    operator = draw(st.sampled_from(Operator))
    values: tuple[str, ...] = ()
    if operator in (Operator.EQUALS, Operator.NOT_EQUALS):
        values = (draw(VALUES),)
    elif operator in (Operator.IN, Operator.NOT_IN):
        values = tuple(draw(st.lists(VALUES, min_size=1, max_size=4)))
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        values = (str(draw(st.integers(0, 12))),)
    return LabelRequirement(draw(KEYS), operator, values)


LABEL_SELECTORS = st.lists(label_requirements(), max_size=4).map(lambda items: LabelSelector(tuple(items)))
FIELD_SELECTORS = st.lists(
    st.builds(FieldRequirement, KEYS, st.text(st.sampled_from("ab\\,=! ")), st.booleans()), max_size=4
).map(lambda items: FieldSelector(tuple(items)))


def reference_match(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    """Match in the simplest possible way, as the reference."""
    present, values = requirement.key in labels, requirement.values
    label = labels.get(requirement.key, "")
    match requirement.operator:
        case Operator.EQUALS | Operator.IN:
            return present and label in values
        case Operator.NOT_EQUALS | Operator.NOT_IN:
            return not (present and label in values)
        case Operator.EXISTS:
            return present
        case Operator.DOES_NOT_EXIST:
            return not present
        case Operator.GREATER_THAN:
            return label.isdecimal() and int(label) > int(values[0])
        case Operator.LESS_THAN:
            return label.isdecimal() and int(label) < int(values[0])


@given(LABEL_SELECTORS)
def test_text_of_a_label_selector_parses_to_an_equal_one(selector: LabelSelector) -> None:
    parsed = parse_label_selector(str(selector))
    assert parsed == selector
    assert hash(parsed) == hash(selector)
    assert str(parsed) == str(selector)


@given(LABEL_SELECTORS, st.dictionaries(KEYS, VALUES))
def test_label_selector_matches_like_the_reference(selector: LabelSelector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) is all(
        reference_match(requirement, labels) for requirement in selector.requirements
    )


@given(st.text(st.sampled_from("ab01 ,()=!<>in/.-_\t"), max_size=24))
def test_any_text_round_trips_or_raises_selector_error(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert parse_label_selector(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("a", "a"),
        ("! a", "!a"),
        ("a=b", "a=b"),
        ("b=1 , a != 2", "a!=2,b=1"),
        ("a=", "a="),
        ("a in (y,x,y)", "a in (x,y)"),
        ("a notin ( x , y )", "a notin (x,y)"),
        ("a in (,)", "a in (,)"),
        ("a in ()", "a in (,)"),
        ("a notin ( )", "a notin (,)"),
        ("a in (x,)", "a in (,x)"),
        ("a in (x,,y)", "a in (,x,y)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin,!in", "!in,notin"),
        ("a>1,b<2", "a>1,b<2"),
        ("example.com/a.B_c-d=v.1", "example.com/a.B_c-d=v.1"),
        ("a=" + "v" * 63, "a=" + "v" * 63),
    ],
)
def test_text_of_a_label_selector_is_canonical(text: str, canonical: str) -> None:
    assert str(parse_label_selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "position", "remedy"),
    [
        (",", 1, "a label name or '!'"),
        ("a,", 3, "a label name or '!'"),
        ("!", 2, "a label name"),
        ("!a=b", 3, "',' or the end"),
        ("=b", 1, "a label name or '!'"),
        ("a b", 3, "notin"),
        ("a=b c", 5, "',' or the end"),
        ("a==>b", 4, "a value"),
        ("a in x", 6, "'(' before the values"),
        ("a in (x", 8, "',' or ')'"),
        ("a in (x,,)", 10, "two commas"),
        ("a in (=)", 7, "a value, ',' or ')'"),
        ("a>x", 1, "whole numbers"),
        ("a>9223372036854775808", 1, "64 bits"),
        ("a<-1", 1, "letter or digit"),
        ("b,/a", 3, "DNS subdomain"),
        ("Example.com/a", 1, "DNS subdomain"),
        ("a/b/c", 1, "DNS subdomain"),
        ("d" * 254 + "/a", 1, "253"),
        ("-a", 1, "letter or digit"),
        ("a=" + "v" * 64, 1, "at most 63"),
        ("a=\N{SUPERSCRIPT TWO}", 1, "A-Z"),
    ],
)
def test_invalid_label_selector_names_position_and_remedy(text: str, position: int, remedy: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert f"at character {position}:" in str(caught.value)
    assert remedy in str(caught.value)
    assert {ValueError, UsageError} < {*SelectorError.__mro__}


@pytest.mark.parametrize("value", ["", "x", "1_0", " 7", "\N{ARABIC-INDIC DIGIT SEVEN}", "9" * 5000, str(2**63)])
def test_order_needs_an_integer_of_64_bits(value: str) -> None:
    assert not parse_label_selector("a>1").matches({"a": value})


def test_from_labels_requires_each_value_exactly() -> None:
    selector = LabelSelector.from_labels({"b": "2", "a": "1"})
    assert str(selector) == "a=1,b=2"
    assert selector.matches({"a": "1", "b": "2", "c": "3"})
    assert not selector.matches({"a": "1"})


def test_from_dict_joins_labels_and_expressions() -> None:
    selector = LabelSelector.from_dict(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "track", "operator": "NotIn", "values": ["canary"]},
                {"key": "owner", "operator": "Exists"},
                {"key": "legacy", "operator": "DoesNotExist", "values": None},
            ],
        }
    )
    assert str(selector) == "app=web,!legacy,owner,tier in (back,front),track notin (canary)"


def test_from_dict_of_empty_and_none() -> None:
    assert LabelSelector.from_dict({}) == everything()
    assert LabelSelector.from_dict(None) == nothing()


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"matchlabels": {}}, "'matchlabels': use matchLabels"),
        ({"matchLabels": ["a"]}, "matchLabels must map"),
        ({"matchLabels": {"a": 1}}, "label 'a': a value must be a string, not int"),
        ({"matchLabels": {1: "a"}}, "must be a string, not int"),
        ({"matchExpressions": ["a"]}, r"matchExpressions\[0\] must be a mapping"),
        (
            {"matchExpressions": [{"key": "a", "operator": "in"}]},
            r"matchExpressions\[0\].operator is 'in': use one of In",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, r"matchExpressions\[0\]: label 'a': in needs"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": "xy"}]}, r"values must be a list, not 'xy'"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "takes no values"),
    ],
)
def test_from_dict_names_the_invalid_field(selector: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        LabelSelector.from_dict(selector)


def test_requirement_of_one_value_raises_for_two() -> None:
    with pytest.raises(SelectorError, match="exactly one value, not 2"):
        LabelRequirement("a", Operator.EQUALS, ("x", "y"))


def test_everything_and_nothing_also_match_as_text() -> None:
    assert everything().empty
    assert everything().matches({})
    assert everything() == parse_label_selector("")
    for labels in ({}, {"a": "b"}, {"nothing": ""}):
        assert not nothing().matches(labels)
        assert not parse_label_selector(str(nothing())).matches(labels)


def test_selectors_can_be_pickled() -> None:
    selector = parse_label_selector("a=b,c in (d,e),!f")
    copy = pickle.loads(pickle.dumps(selector))
    assert copy == selector
    assert copy.matches({"a": "b", "c": "d"})


@given(FIELD_SELECTORS)
def test_text_of_a_field_selector_parses_to_an_equal_one(selector: FieldSelector) -> None:
    assert parse_field_selector(str(selector)) == selector
    assert hash(parse_field_selector(str(selector))) == hash(selector)


@given(FIELD_SELECTORS, st.dictionaries(KEYS, st.text(st.sampled_from("ab\\,=! "))))
def test_field_selector_compares_each_field(selector: FieldSelector, fields: dict[str, str]) -> None:
    expected = all((fields.get(item.path, "") != item.value) == item.negated for item in selector.requirements)
    assert selector.matches(lambda path: fields.get(path, "")) is expected


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        (",a=b,", [("a", "b", False)]),
        ("a==b", [("a", "b", False)]),
        ("a!=b,a=", [("a", "", False), ("a", "b", True)]),
        (r"a=x\,y\=z\\", [("a", r"x,y=z" + "\\", False)]),
        ("a = b", [("a ", " b", False)]),
        ("a!b=c", [("a!b", "c", False)]),
        ("metadata.name!==x", None),
    ],
)
def test_field_selectors_parse_as_in_apimachinery(text: str, requirements: list[tuple[str, str, bool]] | None) -> None:
    if requirements is None:
        with pytest.raises(SelectorError):
            parse_field_selector(text)
    else:
        found = parse_field_selector(text).requirements
        assert [(item.path, item.value, item.negated) for item in found] == requirements


@pytest.mark.parametrize(
    ("text", "position", "remedy"),
    [
        ("a", 1, "write path=value"),
        ("a=b,in", 5, "write path=value"),
        ("a=b=c", 4, r"must be written '\='"),
        (r"a=\x", 3, "a backslash is allowed only before"),
        ("a=b\\", 4, "a backslash is allowed only before"),
    ],
)
def test_invalid_field_selector_names_position_and_remedy(text: str, position: int, remedy: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert f"at character {position}:" in str(caught.value)
    assert remedy in str(caught.value)


def test_from_fields_escapes_values() -> None:
    assert str(FieldSelector.from_fields({"metadata.name": "a,b"})) == r"metadata.name=a\,b"
    with pytest.raises(SelectorError, match="must not contain"):
        FieldSelector.from_fields({"a=b": "c"})
