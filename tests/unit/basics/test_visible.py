"""Text from other parties, made safe for terminals and log files."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from aioinformer.logs import visible, visible_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b[2K\rweb-0 deleted", r"\x1b[2K\x0dweb-0 deleted"),
        ("one\ntwo\tthree", r"one\x0atwo\x09three"),
        ("\x9b31m\x7f\x85", r"\x9b31m\x7f\x85"),
        ("a\u202egnp.exe\u2066\u061c\u200f", r"a\u202egnp.exe\u2066\u061c\u200f"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("pay\u200bpal\ufeff", r"pay\u200bpal\ufeff"),
        ("\ud800x", r"\ud800x"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["", "default/web-0", "größer → 世界 🙂", "C:\\x1b", "non\u00a0breaking", "e\u0301"])
def test_printable_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_every_control_and_format_character_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(character) in {
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        }:
            assert visible(character).startswith("\\"), hex(code)


def test_escaping_is_idempotent() -> None:
    everything = "".join(map(chr, range(0x3000)))
    once = visible(everything)
    assert visible(once) == once
    assert once.encode()


@pytest.mark.parametrize("text", ["\x1b[2K\r", "\x7f\x9b\x85", "\u202e\u2028\ufeff", "\U000e0041", 'ä"\\', "plain"])
def test_escaped_json_keeps_its_value(text: str) -> None:
    line = visible_json(json.dumps({text: [text]}, ensure_ascii=False).encode())
    assert json.loads(line) == {text: [text]}
    assert line.decode().isprintable()


def test_multi_line_json_becomes_one_line() -> None:
    value = {"a": [1, "\u202e"], "b": {}}
    line = visible_json(json.dumps(value, indent="\t", ensure_ascii=False).replace("\n", "\r\n").encode())
    assert json.loads(line) == value
    assert line.decode().isprintable()


def test_invalid_utf8_is_replaced() -> None:
    assert visible_json(b'"\xff\x9b"') == '"\ufffd\ufffd"'.encode()
