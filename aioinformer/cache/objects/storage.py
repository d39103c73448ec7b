"""In what form an informer keeps objects: memory against the cost of looking into them.

| `storage=` | keeps | looking into an object costs |
|---|---|---|
| `"bytes"` | its JSON, as it came | decoding the body |
| `"stripped"` | without managed fields and kubectl's copy of what was applied | decoding the body |
| `"compressed"` | the JSON, compressed with a dictionary made of the first objects | unpacking and decoding |
| `"projection"` | identity, labels and the declared fields; all else reads as absent | nothing |
| `"metadata"` | the metadata; the server sends no more | decoding the metadata |
| `"dict"` | the decoded object, as a read-only `dict` | nothing |

A tier takes a record that came in, and returns the one to cache. It never changes what is the same object.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from aioinformer.cache.objects.fields import FieldDecoder, field_value
from aioinformer.cache.objects.frozen import FrozenDict, as_secret, freeze_decoded, thaw
from aioinformer.cache.objects.record import (
    NO_LABELS,
    Envelope,
    HeldBody,
    Record,
    decode_record,
    leading_metadata,
    record_of,
    undecodable,
)
from aioinformer.errors import UsageError
from aioinformer.transport.json_scanner import LARGE, is_heavy

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Storage(StrEnum):
    """The names of the tiers."""

    BYTES = "bytes"
    STRIPPED = "stripped"
    COMPRESSED = "compressed"
    PROJECTION = "projection"
    METADATA = "metadata"
    DICT = "dict"

    @classmethod
    def of(cls, name: str) -> Storage:
        """The tier of a name.

        Raises:
            UsageError: there is none.
        """
        try:
            return cls(name)
        except ValueError:
            raise UsageError(f"storage={name!r} does not exist; choose one of {', '.join(cls)}") from None


Tier: TypeAlias = "Callable[[Record], Record]"

_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_annotations = msgspec.json.Decoder(dict[str, str] | None).decode
_encode = msgspec.json.Encoder().encode


def _reformed(record: Record, raw: bytes) -> Record:
    """The record with other bytes. Its labels are copied: they must not keep the old bytes alive."""
    labels = record.labels if record.labels is NO_LABELS else msgspec.Raw(bytes(record.labels))
    return Record(
        record.key, record.namespace, record.name, record.uid, record.resource_version, labels, raw, record.fields
    )


def stripped(record: Record) -> Record:
    """Without managed fields, and without kubectl's copy of what was applied.

    An object that is too large or too deep to be taken apart at once is kept whole.
    """
    raw = record.json
    if len(raw) > LARGE and is_heavy(raw):
        return record
    try:
        document = _decode_raw(raw)
        metadata = _decode_raw(document["metadata"])
    except RecursionError:
        return record
    found = metadata.pop("managedFields", None) is not None
    if _LAST_APPLIED.encode() in bytes(metadata.get("annotations", b"")):
        annotations = _decode_annotations(metadata["annotations"]) or {}
        found = annotations.pop(_LAST_APPLIED, None) is not None or found
        metadata["annotations"] = msgspec.Raw(_encode(annotations))
    if not found:
        return record
    document["metadata"] = msgspec.Raw(_encode(metadata))
    return _reformed(record, _encode(document))


class _Bare(Envelope, gc=False, kw_only=True, forbid_unknown_fields=True):
    kind: msgspec.Raw = NO_LABELS
    api_version: msgspec.Raw = msgspec.field(name="apiVersion", default=NO_LABELS)


_decode_bare = msgspec.json.Decoder(_Bare).decode


def decode_metadata(raw: bytes, *, valid: bool = False) -> Record:
    """The record of an object of which only the metadata was asked for; should the server have sent more, that goes.

    Raises:
        DecodeError: as `decode_record`.
    """
    meta = leading_metadata(raw, _decode_bare, alone=True) if valid else None
    return only_metadata(decode_record(raw)) if meta is None else record_of(meta, raw)


def only_metadata(record: Record) -> Record:
    """Nothing but the metadata, should the server have sent more, and unless the object is too large or too deep."""
    raw = record.json
    if len(raw) > LARGE and is_heavy(raw):
        return record
    try:
        document = _decode_raw(raw)
    except RecursionError:
        return record
    if document.keys() <= {"apiVersion", "kind", "metadata"}:
        return record
    kept = {name: document[name] for name in ("apiVersion", "kind", "metadata") if name in document}
    return _reformed(record, _encode(kept))


class DictRecord(Record, gc=False, eq=False):
    """A record that keeps its object decoded."""

    @property
    def json(self) -> bytes:
        body = self.body() if self.body is not None else {}
        return _encode(thaw(body))

    def recall(self) -> Any:
        return self.body() if self.body is not None else None

    def same_bytes(self, other: Record) -> bool:
        return self is other  # it has none


def decoded_secret(record: Record) -> Record:
    """As `decoded`, for the resource `secrets`: the text of the object never shows what it holds."""
    made = decoded(record)
    as_secret(made.recall())
    return made


def decoded(record: Record) -> Record:
    """The object itself, decoded and read-only."""
    try:
        document: FrozenDict[str, Any] = freeze_decoded(msgspec.json.decode(record.json))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(record.json, error) from error
    made = DictRecord(
        record.key,
        record.namespace,
        record.name,
        record.uid,
        record.resource_version,
        record.labels if record.labels is NO_LABELS else msgspec.Raw(bytes(record.labels)),
        b"",
        record.fields,
    )
    made.body = HeldBody(document)
    return made


def projection(decoder: FieldDecoder) -> Tier:
    """Identity, labels and the declared fields, as an object that has nothing else.

    Raises:
        UsageError: no fields are declared.
    """
    if not decoder.paths:
        raise UsageError('storage="projection" keeps declared fields: name them with fields=["spec.nodeName", …]')
    paths = sorted(decoder.paths)

    def project(record: Record) -> Record:
        metadata: dict[str, Any] = {"name": record.name}
        if record.namespace:
            metadata["namespace"] = record.namespace
        metadata |= {"uid": record.uid, "resourceVersion": record.resource_version, "labels": record.labels}
        document: dict[str, Any] = {"metadata": metadata}
        for steps in paths:
            value = field_value(record, steps)
            if value is None:
                continue
            node = document
            for step in steps[:-1]:
                node = node.setdefault(step, {})
            node[steps[-1]] = thaw(value)
        return _reformed(record, _encode(document))

    return project


def tier_for(storage: Storage, decoder: FieldDecoder | None) -> Tier | None:
    """The function of a tier, None if there is nothing to do. Compression has a state, and how objects are decoded
    depends on their resource: these two are not among them.

    Raises:
        UsageError: the tier needs declared fields, and there are none.
    """
    match storage:
        case Storage.STRIPPED:
            return stripped
        case Storage.METADATA:
            return only_metadata if decoder is not None else None  # `decode_metadata` does it in the same pass
        case Storage.PROJECTION:
            return projection(decoder or FieldDecoder(()))
        case _:
            return None
