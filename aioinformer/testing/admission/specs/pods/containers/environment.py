"""Validation of environment variables and their sources."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.field_references import field_reference, resource_reference
from aioinformer.testing.admission.specs.terms.parts import containers_of, format_causes, not_found, required
from aioinformer.testing.admission.specs.terms.paths import no_parent_steps
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import config_key_faults, label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_INVALID_VARIABLE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ONE_AT_A_TIME = "may not have more than one field specified at a time"
# fmt: off
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)
# fmt: on


def variable_causes(variables: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the environment variables of a container."""
    for index, variable in enumerate(variables):
        here = f"{path}[{index}]"
        if variable.get("name"):
            yield from format_causes(variable["name"], f"{here}.name", _variable_faults)
        else:
            yield Cause.required(f"{here}.name")
        if variable.get("valueFrom") is not None:
            yield from _value_source(variable["valueFrom"], f"{here}.valueFrom", has_value=bool(variable.get("value")))


def import_causes(imports: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the config maps and secrets that a container imports as variables."""
    for index, each in enumerate(imports):
        here = f"{path}[{index}]"
        if each.get("prefix"):
            yield from format_causes(each["prefix"], f"{here}.prefix", _variable_faults)
        sources = [source for source in ("configMapRef", "secretRef") if each.get(source) is not None]
        for source in sources:
            yield from required(each[source], f"{here}.{source}", "name")
            if each[source].get("name"):
                yield from format_causes(each[source]["name"], f"{here}.{source}.name", subdomain_faults)
        if not sources:
            yield Cause.invalid(path, '""', "must specify one of: `configMapRef` or `secretRef`", missing=True)
        elif len(sources) > 1:
            yield Cause.invalid(path, '""', _ONE_AT_A_TIME)


def file_reference_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the volumes of a pod that variables are read from.

    Args:
        path: of the spec.
    """
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    for container, here in containers_of(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name, place = reference.get("volumeName", ""), f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                yield not_found(name, place)
            elif volumes[name].get("emptyDir") is None:
                yield Cause.invalid(place, quote(name), "referenced volume must be of type emptyDir")


def _value_source(origin: Part, path: str, *, has_value: bool) -> Iterator[Cause]:
    sources = [source for source in _SOURCES if origin.get(source) is not None]
    for source in sources:
        yield from _SOURCES[source](origin[source], f"{path}.{source}")
    if not sources:
        *most, last = (f"`{source}`" for source in _SOURCES)
        yield Cause.invalid(path, '""', f"must specify one of: {', '.join(most)} or {last}", missing=True)
    elif has_value:
        yield Cause.invalid(path, '""', "may not be specified when `value` is not empty")
    elif len(sources) > 1:
        yield Cause.invalid(path, '""', _ONE_AT_A_TIME)


def _key_reference(reference: Part, path: str) -> Iterator[Cause]:
    yield from format_causes(reference.get("name", ""), f"{path}.name", subdomain_faults)
    yield from required(reference, path, "key")
    if reference.get("key"):
        yield from format_causes(reference["key"], f"{path}.key", config_key_faults)


def _file_reference(reference: Part, path: str) -> Iterator[Cause]:
    forms = {"key": _variable_faults, "volumeName": label_faults}
    for field in ("key", "volumeName", "path"):
        yield from required(reference, path, field)
        if reference.get(field) and field in forms:
            yield from format_causes(reference[field], f"{path}.{field}", forms[field])
    yield from no_parent_steps(reference.get("path", ""), f"{path}.path")


_SOURCES: Mapping[str, Callable[[Part, str], Iterator[Cause]]] = {
    "fieldRef": partial(field_reference, known=_FIELDS),
    "resourceFieldRef": partial(resource_reference, of_volume=False),
    "configMapKeyRef": _key_reference,
    "secretKeyRef": _key_reference,
    "fileKeyRef": _file_reference,
}


def _variable_faults(name: str) -> list[str]:
    return [] if name.isascii() and name.isprintable() and "=" not in name else [_INVALID_VARIABLE]
