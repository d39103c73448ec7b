"""YAML: types of scalars, merges, repeated keys, lines, and limits. Kubectl's view is in tests/real/files."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from aioinformer.transport.auth import yaml_documents
from aioinformer.transport.auth.yaml_documents import documents, load_yaml, to_yaml


@pytest.fixture(params=["libyaml", "python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers of PyYAML."""
    if request.param == "python":
        monkeypatch.setattr(yaml_documents, "_Parser", yaml.SafeLoader)
    return str(request.param)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("=", "="),
        ("22:30", "22:30"),
        ("2001-12-14", "2001-12-14"),
        ("1e3", 1000),
        ("1.0", 1),
        ("0o644", 420),
        ("0644", 420),
        ("08", 8),
        ("1_000", 1000),
        ("y", True),
        ("N", False),
        ("yEs", "yEs"),
        ("", None),
        ("'08'", "08"),
        ("!!str 08", "08"),
        ("!own 08", "08"),
        ("! 08", "08"),
        ("18446744073709551615", 18446744073709551615.0),
    ],
)
def test_scalars_have_the_types_of_kubectl(text: str, value: Any) -> None:
    found = load_yaml(f"a: {text}\n")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.usefixtures("parser")
def test_keys_become_texts() -> None:
    assert list(load_yaml("on: 1\n8080: 1\n1.10: 1\n0x1F: 1\n1e6: 1\n'~': 1\n")) == [
        "true", "8080", "1.1", "31", "1e+06", "~",
    ]  # fmt: skip


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["~: 1", "[a]: 1", "a: .inf", "a: !!int x", "a: !!null x", "<<: [1]", "a: *b"])
def test_value_without_a_form_in_json_raises(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError):
        load_yaml(text)


@pytest.mark.usefixtures("parser")
def test_merge_applies_at_its_place() -> None:
    text = (
        "base: &b {x: 1, y: 2}\nother: &o {x: 3}\nfirst: {<<: *b, x: 0}\nlast: {x: 0, <<: *b}\nboth: {<<: [*o, *b]}\n"
    )
    found = load_yaml(text)
    assert (found["first"]["x"], found["last"]["x"], found["both"]["x"]) == (0, 1, 3)


@pytest.mark.usefixtures("parser")
def test_only_the_first_document_is_read() -> None:
    assert load_yaml("a: 1\n---\n: : :\n") == {"a": 1}
    assert load_yaml("a: 1\n...\n---\n[") == {"a": 1}
    assert load_yaml("") is None


@pytest.mark.usefixtures("parser")
def test_document_has_lines_and_repeated_keys() -> None:
    first, second = documents("# a\na: {b: 1,\n  b: 2}\n---\nkind: List\nitems:\n- x\n\n- [y,\n  z]\n- {}\n")
    assert (first.value, first.line, first.repeated) == ({"a": {"b": 2}}, 2, ((3, "b"),))
    assert (second.line, second.item_lines, second.repeated) == (5, (7, 9, 11), ())


@pytest.mark.usefixtures("parser")
def test_keys_repeat_by_their_text() -> None:
    (document,) = documents("on: 1\ntrue: 2\n'true': 3\nbase: &b {x: 1}\nuse: {<<: *b, x: 2}\n")
    assert document.repeated == ((2, "true"), (3, "true"))


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 200_000, "- " * 200_000 + "a"])
def test_endless_nesting_raises_and_does_not_crash(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="max depth"):
        load_yaml(text)


@pytest.mark.parametrize("text", ["08", "n", "=", "22:30", "1e3", "0o644", "2001-12-14", "<<", "~", "", "1_0", ".5_0"])
def test_texts_that_have_another_type_are_quoted(text: str) -> None:
    assert to_yaml([{"a": text}], sort_keys=True) == f"a: '{text}'\n"
    assert to_yaml([{text: 1}], sort_keys=True) in (f"'{text}': 1\n", f"? '{text}'\n: 1\n")


@pytest.mark.parametrize("text", ["a\x85b\nc", "a\rb", "\u2028", "a\r\nb\n"])
def test_line_breaks_stay_what_they_are(text: str) -> None:
    assert load_yaml(to_yaml([{"a": text}], sort_keys=True)) == {"a": text}
