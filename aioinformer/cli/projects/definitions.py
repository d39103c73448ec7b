"""`aioinformer crd`: compare the definition of a class with one in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioinformer.crds.comparing import breaks, differences
from aioinformer.errors import UsageError
from aioinformer.resources.manifests import load_manifests


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
        lines += [f"{check}: {name}: {each}" for each in differences(body, _definition(check, name))]
    if compatible_with is not None:
        lines += [f"{name}: {each}" for each in breaks(_definition(compatible_with, name), body)]
    return lines


def _definition(file: str, name: str) -> dict[str, Any]:
    found = [each for each in load_manifests(Path(file)) if each["kind"] == "CustomResourceDefinition"]
    for each in found:
        if each["metadata"].get("name") == name:
            return each
    others = ", ".join(str(each["metadata"].get("name")) for each in found)
    raise UsageError(f"{file}: has no CustomResourceDefinition {name}{f', only {others}' if others else ''}")
