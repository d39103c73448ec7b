"""What is wrong with the declared steps of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.crds.agreement import disagreements
from aioinformer.crds.conversion.steps import Function
from aioinformer.crds.structural import find
from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aioinformer.crds.conversion.steps import Step
    from aioinformer.crds.declaration import CustomResource


def check_conversion(hub: CustomResource[Any], other: CustomResource[Any]) -> None:
    """Check the steps of a version.

    Raises:
        OptionError: a step names a field that its version or the hub does not have, or that another one names, or a
            type differs without a step that converts it.
        UsageError: a class has no structural schema.
    """
    steps = other.conversion or ()
    for resource, paths in (
        (other, [path for each in steps for path in each.here]),
        (hub, [path for each in steps for path in each.there]),
    ):
        schema = resource.schema()
        for path in paths:
            if find(schema, _json_path(path)) is None:
                raise OptionError(f"conversion: {resource.version} of {resource.kind} has no field {path}")
        for path in paths:
            if sum(_is_within(path, each) for each in paths) > 1:
                raise OptionError(f"conversion: {resource.version}: two steps convert {path}; make one of them")
    for step in steps:
        if step.keeps_type and step.here:
            _check_type(hub, other, step)
    if not any(isinstance(each, Function) for each in steps):
        for line in _unsaid(hub, other, steps):
            raise OptionError(f"conversion: {line}")


def _is_within(path: str, other: str) -> bool:
    """Return whether a field is another one, or a part of it."""
    return path == other or path.startswith((f"{other}.", f"{other}[", f"{other}{{"))


def _check_type(hub: CustomResource[Any], other: CustomResource[Any], step: Step) -> None:
    places = ((other, step.here[0]), (hub, step.there[0]))
    mine, hubs = (find(resource.schema(), _json_path(path)) or {} for resource, path in places)
    for path, first, second in disagreements(mine, hubs):
        if first and second:
            below = f" at {path}" if path else ""
            raise OptionError(
                f"conversion: {step.here[0]} of {other.version} and {step.there[0]} of {hub.version} differ{below}: "
                f"{first} and {second}; use Map"
            )


def _unsaid(hub: CustomResource[Any], other: CustomResource[Any], steps: Sequence[Step]) -> Iterator[str]:
    """Yield the fields whose type differs, without a step that converts them."""
    named = {path for step in steps for path in (*step.here, *step.there)}
    for path, first, second in disagreements(hub.schema(), other.schema()):
        if first and second and not any(_is_within(path, each) for each in named):
            yield f"{path} is {first} in {hub.version} and {second} in {other.version}; convert it with a Map"


def _json_path(path: str) -> str:
    """Return the path as `find` reads it: of `[]`, each member, and of `{}`, any name."""
    return "." + path.replace("[]", "[*]").replace("{}", ".any")
