"""What `watch` is pointed at: resources, each of them whole or one object of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aioinformer.errors import UsageError
from aioinformer.resources.restmapper import parse_resource_name
from aioinformer.resources.selectors import FieldSelector

_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Target:
    """One resource, or one object of it.

    Attributes:
        resource: as kubectl takes it, or group/version/plural.
        name: of the object, "" for all objects.
    """

    resource: str
    name: str = ""

    def field_selector(self, selector: str) -> str:
        """Return `selector`, narrowed to the object if one is named."""
        named = str(FieldSelector.from_fields({"metadata.name": self.name})) if self.name else ""
        return ",".join(filter(None, (named, selector)))

    def __str__(self) -> str:
        return f"{self.resource}/{self.name}" if self.name else self.resource


def parse_targets(text: str, name: str | None = None) -> tuple[Target, ...]:
    """Parse `pods`, `pods/web-1`, `pods,services` and the rest of what kubectl takes; each target comes once.

    Args:
        text: resources, separated by commas. A slash separates the name of an object, except where it separates a
            version from a plural, as in v1/pods.
        name: of the object, where it is an argument of its own; "" is an error.

    Raises:
        UsageError: a part of the text is no resource, or an object is named twice.
    """
    return tuple(dict.fromkeys(_parse(part.strip(), name) for part in text.split(",")))


def _parse(text: str, name: str | None) -> Target:
    resource, own = _divide(text)
    parse_resource_name(resource)
    if own is not None and name is not None:
        raise UsageError(f"{text!r} names an object already; leave out {name!r}, or separate resources by commas")
    found = own if name is None else name
    if found is not None and (not found or found in (".", "..") or "/" in found or "%" in found):
        raise UsageError(f"{found!r} is not the name of an object; write RESOURCE/NAME or RESOURCE NAME")
    return Target(resource, found or "")


def _divide(text: str) -> tuple[str, str | None]:
    """The resource, and the name of the object if there is one."""
    parts = text.split("/")
    versions = [_VERSION.fullmatch(part) is not None for part in parts]
    match versions:
        case [False, _] | [True, False, _] | [False, True, _, _]:
            return "/".join(parts[:-1]), parts[-1]
        case _:
            return text, None
