"""Validation of names, labels and finalizers, with the messages of the API."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.addresses import canonical_ip_faults
from aioinformer.testing.api.statuses import Cause, StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.resource import Resource

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTER_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WILDCARD = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LETTER_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
_NEVER_OWNERS = frozenset({("", "v1", "Event")})
_LARGEST_ANNOTATIONS = 256 * 1024
#: How often an update checks metadata as those of a new object, too.
_LOOKED_AT_AGAIN = {"deployments.apps": 1, "events": 0, "events.events.k8s.io": 1}
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def metadata_causes(resource: Resource[Any], metadata: Mapping[str, Any]) -> list[Cause]:
    """Return everything that is wrong with the metadata of a new object."""
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
    return causes + _finalizer_causes(metadata.get("finalizers") or ())


def metadata_update_causes(resource: Resource[Any], metadata: Mapping[str, Any], *, custom: bool) -> list[Cause]:
    """Return the same for an update: the API checks some fields several times, and reports each time."""
    first = labelling_causes(metadata) + _reference_causes(metadata.get("ownerReferences") or ())
    again = 1 if custom else _LOOKED_AT_AGAIN.get(resource.group_resource, 2)
    return [*(first * 2), *(metadata_causes(resource, metadata) * again)]


def check_metadata_types(served_kind: str, version: str, metadata: Any, *, custom: bool = False) -> None:
    """Refuse metadata that Go could not decode. Like Go, turn the nulls of string maps into empty strings.

    Raises:
        StatusError: 400.
    """

    def refuse(field: str, value: Any, wanted: str) -> StatusError:
        found = {bool: "bool", dict: "object", list: "array", str: "string"}.get(type(value), "number")
        return bad_request(
            f'{served_kind} in version "{version}" cannot be handled as a {served_kind}: json: cannot unmarshal '
            f"{found} into Go struct field ObjectMeta.{'' if custom else 'metadata.'}{field} of type {wanted}"
        )

    if not isinstance(metadata, dict):
        found = {list: "array", str: "string", bool: "bool"}.get(type(metadata), "number")
        raise bad_request(
            f'{served_kind} in version "{version}" cannot be handled as a {served_kind}: json: cannot unmarshal '
            f"{found} into Go {'value' if custom else f'struct field {served_kind}.metadata'} of type v1.ObjectMeta"
        )
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(metadata.get(field) or "", str):
            raise refuse(field, metadata[field], "types.UID" if field == "uid" else "string")
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            raise refuse(field, values, "map[string]string")
        for key, value in values.items():
            if value is None:
                values[key] = ""
            elif not isinstance(value, str):
                raise refuse(field, value, "string")
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list):
        raise refuse("finalizers", finalizers, "[]string")
    for value in finalizers:
        if not isinstance(value, str):
            raise refuse("finalizers", value, "string")


def label_name_faults(name: str) -> list[str]:
    """Yield what is wrong with the name of a label."""
    return _qualified_name_faults(name)


def label_value_faults(value: str) -> list[str]:
    """Yield what is wrong with the value of a label."""
    return _faults(value, _VALUE, _VALUE_TEXT, 63)


def letter_label_faults(name: str) -> list[str]:
    """Yield what is wrong with a DNS label that must begin with a letter."""
    return _faults(name, _LETTER_LABEL, _LETTER_LABEL_TEXT, 63)


def label_faults(name: str) -> list[str]:
    """Yield what is wrong with a DNS label."""
    why = "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _LABEL_TEXT
    return _faults(name, _LABEL, why, 63, "characters")


def subdomain_faults(name: str) -> list[str]:
    """Yield what is wrong with a DNS subdomain."""
    return _faults(name, _SUBDOMAIN, _SUBDOMAIN_TEXT, 253, "characters")


def wildcard_faults(name: str) -> list[str]:
    """Yield what is wrong with a wildcard DNS name."""
    return _faults(name, _WILDCARD, _WILDCARD_TEXT, 253, "characters")


def segment_faults(name: str) -> list[str]:
    """Yield what is wrong with a segment of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def config_key_faults(key: str) -> list[str]:
    """Yield what is wrong with a key of a config map or a secret."""
    found = _faults(key, re.compile(_CONFIG_KEY), _CONFIG_KEY_TEXT, 253, "characters")
    if key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


