"""What is wrong with the declared steps of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.crds.agreement import disagreements
from aioinformer.crds.conversion.steps import Function
from aioinformer.crds.structural import find
from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.crds.declaration import CustomResource


def check_conversion(hub: CustomResource[Any], other: CustomResource[Any]) -> None:
    """Check the steps of a version.

    Raises:
        OptionError: a step names a field that its version or the hub does not have, or that another one names, or a
            type differs without a step that converts it.
        UsageError: a class has no structural schema.
    """
    steps = other.conversion or ()
    mine = other.schema()
    hubs = hub.schema()
    for resource, schema, paths in (
        (other, mine, [path for each in steps for path in each.here]),
        (hub, hubs, [path for each in steps for path in each.there]),
    ):
        for path in paths:
            if find(schema, _json_path(path)) is None:
                raise OptionError(f"conversion: {resource.version} of {resource.kind} has no field {path}")
        for path in paths:
            if sum(_is_within(path, each) for each in paths) > 1:
                raise OptionError(f"conversion: {resource.version}: two steps convert {path}; make one of them")
    for step in steps:
        if step.keeps_type and step.here:
            here = find(mine, _json_path(step.here[0])) or {}
            there = find(hubs, _json_path(step.there[0])) or {}
            for path, first, second in _other_types(here, there):
                below = f" at {path}" if path else ""
                raise OptionError(
                    f"conversion: {step.here[0]} of {other.version} and {step.there[0]} of {hub.version} "
                    f"differ{below}: {first} and {second}; use Map"
                )
    if any(isinstance(each, Function) for each in steps):
        return
    named = {path for step in steps for path in (*step.here, *step.there)}
    for path, first, second in _other_types(hubs, mine):
        if not any(_is_within(path, each) for each in named):
            raise OptionError(
                f"conversion: {path} is {first} in {hub.version} and {second} in {other.version}; convert it with a Map"
            )


def _is_within(path: str, other: str) -> bool:
    """Return whether a field is another one, or a part of it."""
    return path == other or path.startswith((f"{other}.", f"{other}[", f"{other}{{"))


def _other_types(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the paths that both schemas have with different types, and the types."""
    for path, first, second in disagreements(one, other):
        if first and second:
            yield path, first, second


def _json_path(path: str) -> str:
    """Return the path as `find` reads it: of `[]`, each member, and of `{}`, any name."""
    return "." + path.replace("[]", "[*]").replace("{}", ".any")
