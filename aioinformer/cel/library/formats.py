"""CEL extension for named string formats, and the rules for names and labels: what is wrong with a text."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

from aioinformer.cel.library.networks import parse_url
from aioinformer.cel.library.times import to_timestamp
from aioinformer.cel.values import NONE, EvaluationError, Optional

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTER_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_LETTERS = "must start and end with a letter or digit"
_SUBDOMAIN_TEXT = (
    f"a lowercase RFC 1123 subdomain must consist of lower case letters, digits, '-' or '.', and {_LETTERS}"
)
_LETTER_LABEL_TEXT = "a DNS-1035 label must consist of lower case letters, digits or '-', and start with a letter"
_LABEL_TEXT = f"a lowercase RFC 1123 label must consist of lower case letters, digits or '-', and {_LETTERS}"
_QUALIFIED_TEXT = f"name part must consist of letters, digits, '-', '_' or '.', and {_LETTERS}"
_VALUE_TEXT = f"a valid label must be empty or consist of letters, digits, '-', '_' or '.', and {_LETTERS}"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def label_value_faults(value: str) -> list[str]:
    """Return what is wrong with the value of a label."""
    return _faults(value, _VALUE, _VALUE_TEXT, 63)


def letter_label_faults(name: str) -> list[str]:
    """Return what is wrong with a DNS label that must begin with a letter."""
    return _faults(name, _LETTER_LABEL, _LETTER_LABEL_TEXT, 63)


def label_faults(name: str) -> list[str]:
    """Return what is wrong with a DNS label."""
    why = "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_TEXT
    return _faults(name, _LABEL, why, 63, "characters")


def subdomain_faults(name: str) -> list[str]:
    """Return what is wrong with a DNS subdomain."""
    return _faults(name, _SUBDOMAIN, _SUBDOMAIN_TEXT, 253, "characters")


def label_name_faults(key: str) -> list[str]:
    """Return what is wrong with the key of a label."""
    prefix, slash, name = key.partition("/")
    if "/" in name:
        return ["a valid label key has at most one '/', after a DNS subdomain (e.g. 'example.com/MyName')"]
    if not slash:
        name = key
    found = []
    if slash and not (prefix and len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        found.append(f"prefix part {_SUBDOMAIN_TEXT}" if prefix else "prefix part must be non-empty")
    if not name:
        found.append("name part must be non-empty")
    if len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        found.append(_QUALIFIED_TEXT)
    return found


def _faults(text: str, pattern: re.Pattern[str], why: str, longest: int, unit: str = "bytes") -> list[str]:
    found = []
    if len(text) > longest:
        found.append(f"must be no more than {longest} {unit}")
    if not pattern.fullmatch(text):
        found.append(why)
    return found


@dataclass(frozen=True, slots=True)
class Format:
    """A named format.

    Attributes:
        faults: returns what is wrong with a string.
    """

    type_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    faults: Callable[[str], list[str]] = field(compare=False)


def _prefix_of(faults: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the check for prefixes of names, which may end with a dash."""
    return lambda text: faults(f"{text[:-1]}a" if text.endswith("-") else text)


def _fault_if_raises(
    check: Callable[[str], Any], errors: type[Exception] | tuple[type[Exception], ...], why: str
) -> Any:
    def faults(text: str) -> list[str]:
        try:
            check(text)
        except errors:
            return [why]
        return []

    return faults


def _uri_faults(text: str) -> list[str]:
    try:
        parse_url(text)
    except EvaluationError as error:
        return [str(error).removeprefix("URL parse error during conversion from string: ")]
    return []


def _uuid_faults(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


_FORMATS = {
    each.name: each
    for each in (
        Format("dns1123Label", label_faults),
        Format("dns1123Subdomain", subdomain_faults),
        Format("dns1035Label", letter_label_faults),
        Format("qualifiedName", label_name_faults),
        Format("dns1123LabelPrefix", _prefix_of(label_faults)),
        Format("dns1123SubdomainPrefix", _prefix_of(subdomain_faults)),
        Format("dns1035LabelPrefix", _prefix_of(letter_label_faults)),
        Format("labelValue", label_value_faults),
        Format("uri", _uri_faults),
        Format("uuid", _uuid_faults),
        Format(
            "byte",
            _fault_if_raises(lambda text: base64.b64decode(text, validate=True), binascii.Error, "invalid base64"),
        ),
        Format("date", _fault_if_raises(date.fromisoformat, ValueError, "invalid date")),
        Format("datetime", _fault_if_raises(to_timestamp, EvaluationError, "invalid datetime")),
    )
}


def _validate(format_: Format, text: str) -> Optional:
    faults = format_.faults(text)
    return Optional((faults,)) if faults else NONE


def _named(name: str) -> Optional:
    return Optional((_FORMATS[name],)) if name in _FORMATS else NONE


def _constant(format_: Format) -> Callable[[], Format]:
    return lambda: format_


FORMATS: dict[str, dict[str, Callable[..., Any]]] = {
    "validate": {"kubernetes.NamedFormat.(string) -> optional_type(list(string))": _validate},
    "format.named": {"(string) -> optional_type(kubernetes.NamedFormat)": _named},
    **{f"format.{name}": {"() -> kubernetes.NamedFormat": _constant(each)} for name, each in _FORMATS.items()},
}
