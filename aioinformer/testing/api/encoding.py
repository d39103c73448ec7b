"""Encode objects in the field order of the API, once per version.

Built-in kinds have the order of their Go structs: `kind`, `apiVersion`, `metadata` with its fixed order, then the rest;
items of lists have neither `kind` nor `apiVersion`. Custom resources are maps in the API: their keys are sorted at
every depth, and items of lists are complete. Clients depend on both orders: a reader must handle `items` before
`metadata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.api.go_structs import go_json

if TYPE_CHECKING:
    from collections.abc import Mapping

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

_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")
decode = msgspec.json.Decoder().decode
encode_plain = _encoder.encode
encode_sorted = _sorting_encoder.encode


def encode_object(obj: Mapping[str, Any], *, custom: bool) -> bytes:
    """Return an object as the API writes it.

    Args:
        obj: with `kind`, `apiVersion` and `metadata`.
        custom: whether it is a custom resource.
    """
    if custom:
        return encode_sorted(obj)
    return _encoder.encode(go_json(obj, stored=True))


def ordered_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    last = len(_METADATA_RANK)
    return dict(sorted(metadata.items(), key=lambda item: _METADATA_RANK.get(item[0], last)))


def with_version(body: bytes, old: int, new: int) -> bytes:
    """Return the same body under another resourceVersion.

    Args:
        body: from `encode_object`.
        old: its resourceVersion.
        new: the new resourceVersion.
    """
    stamp = b'"resourceVersion":"%d"' % old
    if body.count(stamp) == 1:
        return body.replace(stamp, b'"resourceVersion":"%d"' % new)
    obj = decode(body)
    obj["metadata"]["resourceVersion"] = str(new)
    return _encoder.encode(obj)


def partial_body(body: bytes, group_version: str = "meta.k8s.io/v1") -> bytes:
    """Return the object as `PartialObjectMetadata`."""
    metadata = ordered_metadata(decode(body)["metadata"])
    return _encoder.encode({"kind": "PartialObjectMetadata", "apiVersion": group_version, "metadata": metadata})


def pretty(body: bytes) -> bytes:
    """Indent by two, as the API does for `pretty=true`."""
    return msgspec.json.format(body, indent=2)
