"""Validation of volumes that project keys, fields and tokens as files: one source or several.

Cluster trust bundles and pod certificates are not checked: the API drops them while their feature gates are off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.field_references import field_reference, resource_reference
from aioinformer.testing.admission.specs.terms.parts import required
from aioinformer.testing.admission.specs.terms.paths import mode, unreserved_path
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Source = Mapping[str, Any]

_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KINDS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_SHORTEST, _LONGEST = 10 * 60, 2**32


def projected(source: Source, path: str) -> Iterator[Cause]:
    """Check a projected volume."""
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    paths: set[str] = set()
    for index, each in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        kinds = [kind for kind in _KINDS if each.get(kind) is not None]
        for kind in kinds:
            part = each[kind]
            if kind == "serviceAccountToken":
                yield from _token(part, path, f"{here}.{kind}")
            else:
                yield from _files(part, path, f"{here}.{kind}", paths)
        if len(kinds) > 1:
            yield Cause.forbidden(here, "may not specify more than 1 volume type per source")


def key_paths(items: Sequence[Source], path: str) -> Iterator[Cause]:
    """Check the items that map keys to file paths."""
    for index, item in enumerate(items):
        yield from _key_path(item, f"{path}[{index}]")


def downward_file(item: Source, path: str) -> Iterator[Cause]:
    """Check a file of the downward API. The API reports all files under the path of their parent."""
    yield from required(item, path, "path")
    yield from unreserved_path(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from field_reference(field, f"{path}.fieldRef", _FIELDS)
        if resource is not None:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield Cause.invalid(path, '"resource"', why)
    elif resource is not None:
        yield from resource_reference(resource, f"{path}.resourceFieldRef", of_volume=True)
    else:
        yield Cause.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode(item.get("mode"), f"{path}.mode")


def _key_path(item: Source, path: str) -> Iterator[Cause]:
    yield from required(item, path, "key", "path")
    yield from unreserved_path(item.get("path", ""), f"{path}.path")
    yield from mode(item.get("mode"), f"{path}.mode")


def _files(part: Source, volume: str, path: str, paths: set[str]) -> Iterator[Cause]:
    downward = path.endswith(".downwardAPI")
    if not downward:
        yield from required(part, path, "name")
    for index, item in enumerate(part.get("items") or ()):
        yield from downward_file(item, path) if downward else _key_path(item, f"{path}.items[{index}]")
        place = item.get("path", "")
        if place and place in paths:
            named = place if downward else part.get("name", "")
            yield Cause.invalid(volume, quote(named), "conflicting duplicate paths")
        paths.add(place)


def _token(part: Source, volume: str, path: str) -> Iterator[Cause]:
    seconds = part.get("expirationSeconds", _SHORTEST)
    if seconds < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
        yield Cause.invalid(f"{path}.expirationSeconds", str(seconds), why)
    if seconds > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
        yield Cause.invalid(f"{path}.expirationSeconds", str(seconds), why)
    yield from required(part, volume, "path")
    yield from unreserved_path(part.get("path", ""), f"{volume}.path")