def name_causes(resource: Resource[Any], name: str) -> list[Cause]:
    """Yield what is wrong with the name of an object, by the rule of its resource."""
    if not name:
        return [Cause.required("metadata.name", "name or generateName is required")]
    return [Cause.invalid("metadata.name", f'"{name}"', why) for why in _name_faults(resource, name)]


def _name_faults(resource: Resource[Any], name: str) -> Sequence[str]:
    if resource.group == "rbac.authorization.k8s.io" or resource.group_resource == "poddisruptionbudgets.policy":
        return segment_faults(name)
    if resource.group_resource == "ipaddresses.networking.k8s.io":
        return canonical_ip_faults(name)
    if resource.group_resource in ("namespaces", "services", "statefulsets.apps"):
        return label_faults(name)
    if resource.group_resource == "events":
        return []
    return subdomain_faults(name)


def _faults(text: str, pattern: re.Pattern[str], why: str, longest: int, unit: str = "bytes") -> list[str]:
    found = []
    if len(text) > longest:
        found.append(f"must be no more than {longest} {unit}")
    if not pattern.fullmatch(text):
        found.append(why)
    return found


def _qualified_name_faults(key: str) -> list[str]:
    prefix, slash, name = key.partition("/")
    if "/" in name:
        example = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key must{_QUALIFIED_TEXT.removeprefix('name part must')}{example}"]
    if not slash:
        name = key
    found = []
    if slash and not (prefix and len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        found.append(f"prefix part {_SUBDOMAIN_TEXT}" if prefix else "prefix part must be non-empty")
    if not name:
        found.append("name part must be non-empty")
    if len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        found.append(_QUALIFIED_TEXT)
    return found


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
            causes.append(Cause.invalid(path, _shown(reference), f"{kind} is disallowed from being an owner"))
    controllers = [each for each in references if each.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{each.get('kind')}/{each.get('name')}" for each in controllers[:2])
        why = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        causes.append(Cause.invalid(path, f"[{','.join(map(_shown, references))}]", why))
    return causes


def _shown(reference: Mapping[str, Any]) -> str:
    fields = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    shown = {name: reference[name] for name in fields if name in reference}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def labelling_causes(metadata: Mapping[str, Any], path: str = "metadata") -> list[Cause]:
    """Yield what is wrong with labels and annotations.

    Args:
        metadata: has the labels and annotations.
        path: the reported parent of the fields; for a template without its `metadata`.
    """
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return label_causes(labels, f"{path}.labels") + _annotation_causes(annotations, f"{path}.annotations")


def label_causes(labels: Mapping[str, Any], path: str) -> list[Cause]:
    """Yield what is wrong with labels, or with a selector by equality."""
    causes = []
    for key, value in labels.items():
        causes += [Cause.invalid(path, f'"{key}"', why) for why in _qualified_name_faults(key)]
        causes += [Cause.invalid(path, f'"{value}"', why) for why in label_value_faults(value)]
    return causes


def _annotation_causes(annotations: Mapping[str, Any], path: str) -> list[Cause]:
    causes = [
        Cause.invalid(path, f'"{key}"', why) for key in annotations for why in _qualified_name_faults(key.lower())
    ]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _LARGEST_ANNOTATIONS:
        causes.append(Cause("FieldValueTooLong", path, f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"))
    return causes


def _finalizer_causes(finalizers: Sequence[str]) -> list[Cause]:
    path = "metadata.finalizers"
    causes = []
    for index, finalizer in enumerate(finalizers):
        causes += [Cause.invalid(path, f'"{finalizer}"', why) for why in _qualified_name_faults(finalizer)]
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(Cause.invalid(f"{path}[{index}]", f'"{finalizer}"', why))
    if {"orphan", "foregroundDeletion"}.issubset(finalizers):
        shown = json.dumps(list(finalizers), ensure_ascii=False, separators=(",", ":"))
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(Cause.invalid(path, shown, why))
    return causes
