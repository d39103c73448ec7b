"""Parse the RESOURCE and NAME arguments of `watch`: resources, or single objects."""

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
        name: the name of the object; "" for all objects.
    """

    resource: str
    name: str = ""

    def field_selector(self, selector: str) -> str:
        """Return `selector`, narrowed to the object if one is named."""
        if self.name:
            named = str(FieldSelector.from_fields({"metadata.name": self.name}))
        else:
            named = ""
        return ",".join(filter(None, (named, selector)))

    def __str__(self) -> str:
        return f"{self.resource}/{self.name}" if self.name else self.resource


def parse_targets(text: str, name: str | None = None) -> tuple[Target, ...]:
    """Parse `pods`, `pods/web-1`, `pods,services` and other forms as kubectl does; duplicates are removed.

    Args:
        text: resources, separated by commas. A slash separates the name of an object, or a version from a plural, as
            in v1/pods.
        name: the name of the object as a separate argument; None if there is none.

    Raises:
        UsageError: a part of the text is not a resource, or the name is given twice or invalid.
    """
    return tuple(dict.fromkeys(_parse(part.strip(), name) for part in text.split(",")))


def _parse(text: str, name: str | None) -> Target:
    resource, own_name = _split_name(text)
    parse_resource_name(resource)
    if own_name is not None and name is not None:
        raise UsageError(f"{text!r} already names an object; omit {name!r}, or separate resources by commas")
    object_name = own_name if name is None else name
    if object_name is not None and (
        not object_name or object_name in (".", "..") or "/" in object_name or "%" in object_name
    ):
        raise UsageError(f"{object_name!r} is not the name of an object; write RESOURCE/NAME or RESOURCE NAME")
    return Target(resource, object_name or "")


def _split_name(text: str) -> tuple[str, str | None]:
    """Return the resource, and the name of the object if there is one."""
    parts = text.split("/")
    versions = [_VERSION.fullmatch(part) is not None for part in parts]
    match versions:
        case [False, _] | [True, False, _] | [False, True, _, _]:
            return "/".join(parts[:-1]), parts[-1]
        case _:
            return text, None
