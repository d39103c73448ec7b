"""CEL extension for named string formats."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

from aioinformer.testing.cel.library import names
from aioinformer.testing.cel.library.networks import parse_url
from aioinformer.testing.cel.library.times import to_timestamp
from aioinformer.testing.cel.values import NONE, EvaluationError, Optional

if TYPE_CHECKING:
    from collections.abc import Callable

_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


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
        Format("dns1123Label", names.label_faults),
        Format("dns1123Subdomain", names.subdomain_faults),
        Format("dns1035Label", names.letter_label_faults),
        Format("qualifiedName", names.label_name_faults),
        Format("dns1123LabelPrefix", _prefix_of(names.label_faults)),
        Format("dns1123SubdomainPrefix", _prefix_of(names.subdomain_faults)),
        Format("dns1035LabelPrefix", _prefix_of(names.letter_label_faults)),
        Format("labelValue", names.label_value_faults),
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
