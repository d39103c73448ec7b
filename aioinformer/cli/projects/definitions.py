"""`aioinformer crd`: compare the definition of a class with one in a file, and with the one before.

Lines name a place by the members of `spec`, versions by their name, and fields of a schema by their path:
`names.shortNames`, `versions.v1.served`, `versions.v1.spec.ports[].name`.
"""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aioinformer.cli.output.changes import differences
from aioinformer.cli.projects.compatibility import breaks
from aioinformer.errors import UsageError
from aioinformer.resources.manifests import load_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.crds.types import Schema

#: What servers add to definitions that do not state it.
_ADDED: Final[dict[str, Any]] = {"conversion": {"strategy": "None"}, "preserveUnknownFields": False}


def compare(body: dict[str, Any], check: str | None, compatible_with: str | None) -> list[str]:
    """Return a line for each difference from the file `check`, and each break since the file `compatible_with`.

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

    What only servers write is ignored: status, metadata, and defaults of the definition. So is the webhook of a
    conversion, which depends on where the manager runs.
    """
    spec = {name: value for name, value in found.get("spec", {}).items() if _ADDED.get(name) != value}
    has = _without_webhook(wanted["spec"])
    is_there = _without_webhook(spec)
    versions = [{each["name"]: each for each in one.pop("versions", ())} for one in (has, is_there)]
    lines = [_line(path, *values) for path, *values in differences("", has, is_there)]
    for name in {**versions[0], **versions[1]}:
        lines += _version_differences(versions[0].get(name), versions[1].get(name), f"versions.{name}")
    return lines


def _without_webhook(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the members, of which `conversion` has the strategy only."""
    conversion = spec.get("conversion")
    if conversion is None:
        return dict(spec)
    return {**spec, "conversion": {"strategy": conversion.get("strategy")}}


def _version_differences(has: Any, is_there: Any, path: str) -> Iterator[str]:
    if has is None or is_there is None:
        yield _line(path, has, is_there)
        return
    rest = [{name: value for name, value in each.items() if name != "schema"} for each in (has, is_there)]
    for at, *values in differences(path, *rest):
        yield _line(at, *values)
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") or {} for each in (has, is_there)]
    yield from _schema_differences(schemas[0], schemas[1], path)


def _schema_differences(has: Schema, is_there: Schema, path: str) -> Iterator[str]:
    for keyword in sorted(has.keys() | is_there.keys()):
        one = has.get(keyword)
        other = is_there.get(keyword)
        if keyword == "properties":
            for name in sorted((one or {}).keys() | (other or {}).keys()):
                yield from _below((one or {}).get(name), (other or {}).get(name), f"{path}.{name}")
        elif keyword in ("items", "additionalProperties") and isinstance(one, dict) and isinstance(other, dict):
            yield from _schema_differences(one, other, f"{path}{'[]' if keyword == 'items' else '{}'}")
        elif one != other:
            yield _line(path, one, other, keyword)


def _below(has: Schema | None, is_there: Schema | None, path: str) -> Iterator[str]:
    if has is None or is_there is None:
        yield _line(path, has, is_there)
    else:
        yield from _schema_differences(has, is_there, path)


def _line(path: str, has: Any, is_there: Any, keyword: str = "") -> str:
    what = f"{path}: {keyword}{' is ' if keyword else ''}"
    if is_there is None:
        return f"{what}missing; the class has {reprlib.repr(has)}"
    if has is None:
        return f"{what}{reprlib.repr(is_there)}; the class does not have it"
    return f"{what}{reprlib.repr(is_there)}; the class has {reprlib.repr(has)}"


def _definition(file: str, name: str) -> dict[str, Any]:
    definitions = (each for each in load_manifests(Path(file)) if each["kind"] == "CustomResourceDefinition")
    found = {str(each["metadata"].get("name")): each for each in definitions}
    if name not in found:
        others = f", only {', '.join(found)}" if found else ""
        raise UsageError(f"{file}: has no CustomResourceDefinition {name}{others}")
    return found[name]
