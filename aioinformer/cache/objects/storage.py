"""Storage tiers: the form in which an informer stores objects. They trade memory for the cost of reading an object.

| `storage=` | stores | reading an object costs |
|---|---|---|
| `"bytes"` | the JSON, as received | decoding the body |
| `"stripped"` | the JSON without managed fields and kubectl's last-applied annotation | decoding the body |
| `"compressed"` | the JSON, compressed with a dictionary trained on the first objects | unpacking and decoding |
| `"projection"` | identity, labels and the declared fields; all else reads as absent | nothing |
| `"metadata"` | the metadata; the informer requests nothing else | decoding the metadata |
| `"dict"` | the decoded object, as a read-only `dict` | nothing |

To add a tier:

1. Add its name to `Storage` and, twice, to `DecodedTier`: as a string, and as the member of `Storage`. Add a row to the
   table above.
2. Write a `Tier`: a function that takes the record that arrived and returns the record to store. It never changes
   its argument, and keeps key, uid and version. `record.with_raw(raw)` returns a record with other bytes. `stripped` is
   the shortest example. If members are missing that matter to a writer, return a `Part`, as `projection` does.
3. If the stored bytes are not JSON, return a subclass of `Record` whose property `json` makes the JSON, as
   `PackedRecord` in `compression` does. If the decoded object is stored, override `recall`, too, as `DictRecord` does,
   and return it to readers: see where `ObjectType` (in `codec`) compares with `Storage.DICT`.
4. Return the function in `tier_for`.
5. If readers decode the stored body later, add the tier to `_DECODED_LATER` in `factory/memory.py`. If it drops members
   of objects, add it to those for which `whole` is False in `controller/inputs/mapping.py`.
6. Add the name to the docstrings that list the tiers (`InformerOptions`, `SharedIndexInformer`), and to the table in
   docs/objects.md.
7. Tests of all tiers take them from `Storage`: tests/unit/cache/test_storage.py, for one, and
   `test_every_tier_delivers_the_same_notifications` in tests/unit/informer/test_objects.py. Add a test of what the tier
   drops to the first file.

Compression has a state and a background task, so its tier is made by `Compressor` (in `cache.compressor`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

from aioinformer.cache.objects.fields import FieldDecoder, field_value
from aioinformer.cache.objects.frozen import FrozenDict, freeze_decoded, thaw
from aioinformer.cache.objects.record import (
    NO_LABELS,
    Envelope,
    HeldBody,
    Part,
    Record,
    decode_record,
    record_of,
    undecodable,
)
from aioinformer.errors import UsageError

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


#: Record that arrived -> record to store.
Tier: TypeAlias = Callable[[Record], Record]

_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_annotations = msgspec.json.Decoder(dict[str, str] | None).decode
_encode = msgspec.json.Encoder().encode


class Storage(StrEnum):
    """The names of the tiers, as the option `storage=` takes them."""

    BYTES = "bytes"
    STRIPPED = "stripped"
    COMPRESSED = "compressed"
    PROJECTION = "projection"
    METADATA = "metadata"
    DICT = "dict"

    @classmethod
    def of(cls, name: str) -> Storage:
        """Return the tier with a name.

        Raises:
            UsageError: there is no such tier.
        """
        try:
            return cls(name)
        except ValueError:
            raise UsageError(f"storage={name!r} does not exist; choose one of {', '.join(cls)}") from None


#: The tiers whose objects are views, or of the user's model.
DecodedTier: TypeAlias = Literal[
    "bytes",
    "stripped",
    "compressed",
    "projection",
    "metadata",
    Storage.BYTES,
    Storage.STRIPPED,
    Storage.COMPRESSED,
    Storage.PROJECTION,
    Storage.METADATA,
]
#: The tier whose objects are frozen dicts.
DictTier: TypeAlias = Literal["dict", Storage.DICT]
#: The values of the option `storage=`.
StorageTier: TypeAlias = DecodedTier | DictTier


def tier_for(storage: Storage, decoder: FieldDecoder | None) -> Tier | None:
    """Return the function of a tier; None if records are stored as they arrive (or are compressed later).

    Args:
        decoder: decodes the declared fields; None if there are none.

    Raises:
        UsageError: the tier needs declared fields, and there are none.
    """
    match storage:
        case Storage.STRIPPED:
            return stripped
        case Storage.METADATA:
            return only_metadata if decoder is not None else None  # without fields, `decode_metadata` does both
        case Storage.PROJECTION:
            return projection(decoder or FieldDecoder(()))
        case Storage.DICT:
            return decoded
        case _:
            return None


def stripped(record: Record) -> Record:
    """Return the record without managed fields and kubectl's last-applied annotation.

    Objects that are nested too deeply for the decoder stay as they are.
    """
    raw = record.json
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
    return record.with_raw(_encode(document))


class _Bare(Envelope, gc=False, kw_only=True, forbid_unknown_fields=True):
    kind: msgspec.Raw = NO_LABELS
    api_version: msgspec.Raw = msgspec.field(name="apiVersion", default=NO_LABELS)


_decode_bare = msgspec.json.Decoder(_Bare).decode
#: How API servers begin an object of which only the metadata was requested.
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'


def decode_metadata(raw: bytes) -> Record:
    """Decode an object of which only the metadata was requested; drop anything else that the server has sent.

    Its type is dropped, too: it is that of the answer, and readers get the type of the resource in its place.

    Raises:
        DecodeError: as `decode_record`.
    """
    if raw.startswith(_PARTIAL):
        raw = b"{" + raw[len(_PARTIAL) :]
    try:
        bare = _decode_bare(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return only_metadata(decode_record(raw))
    if bytes(bare.kind) == b'"PartialObjectMetadata"':  # in another form than the usual one
        return only_metadata(record_of(bare.metadata, raw))
    return record_of(bare.metadata, raw, Part)


def only_metadata(record: Record) -> Record:
    """Return the record with the metadata alone, and with the type if it is that of the object.

    Objects that are nested too deeply for the decoder stay as they are.
    """
    raw = record.json
    try:
        document = _decode_raw(raw)
    except RecursionError:
        return record
    partial = "kind" in document and bytes(document["kind"]) == b'"PartialObjectMetadata"'
    if document.keys() <= {"apiVersion", "kind", "metadata"} and not partial:
        return record.with_raw(raw, Part) if record.is_whole else record
    names = ("metadata",) if partial else ("apiVersion", "kind", "metadata")
    kept = {name: document[name] for name in names if name in document}
    return record.with_raw(_encode(kept), Part)


class DictRecord(Record, gc=False, eq=False):
    """A record that stores the decoded object, and no bytes."""

    @property
    def json(self) -> bytes:
        body = self.body() if self.body is not None else {}
        return _encode(thaw(body))

    def recall(self) -> Any:
        return self.body() if self.body is not None else None

    def same_bytes(self, other: Record) -> bool:
        return self is other  # there are no bytes to compare


def decoded(record: Record) -> Record:
    """Return a record that stores the decoded object, read-only.

    Raises:
        DecodeError: the body is not JSON.
    """
    try:
        document: FrozenDict[str, Any] = freeze_decoded(msgspec.json.decode(record.json))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(record.json, error) from error
    return record.with_raw(b"", DictRecord, body=HeldBody(document))


def projection(decoder: FieldDecoder) -> Tier:
    """Return the tier that stores an object with identity, labels and the declared fields alone.

    Raises:
        UsageError: no fields are declared.
    """
    if not decoder.paths:
        raise UsageError('storage="projection" stores declared fields: name them with fields=["spec.nodeName", …]')
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
        return record.with_raw(_encode(document), Part)

    return project
