"""The rules for names and labels: each function returns what is wrong with a text."""

from __future__ import annotations

import re

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
