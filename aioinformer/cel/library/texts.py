"""CEL extensions for strings."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from aioinformer.cel.expressions import compile_pattern
from aioinformer.cel.library.operators import format_double
from aioinformer.cel.library.times import format_duration, format_timestamp
from aioinformer.cel.values import EvaluationError, TypeValue, Unsupported, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_CLAUSE = re.compile(r"%(?:%|(?:\.(\d*))?(.)?)", re.DOTALL)
_PRECISION = 6
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
# The types that each clause accepts; none means all.
_CLAUSE_TYPES: dict[str, tuple[str, ...]] = {
    "s": (),
    "d": ("int", "uint"),
    "f": ("double",),
    "e": ("double",),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_CLAUSE_FAULTS = {
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


def _checked_index(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return index


def _char_at(text: str, index: int) -> str:
    return text[_checked_index(text, index) :][:1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if part == "":
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if part == "":
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count > len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        return text[_checked_index(text, start) :]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[_checked_index(text, start) : _checked_index(text, end)]


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise EvaluationError(f"join: invalid input: {item}")
    return separator.join(items)


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found = [match[0] for match in compile_pattern(pattern).finditer(text)]
    return found if count < 0 else found[:count]


def _format(text: str, args: list[Any]) -> str:
    rest = list(args)

    def clause(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not rest:
            raise EvaluationError(f"index {len(args)} out of range")
        if match[2] is None:
            raise EvaluationError("unexpected end of string")
        return _format_clause(match[2], rest.pop(0), _PRECISION if match[1] is None else int(match[1] or 0))

    return _CLAUSE.sub(clause, text)


def format_faults(text: str, args: Sequence[str]) -> Iterator[tuple[int | None, str]]:
    """Yield what is wrong with a format for values of the given types.

    Args:
        text: the format.
        args: the type names of the values, "dyn" for unknown ones.

    Returns:
        For each fault the index of the value, or None for the format itself, and the message.
    """
    clauses = [match for match in _CLAUSE.finditer(text) if match[0] != "%%"]
    for index, match in enumerate(clauses):
        if index >= len(args):
            yield None, f"index {len(args)} out of range"
            return
        clause = (match[2] or "").lower()
        if not match[2]:
            yield None, "unexpected end of string"
        elif clause not in _CLAUSE_TYPES:
            yield None, _unknown_clause(match[2])
        elif _CLAUSE_TYPES[clause] and args[index] not in (*_CLAUSE_TYPES[clause], "dyn"):
            yield index, f"error during formatting: {_CLAUSE_FAULTS[clause]}, was given {args[index]}"


def _unknown_clause(clause: str) -> str:
    return f'could not parse formatting clause: unrecognized formatting clause "{clause}"'


def _format_clause(clause: str, value: Any, precision: int) -> str:
    number = type(value) is not bool and isinstance(value, int)
    match clause.lower():
        case "s":
            return format_value(value)
        case "d" | "o" as how if number:
            return format(int(value), how)
        case "b" if number or isinstance(value, bool):
            return format(int(value), "b")
        case "f" if isinstance(value, float):
            return f"{value:,.{precision}f}"
        case "e" if isinstance(value, float):
            raise Unsupported("`format` with `%e`")
        case "x" if number or isinstance(value, str | bytes):
            content = value.encode() if isinstance(value, str) else value
            digits = format(int(content), "x") if number else content.hex()
            return digits.upper() if clause == "X" else digits
        case known if known in _CLAUSE_FAULTS:
            raise EvaluationError(f"error during formatting: {_CLAUSE_FAULTS[known]}, was given {type_name(value)}")
    raise EvaluationError(_unknown_clause(clause))


def format_value(value: Any, *, inside: bool = False) -> str:
    """Return a value as `format` shows it.

    Args:
        inside: whether the value is part of a list or map, where strings are quoted.

    Raises:
        EvaluationError: `format` cannot show a value of this type.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value) if inside else value
        case bytes():
            if inside:
                return f"b{_quote(value.decode(errors='replace'))}"
            return value.decode(errors="replace")
        case int():
            return str(int(value))
        case float():
            return f"{value:.{_PRECISION}f}" if inside else format_double(value)
        case datetime():
            return f'timestamp("{format_timestamp(value)}")' if inside else format_timestamp(value)
        case timedelta():
            return f'duration("{format_duration(value)}")' if inside else format_duration(value)
        case list():
            return f"[{', '.join(format_value(item, inside=True) for item in value)}]"
        case dict():
            pairs = sorted(
                (format_value(key, inside=True), format_value(item, inside=True)) for key, item in value.items()
            )
            return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
        case TypeValue():
            return value.name
    what = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    raise EvaluationError(f"error during formatting: {what}and timestamps, was given {type_name(value)}")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


TEXTS: dict[str, dict[str, Callable[..., Any]]] = {
    "charAt": {"string.(int) -> string": _char_at},
    "indexOf": {"string.(string) -> int": _index_of, "string.(string, int) -> int": _index_of},
    "lastIndexOf": {"string.(string) -> int": _last_index_of, "string.(string, int) -> int": _last_index_of},
    "lowerAscii": {"string.() -> string": lambda text: text.translate(_LOWER)},
    "upperAscii": {"string.() -> string": lambda text: text.translate(_UPPER)},
    "replace": {
        "string.(string, string) -> string": str.replace,
        "string.(string, string, int) -> string": str.replace,
    },
    "split": {"string.(string) -> list(string)": _split, "string.(string, int) -> list(string)": _split},
    "substring": {"string.(int) -> string": _substring, "string.(int, int) -> string": _substring},
    "trim": {"string.() -> string": str.strip},
    "format": {"string.(list(dyn)) -> string": _format},
    "strings.quote": {"(string) -> string": _quote},
    "join": {"list(string).() -> string": _join, "list(string).(string) -> string": _join},
    "find": {"string.(string) -> string": _find},
    "findAll": {"string.(string) -> list(string)": _find_all, "string.(string, int) -> list(string)": _find_all},
}
