"""Extensions of the language for texts that have a form."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

from aioinformer.testing.admission.cel.library.networks import parsed_url
from aioinformer.testing.admission.cel.library.times import to_timestamp
from aioinformer.testing.admission.cel.values import NONE, EvaluationError, Optional
from aioinformer.testing.api import validation

if TYPE_CHECKING:
    from collections.abc import Callable

_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Format:
    """A form.

    Attributes:
        faults: gives what is wrong with a text.
    """

    type_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    faults: Callable[[str], list[str]] = field(compare=False)


def _prefix(faults: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The same for what only begins a name: a dash at its end is followed by something."""
    return lambda text: faults(f"{text[:-1]}a" if text.endswith("-") else text)


def _fails(check: Callable[[str], Any], errors: type[Exception] | tuple[type[Exception], ...], why: str) -> Any:
    def faults(text: str) -> list[str]:
        try:
            check(text)
        except errors:
            return [why]
        return []

    return faults


def _uri_faults(text: str) -> list[str]:
    try:
        parsed_url(text)
    except EvaluationError as error:
        return [str(error).removeprefix("URL parse error during conversion from string: ")]
    return []


def _uuid_faults(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


_FORMATS = {
    each.name: each
    for each in (
        Format("dns1123Label", validation.label_faults),
        Format("dns1123Subdomain", validation.subdomain_faults),
        Format("dns1035Label", validation.letter_label_faults),
        Format("qualifiedName", validation.label_name_faults),
        Format("dns1123LabelPrefix", _prefix(validation.label_faults)),
        Format("dns1123SubdomainPrefix", _prefix(validation.subdomain_faults)),
        Format("dns1035LabelPrefix", _prefix(validation.letter_label_faults)),
        Format("labelValue", validation.label_value_faults),
        Format("uri", _uri_faults),
        Format("uuid", _uuid_faults),
        Format("byte", _fails(lambda text: base64.b64decode(text, validate=True), binascii.Error, "invalid base64")),
        Format("date", _fails(date.fromisoformat, ValueError, "invalid date")),
        Format("datetime", _fails(to_timestamp, EvaluationError, "invalid datetime")),
    )
}


def _validated(format_: Format, text: str) -> Optional:
    faults = format_.faults(text)
    return Optional((faults,)) if faults else NONE


def _named(name: str) -> Optional:
    return Optional((_FORMATS[name],)) if name in _FORMATS else NONE


def _giving(format_: Format) -> Callable[[], Format]:
    return lambda: format_


FORMATS: dict[str, dict[str, Callable[..., Any]]] = {
    "validate": {"kubernetes.NamedFormat.(string) -> optional_type(list(string))": _validated},
    "format.named": {"(string) -> optional_type(kubernetes.NamedFormat)": _named},
    **{f"format.{name}": {"() -> kubernetes.NamedFormat": _giving(each)} for name, each in _FORMATS.items()},
}
