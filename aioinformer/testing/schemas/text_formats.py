"""Checks for the `format` of strings in schemas.

The formats are those of kube-openapi, with its leniency: leading zeros in IPv4 addresses, a mailbox with a display name
as an email, a path as a URI, "3 days" as a duration. Unknown formats accept all strings.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from datetime import date, datetime
from email.utils import parseaddr
from typing import TYPE_CHECKING

from aioinformer.testing.api.golike import DurationError, seconds
from aioinformer.testing.api.validation import label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]?[0-9]?|[2-9]?[0-9]|[2-9][0-9])"
_UUID = "[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}"
_HEX_DIGIT, _VARIANT_DIGIT = "[0-9a-f]", "[89ab]"
_CARDS = (
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    "|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14}"
)
_PATTERNS = {
    "bsonobjectid": "[0-9a-fA-F]{24}",
    "byte": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    "hexcolor": "#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})",
    "mac": (
        "[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5}|(?:-[0-9a-fA-F]{2}){5}|(?::[0-9a-fA-F]{2}){7}|(?:-[0-9a-fA-F]{2}){7})"
        r"|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2,3}|[0-9a-fA-F]{12}|[0-9a-fA-F]{16}"
    ),
    "rgbcolor": rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)",
    "ssn": "[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}",
    "uuid": "(?i:" + _UUID.format(_HEX_DIGIT, _HEX_DIGIT) + ")",
    "uuid3": "(?i:" + _UUID.format("3", _HEX_DIGIT) + ")",
    "uuid4": "(?i:" + _UUID.format("4", _VARIANT_DIGIT) + ")",
    "uuid5": "(?i:" + _UUID.format("5", _VARIANT_DIGIT) + ")",
}
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9](?:-?[a-zA-Z0-9]{0,62})?|(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,63}"
)
_LONGEST_HOSTNAME, _LONGEST_LABEL = 255, 63
_AMOUNT = re.compile(r"[0-9]+\s*([A-Za-zµ]+)")
_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_WORDS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_LOCAL_PART = re.compile(r"""[^\s@()<>\[\]:;\\,"]+|"[^"]+\"""")
_URI = re.compile(r"(?:/|[A-Za-z][A-Za-z0-9+.-]*:)\S*")


def is_of_format(text: str, format_: str) -> bool:
    """Return whether the text has the format. Unknown formats accept all texts."""
    check = _CHECKS.get(format_)
    return check is None or check(text)


def _is_address(text: str, mark: str) -> bool:
    if mark not in text or "%" in text:
        return False
    try:
        ipaddress.ip_address(_without_zeros(text))
    except ValueError:
        return False
    return True


def _is_network(text: str) -> bool:
    address, slash, prefix = text.partition("/")
    try:
        ipaddress.ip_network(f"{_without_zeros(address)}/{prefix}", strict=False)
    except ValueError:
        return False
    return bool(slash) and prefix.isdecimal()


def _without_zeros(text: str) -> str:
    """Return the address without leading zeros in IPv4 numbers, which Python rejects."""
    return re.sub(r"(?<![0-9a-fA-F:.])0+(?=[0-9]+\.)|(?<=\.)0+(?=[0-9])", "", text)


def _is_hostname(text: str) -> bool:
    plain = "".join(map(_as_ascii, text))
    labels = text.split(".")
    too_long = len(text.encode()) > _LONGEST_HOSTNAME or any(len(each.encode()) > _LONGEST_LABEL for each in labels)
    return not too_long and bool(_HOSTNAME.fullmatch(plain))


def _as_ascii(character: str) -> str:
    """Replace letters by "a" and symbols by "0", as host names may contain both."""
    category = unicodedata.category(character)
    if character.isascii() and character.isalnum():
        return character
    return {"L": "a", "S": "0"}.get(category[0], character)


def _is_duration(text: str) -> bool:
    try:
        seconds(text)
    except DurationError:
        units = [unit.lower() for unit in _AMOUNT.findall(text)]
        return any(unit in _UNITS or unit.startswith(_UNIT_WORDS) for unit in units)
    return True


def _is_uri(text: str) -> bool:
    return bool(_URI.fullmatch(text))


def _is_email(text: str) -> bool:
    name, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    whole = text.strip().endswith(f"{address}>") if name else text.strip() in (address, f"<{address}>")
    return whole and bool(at and domain and _LOCAL_PART.fullmatch(local))


def _is_card(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if not re.fullmatch(_CARDS, digits):
        return False
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits)))
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    return sum((10 if digit == "X" else int(digit)) * (index + 1) for index, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(digit) * (1 + 2 * (index % 2)) for index, digit in enumerate(digits)) % 10 == 0


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text):
        return False
    try:
        return bool(datetime.fromisoformat(re.sub(r"\.\d+", "", text.upper())))
    except ValueError:
        return False


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    **{name: _matches(pattern) for name, pattern in _PATTERNS.items()},
    "cidr": _is_network,
    "creditcard": _is_card,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(text, "."),
    "ipv6": lambda text: _is_address(text, ":"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8s-long-name": lambda text: not subdomain_faults(text),
    "k8s-short-name": lambda text: not label_faults(text),
    "uri": _is_uri,
}
