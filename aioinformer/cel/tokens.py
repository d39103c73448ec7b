"""The tokens of an expression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r\n\f]+ | //[^\n]*)
    | (?P<raw>(?:[rR][bB]?|[bB][rR])(?:\"\"\".*?\"\"\" | '''.*?''' | "[^"\r\n]*" | '[^'\r\n]*'))
    | (?P<text>(?P<bytes>[bB]?)
        (?P<quoted>\"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?''' | "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*'))
    | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \.\d+(?:[eE][+-]?\d+)?)
    | (?P<int>0x[0-9a-fA-F]+ | \d+)(?P<unsigned>[uU]?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<operator>&& | \|\| | == | != | <= | >= | [-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.S)
_CONTROLS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)) | {each: each for each in "\\?\"'`"}
_LARGEST = (1 << 63) - 1
_MOST_DIGITS = 21
_CHARACTERS = range(0x110000)
_SURROGATES = range(0xD800, 0xE000)


class Uint(int):
    """An unsigned integer, a type of its own in CEL."""

    __slots__ = ()


class SyntaxFault(Exception):
    """A syntax error, with its position."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at
        self.what = what


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        at: its position in the source.
        kind: "literal", "name", "operator" or "end".
        text: as written.
        value: of a literal.
    """

    at: int
    kind: str
    text: str
    value: Any = None


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of a source, then an end token.

    Raises:
        SyntaxFault: the source has an invalid token.
    """
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise SyntaxFault(at, f"Syntax error: token recognition error at: '{source[at]}'")
        if not match["blank"]:
            yield _token(match, at)
        at = match.end()
    yield Token(at, "end", "<EOF>")


def _token(match: re.Match[str], at: int) -> Token:
    text = match[0]
    if match["name"]:
        return Token(at, "name", text)
    if match["operator"]:
        return Token(at, "operator", text)
    return Token(at, "literal", text, _literal(match, at))


def _literal(match: re.Match[str], at: int) -> Any:
    if match["float"]:
        return float(match["float"])
    if match["int"]:
        digits = match["int"].lstrip("0")
        # Bound the digits, as Python refuses to parse very long numbers; this many already exceed the largest value.
        number = int(digits[1:], 16) if digits[:1] == "x" else int(digits[:_MOST_DIGITS] or 0)
        # One more than the largest value is allowed, since a minus sign may precede it.
        if number > (2 * _LARGEST + 1 if match["unsigned"] else _LARGEST + 1):
            raise SyntaxFault(at, f"invalid {'uint' if match['unsigned'] else 'int'} literal")
        return Uint(number) if match["unsigned"] else number
    if raw := match["raw"]:
        text = _body(raw.lstrip("rRbB"))
        return text.encode() if "b" in raw[:2].lower() else text
    text = _body(match["quoted"])
    if match["bytes"]:
        return _unescape_bytes(text, at)
    return _ESCAPE.sub(lambda each: _character(each, at), text)


def _body(quoted: str) -> str:
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    return quoted[width:-width].replace("\r\n", "\n").replace("\r", "\n")


def _character(match: re.Match[str], at: int) -> str:
    if digits := match[1] or match[2] or match[3]:
        code = int(digits, 16)
        if code not in _CHARACTERS or code in _SURROGATES:
            raise SyntaxFault(at, f"invalid string literal: unable to unescape {match[0]}")
        return chr(code)
    if match[4]:
        return chr(int(match[4], 8))
    if match[5] not in _CONTROLS:
        raise SyntaxFault(at, f"invalid string literal: unable to unescape {match[0]}")
    return _CONTROLS[match[5]]


def _unescape_bytes(text: str, at: int) -> bytes:
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[end : match.start()].encode())
        character = _character(match, at)
        parts.append(bytes([ord(character)]) if match[1] or match[4] else character.encode())
        end = match.end()
    return b"".join([*parts, text[end:].encode()])
