"""Objects to bytes, in the field order of the API, once per version.

Built-in kinds come in the order of their Go structs: `kind`, `apiVersion`, `metadata` with its fixed order, then the
rest; in lists their items carry neither `kind` nor `apiVersion`. Custom resources are maps to the API: their keys are
sorted at every depth, and their items are whole. Clients lean on both (a reader that takes `items` before `metadata`
has to cope with the latter), so both are kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_METADATA_RANK = {name: rank for rank, name in enumerate(_METADATA_ORDER)}
_FIRST = ("kind", "apiVersion", "metadata")
_LAST = "status"
# The one timestamp deep down in a common kind that is written even if it is not set.
_KEPT_NULL = b'"lastProbeTime":null'
_WRITTEN_UNSET = {
    "Event": ("eventTime", "firstTimestamp", "lastTimestamp"),
    "Role": ("rules",),
    "ClusterRole": ("rules",),
}

_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")
decode = msgspec.json.Decoder().decode
encode_plain = _encoder.encode


def encode_object(obj: dict[str, Any], *, custom: bool) -> bytes:
    """One object as the API writes it.

    Args:
        obj: with `kind`, `apiVersion` and `metadata`.
        custom: whether it is a custom resource.
    """
    if custom:
        return _sorting_encoder.encode(obj)
    ordered = {name: obj[name] for name in _FIRST}
    ordered["metadata"] = ordered_metadata(obj["metadata"])
    for name, value in obj.items():
        if name not in ordered and name != _LAST:
            ordered[name] = value
    if _LAST in obj:
        ordered[_LAST] = obj[_LAST]
    unset = _WRITTEN_UNSET.get(obj["kind"], ())
    for name in unset:
        ordered.setdefault(name)
    body = _encoder.encode(ordered)
    if body.count(b":null") != body.count(_KEPT_NULL):
        # A Go struct has no place for a null: it is the same as an absent field.
        body = _encoder.encode(_without_nulls(ordered) | {name: None for name in unset if ordered[name] is None})
    return body


def ordered_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    last = len(_METADATA_RANK)
    return dict(sorted(metadata.items(), key=lambda item: _METADATA_RANK.get(item[0], last)))


def with_version(body: bytes, old: int, new: int) -> bytes:
    """The same object under another resource version.

    Args:
        body: as `encode_object` made it.
        old: the version that it carries.
        new: the version it shall carry.
    """
    stamp = b'"resourceVersion":"%d"' % old
    if body.count(stamp) == 1:
        return body.replace(stamp, b'"resourceVersion":"%d"' % new)
    obj = decode(body)
    obj["metadata"]["resourceVersion"] = str(new)
    return _encoder.encode(obj)


def partial_body(body: bytes, group_version: str = "meta.k8s.io/v1") -> bytes:
    """The object as `PartialObjectMetadata`."""
    metadata = ordered_metadata(decode(body)["metadata"])
    return _encoder.encode({"kind": "PartialObjectMetadata", "apiVersion": group_version, "metadata": metadata})


def pretty(body: bytes) -> bytes:
    """Indented by two, as the API does for `pretty=true`."""
    return msgspec.json.format(body, indent=2)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None or key == "lastProbeTime"}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
