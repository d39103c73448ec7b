"""Texts of Go's standard library that clients see or send: errors, and durations ("300ms", "1h30m", "-1.5s")."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNEXPECTED_END = "unexpected end of JSON input"
_NUMBER_PARTS = {".": "after decimal point in", "e": "in exponent of", "E": "in exponent of"}
_YAML_PROBLEMS: Mapping[str, str] = {
    r"found character .* that cannot start any token": "found character that cannot start any token",
    r"mapping values are not allowed here": "mapping values are not allowed in this context",
    r"expected the node content, but found .*": "did not find expected node content",
    r"expected '<document start>', but found .*": "did not find expected <document start>",
    r"(?s)expected (',' or '[\]}]'), but got .*": r"did not find expected \1",
    r"expected (alphabetic or numeric character), but found .*": r"did not find expected \1",
}
_YAML_BLOCKS = {"while parsing a block mapping": "key", "while parsing a block collection": "'-' indicator"}
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LONGEST_DURATION = 2**63


def json_error(data: bytes) -> str:
    """Return the error of Go's JSON decoder for a document that is not JSON; "" if it is."""
    text = data.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = error.pos
        if wrong := _wrong_text(error, text) or _wrong_number(error, text):
            return wrong
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        if position >= len(text) or error.msg.startswith("Unterminated"):
            return _UNEXPECTED_END
        place = {
            "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
            "Expecting ':' delimiter": "after object key",
            "Extra data": "after top-level value",
        }.get(error.msg, "looking for beginning of value")
        if place == "looking for beginning of value" and (wrong := _wrong_literal(text[position:])):
            return wrong
        if error.msg == "Expecting ',' delimiter":
            place = "after object key:value pair" if _in_object(text[:position]) else "after array element"
        return f"invalid character {_quoted(text[position])} {place}"
    return ""


def yaml_error(error: yaml.YAMLError) -> str:
    """Return the error of the API's YAML parser for a document that is not YAML."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem is None:
        return str(error)
    problem = error.problem
    if problem.startswith("expected <block end>"):
        problem = f"did not find expected {_YAML_BLOCKS.get(error.context or '', 'key')}"
    elif unknown := re.fullmatch(r"found undefined alias '(.*)'", problem):
        return f"unknown anchor '{unknown[1]}' referenced"
    for pattern, message in _YAML_PROBLEMS.items():
        if re.fullmatch(pattern, problem):
            problem = re.sub(pattern, message, problem)
    at, around = error.problem_mark, error.context_mark
    line = at.line if at is not None else 0
    if at is not None and "<stream end>" in error.problem and at.column:
        # The API's parser has advanced to the next line here.
        line += 1
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    line = line or (around.line if around is not None else 0)
    return f"line {line}: {problem}" if line else problem


def _wrong_text(error: json.JSONDecodeError, text: str) -> str:
    if error.msg.startswith("Invalid control character"):
        return f"invalid character '{json.dumps(text[error.pos])[1:-1]}' in string literal"
    if error.msg.startswith("Invalid \\escape"):
        if error.pos + 1 >= len(text):
            return _UNEXPECTED_END
        return f"invalid character {_quoted(text[error.pos + 1])} in string escape code"
    if error.msg.startswith("Invalid \\uXXXX"):
        wrong = next((each for each in text[error.pos :].removeprefix("u") if each not in "0123456789abcdefABCDEF"), "")
        return f"invalid character {_quoted(wrong)} in \\u hexadecimal character escape" if wrong else ""
    return ""


def _wrong_number(error: json.JSONDecodeError, text: str) -> str:
    at, rest = error.pos, text[error.pos :]
    if rest.startswith("-"):
        return f"invalid character {_quoted(rest[1])} in numeric literal" if rest[1:] else _UNEXPECTED_END
    if at and text[at - 1].isdigit() and rest[:1] in _NUMBER_PARTS and error.msg.startswith(("Extra", "Expecting ','")):
        left = rest[1:].lstrip("+-") if rest[0] in "eE" else rest[1:]
        if not left:
            return _UNEXPECTED_END
        return f"invalid character {_quoted(left[0])} {_NUMBER_PARTS[rest[0]]} numeric literal"
    return ""


def _wrong_literal(text: str) -> str:
    for literal in ("true", "false", "null"):
        if text[0] == literal[0]:
            for found, wanted in zip(text, literal, strict=False):
                if found != wanted:
                    return f"invalid character {_quoted(found)} in literal {literal} (expecting {_quoted(wanted)})"
            return _UNEXPECTED_END
    return ""


def not_a_number(text: str, *, bits: int, signed: bool = False) -> str:
    """Return Go's error for a text that is no decimal number of this size; "" if it is one."""
    if not re.fullmatch("[+-]?[0-9]+" if signed else "[0-9]+", text):
        return "invalid syntax"
    # Python refuses numbers of thousands of digits; they are out of range anyway.
    number = int(text.lstrip("+-0")[:bits] or 0) * (-1 if text[0] == "-" else 1)
    return "" if -(2**bits) * signed <= number < 2**bits else "value out of range"


def quoted(text: str) -> str:
    """Return a text in double quotes, like Go's `%q`."""
    return f'"{"".join(map(_shown, text))}"'


def _shown(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    short = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}.get(character)
    code = ord(character)
    if short or code < 0x80:
        return f"\\{short or f'x{code:02x}'}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _quoted(character: str) -> str:
    return {"'": r"'\''", '"': "'\"'"}.get(
        character, f"'{character if character.isprintable() else _shown(character)}'"
    )


def _in_object(text: str) -> bool:
    depth: list[str] = []
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth.append(character)
        elif character in "}]" and depth:
            depth.pop()
    return bool(depth) and depth[-1] == "{"


class DurationError(ValueError):
    """A text is not a duration; the message is Go's."""


def seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        DurationError: it is malformed, or longer than 292 years.
    """
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    nanoseconds = 0
    if not rest:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    while rest:
        part = _DURATION_PART.match(rest)
        assert part is not None
        whole, fraction, unit = part[1], part[2] or "", part[3]
        if not whole and not fraction:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        if not unit:
            raise DurationError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        nanoseconds += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
        if nanoseconds >= _LONGEST_DURATION:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        rest = rest[part.end() :]
    return (-nanoseconds if text[0] == "-" else nanoseconds) / 10**9
