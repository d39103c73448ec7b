"""`aioinformer crd`: compare the definition of a class with one in a file."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any, Final

from aioinformer.cli.output.changes import differences
from aioinformer.crds.comparing import breaks
from aioinformer.errors import UsageError
from aioinformer.resources.manifests import load_manifests

#: What servers add to definitions that do not state it.
_ADDED: Final[dict[str, Any]] = {"conversion": {"strategy": "None"}, "preserveUnknownFields": False}


def compare(body: dict[str, Any], check: str | None, compatible_with: str | None) -> list[str]:
    """Return a line for each difference from the definition in a file, and for each change that breaks something.

    Args:
        body: the definition of the class.
        check: a file with the same definition; None for no comparison.
        compatible_with: a file with the definition before; None for no comparison.

    Raises:
        UsageError: a file cannot be read, or has no definition of this name.
    """
    name = body["metadata"]["name"]
    lines = []
    if check is not None:
        found = _definition(check, name)
        lines += [f"{check}: {name}: {each}" for each in spec_differences(body, found)]
    if compatible_with is not None:
        lines += [f"{name}: {each}" for each in breaks(_definition(compatible_with, name), body)]
    return lines


def spec_differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return how the `spec` of a definition differs from that of the class, a line each.

    What only servers write is ignored: status, metadata, and defaults of the definition.
    """
    spec = {name: value for name, value in found.get("spec", {}).items() if _ADDED.get(name) != value}
    lines = []
    for path, has, is_there in differences("spec", wanted["spec"], spec):
        shown = "missing" if is_there is None else reprlib.repr(is_there)
        wants = "which the class does not have" if has is None else f"the class has {reprlib.repr(has)}"
        lines.append(f"{path}: {shown}; {wants}")
    return lines


def _definition(file: str, name: str) -> dict[str, Any]:
    found = [each for each in load_manifests(Path(file)) if each["kind"] == "CustomResourceDefinition"]
    for each in found:
        if each["metadata"].get("name") == name:
            return each
    others = ", ".join(str(each["metadata"].get("name")) for each in found)
    raise UsageError(f"{file}: has no CustomResourceDefinition {name}{f', only {others}' if others else ''}")
