"""Checks for the `format` of strings in schemas. Unknown formats accept all strings."""

from __future__ import annotations

import ipaddress
import re
from datetime import date, datetime
from email.utils import parseaddr
from typing import TYPE_CHECKING

from aioinformer.cel.expressions import compile_pattern
from aioinformer.cel.library.formats import label_faults, subdomain_faults
from aioinformer.cel.values import Unsupported
from aioinformer.testing.api.encoding import seconds
from aioinformer.testing.api.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.cel.expressions import Pattern

_HEX = "[0-9a-fA-F]"
_PATTERNS = {
    "byte": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    "mac": f"{_HEX}{{2}}(?:(?::{_HEX}{{2}}){{5}}|(?:-{_HEX}{{2}}){{5}})",
    "uuid": f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}",
}
#: Formats whose texts are not checked here.
_UNCHECKED = frozenset(
    (
        *("bsonobjectid", "creditcard", "hexcolor", "isbn", "isbn10", "isbn13"),
        *("password", "rgbcolor", "ssn", "uuid3", "uuid4", "uuid5"),
    )
)
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = re.compile(rf"(?=.{{1,255}}$){_LABEL}(?:\.{_LABEL})*")
_LOCAL_PART = re.compile(r"""[^\s@()<>\[\]:;\\,"]+|"[^"]+\"""")
_URI = re.compile(r"(?:/|[A-Za-z][A-Za-z0-9+.-]*:)\S*")


def is_of_format(text: str, format_: str) -> bool:
    """Return whether the text has the format. Unknown formats accept all texts."""
    check = _CHECKS.get(_normalized(format_))
    return check is None or check(text)


def is_text_format(format_: str) -> bool:
    """Return whether kube-apiserver knows a format of texts. It drops others from a schema."""
    name = _normalized(format_)
    return name in _CHECKS or name in _UNCHECKED


def _normalized(format_: str) -> str:
    return format_.replace("-", "")


def _is_address(text: str, mark: str) -> bool:
    if mark not in text or "%" in text:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_network(text: str) -> bool:
    address, slash, prefix = text.partition("/")
    try:
        ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    except ValueError:
        return False
    return bool(slash) and prefix.isdecimal()


def _is_hostname(text: str) -> bool:
    return bool(_HOSTNAME.fullmatch(text))


def _is_duration(text: str) -> bool:
    try:
        seconds(text)
    except ValueError:
        return False
    return True


def schema_pattern(pattern: str) -> Pattern:
    """Return the compiled `pattern` of a schema.

    Raises:
        EvaluationError: the pattern is invalid in Go.
        StatusError: 501, the library for patterns is not installed.
    """
    try:
        return compile_pattern(pattern)
    except Unsupported as error:
        raise StatusError(501, "NotImplemented", f"this server cannot check a schema: {error}") from None


def _is_uri(text: str) -> bool:
    return bool(_URI.fullmatch(text))


def _is_email(text: str) -> bool:
    name, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    if name:
        whole = text.strip().endswith(f"{address}>")
    else:
        whole = text.strip() in (address, f"<{address}>")
    return whole and bool(at and domain and _LOCAL_PART.fullmatch(local))


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
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(text, "."),
    "ipv6": lambda text: _is_address(text, ":"),
    "k8slongname": lambda text: not subdomain_faults(text),
    "k8sshortname": lambda text: not label_faults(text),
    "uri": _is_uri,
}
