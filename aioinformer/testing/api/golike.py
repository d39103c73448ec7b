"""Error texts of Go's standard library that reach clients through the API's messages."""

from __future__ import annotations

import json
import re


def json_error(data: bytes) -> str:
    """What Go's JSON decoder says about a document that is not JSON."""
    text = data.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = error.pos
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        if position >= len(text) or error.msg.startswith("Unterminated"):
            return "unexpected end of JSON input"
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


def _wrong_literal(text: str) -> str:
    for literal in ("true", "false", "null"):
        if text[0] == literal[0]:
            for found, wanted in zip(text, literal, strict=False):
                if found != wanted:
                    return f"invalid character {_quoted(found)} in literal {literal} (expecting {_quoted(wanted)})"
            return "unexpected end of JSON input"
    return ""


def not_a_number(text: str, *, bits: int, signed: bool = False) -> str:
    """What Go says about a text that is no decimal number of this size, "" if it is one."""
    if not re.fullmatch("[+-]?[0-9]+" if signed else "[0-9]+", text):
        return "invalid syntax"
    number = int(text)
    return "" if -(2**bits) * signed <= number < 2**bits else "value out of range"


def _quoted(character: str) -> str:
    return {"'": r"'\''", '"': "'\"'"}.get(character, f"'{character}'")


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
