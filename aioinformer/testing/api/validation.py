"""Validation of names, labels and finalizers, with the messages of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.cel.library.formats import (
    label_faults,
    label_name_faults,
    label_value_faults,
    subdomain_faults,
)
from aioinformer.testing.api.encoding import json_type, quote
from aioinformer.testing.api.statuses import Cause, StatusError, bad_request, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.resource import Resource

_NEVER_OWNERS = frozenset({("", "v1", "Event")})
_LARGEST_ANNOTATIONS = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def metadata_causes(resource: Resource[Any], metadata: Mapping[str, Any], *, custom: bool) -> list[Cause]:
    """Return everything that is wrong with the metadata of a new object.

    Args:
        custom: whether it is a custom resource, whose finalizers need no domain.
    """
    causes = []
    if prefix := metadata.get("generateName"):
        # The generated suffix replaces the end of the prefix, so a hyphen may be last.
        masked = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
        causes += [Cause.invalid("metadata.generateName", f'"{prefix}"', why) for why in _name_faults(resource, masked)]
    causes += name_causes(resource, str(metadata.get("name") or ""))
    if (generation := metadata.get("generation") or 0) < 0:
        causes.append(Cause.invalid("metadata.generation", str(generation), "must be greater than or equal to 0"))
    causes += labelling_causes(metadata)
    causes += _reference_causes(metadata.get("ownerReferences") or ())
    return causes + _finalizer_causes(metadata.get("finalizers") or (), custom=custom)


def warn_of_finalizers(metadata: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    """Warn of the new finalizers of a custom resource that do not name a domain and a path."""
    known = (old or {}).get("finalizers") or ()
    for finalizer in metadata.get("finalizers") or ():
        if finalizer in known or finalizer in _STANDARD_FINALIZERS or "/" in finalizer:
            continue
        path = " including a path (/)" if "." in finalizer else ""
        warn(
            f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name{path} '
            "to avoid accidental conflicts with other finalizer writers"
        )


def check_metadata_types(kind: str, metadata: Any) -> None:
    """Refuse metadata of other types than the API's. The nulls of string maps become empty strings."""

    def refuse(field: str, value: Any, wanted: str) -> StatusError:
        return bad_request(f"{kind} cannot be handled: {field} must be {wanted}, not {json_type(value)}")

    if not isinstance(metadata, dict):
        raise refuse("metadata", metadata, "an object")
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(metadata.get(field) or "", str):
            raise refuse(f"metadata.{field}", metadata[field], "a string")
    for field in ("labels", "annotations"):
        values = metadata.get(field) or {}
        if not isinstance(values, dict):
            raise refuse(f"metadata.{field}", values, "an object")
        for key, value in values.items():
            if value is None:
                values[key] = ""
            elif not isinstance(value, str):
                raise refuse(f"metadata.{field}[{key}]", value, "a string")
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(each, str) for each in finalizers):
        raise refuse("metadata.finalizers", finalizers, "a list of strings")


def _segment_faults(name: str) -> list[str]:
    """Return what is wrong with a segment of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def name_causes(resource: Resource[Any], name: str) -> list[Cause]:
    """Return what is wrong with the name of an object, by the rule of its resource."""
    if not name:
        return [Cause.required("metadata.name", "name or generateName is required")]
    return [Cause.invalid("metadata.name", f'"{name}"', why) for why in _name_faults(resource, name)]


def _name_faults(resource: Resource[Any], name: str) -> Sequence[str]:
    if resource.group == "rbac.authorization.k8s.io" or resource.group_resource == "poddisruptionbudgets.policy":
        return _segment_faults(name)
    if resource.group_resource in ("namespaces", "services", "statefulsets.apps"):
        return label_faults(name)
    if resource.group_resource == "events":
        return []
    return subdomain_faults(name)


def _reference_causes(references: Sequence[Mapping[str, Any]]) -> list[Cause]:
    causes = []
    path = "metadata.ownerReferences"
    for reference in references:
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        if not version:
            causes.append(Cause.invalid(f"{path}.apiVersion", f'"{version}"', "version must not be empty"))
        causes += [
            Cause.invalid(f"{path}.{field}", '""', "must not be empty")
            for field in ("kind", "name", "uid")
            if not reference.get(field)
        ]
        if (group, version, reference.get("kind")) in _NEVER_OWNERS:
            kind = f"{group}/{version}, Kind={reference['kind']}"
            causes.append(Cause.invalid(path, quote(reference), f"{kind} is disallowed from being an owner"))
    controllers = [each for each in references if each.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{each.get('kind')}/{each.get('name')}" for each in controllers[:2])
        why = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        causes.append(Cause.invalid(path, quote(references), why))
    return causes


def labelling_causes(metadata: Mapping[str, Any]) -> list[Cause]:
    """Return what is wrong with labels and annotations."""
    causes = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += [Cause.invalid("metadata.labels", f'"{key}"', why) for why in label_name_faults(key)]
        causes += [Cause.invalid("metadata.labels", f'"{value}"', why) for why in label_value_faults(value)]
    return causes + _annotation_causes(metadata.get("annotations") or {}, "metadata.annotations")


def _annotation_causes(annotations: Mapping[str, Any], path: str) -> list[Cause]:
    causes = [Cause.invalid(path, f'"{key}"', why) for key in annotations for why in label_name_faults(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _LARGEST_ANNOTATIONS:
        causes.append(Cause("FieldValueTooLong", path, f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"))
    return causes


def _finalizer_causes(finalizers: Sequence[str], *, custom: bool) -> list[Cause]:
    path = "metadata.finalizers"
    causes = []
    for index, finalizer in enumerate(finalizers):
        causes += [Cause.invalid(path, f'"{finalizer}"', why) for why in label_name_faults(finalizer)]
        if not custom and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(Cause.invalid(f"{path}[{index}]", f'"{finalizer}"', why))
    if {"orphan", "foregroundDeletion"}.issubset(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(Cause.invalid(path, quote(list(finalizers)), why))
    return causes
