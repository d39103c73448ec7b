"""The JSON of whole objects as the server sent it, with the values of Secrets redacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cache.objects.views import json_of

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_REDACTED = msgspec.Raw(b'"<redacted>"')
_SECRET_FIELDS = frozenset({"data", "stringdata"})
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def is_secret(resource: Resource[Any] | None, kind: object = None) -> bool:
    """Return whether objects are Secrets, by their resource or by their kind."""
    return kind == "Secret" or (resource is not None and resource.holds_secrets)


def whole_object(obj: Any, *, secret: bool, show_secrets: bool) -> msgspec.Raw:
    """Return the JSON of an object, byte for byte as the server sent it; `null` for None.

    Args:
        secret: treat the object as a Secret even if its kind is another.
    """
    if obj is None:
        return msgspec.Raw(b"null")
    body = json_of(obj)
    return msgspec.Raw(body if show_secrets else redacted(body, secret=secret))


def redacted(body: bytes, *, secret: bool) -> bytes:
    """Return the JSON of an object with secret values replaced by `"<redacted>"`; all other bytes stay.

    Secret values are those of `data` and `stringData` of Secrets, and the annotation in which kubectl stores the
    last applied object. If the JSON is invalid, all of it is redacted.
    """
    try:
        fields = _decode(body)
        if not secret and _text(fields.get("kind")) != "Secret":
            return body
        for name in fields:
            if name.lower() in _SECRET_FIELDS:
                fields[name] = _without_values(fields[name])
            elif name.lower() == "metadata":
                fields[name] = _without_last_applied(fields[name])
        return _encode(fields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(_REDACTED)


def _without_values(raw: msgspec.Raw) -> msgspec.Raw:
    if bytes(raw) == b"null":
        return raw
    try:
        return msgspec.Raw(_encode(dict.fromkeys(_decode(raw), _REDACTED)))
    except msgspec.ValidationError:  # not a mapping
        return _REDACTED


def _without_last_applied(raw: msgspec.Raw) -> msgspec.Raw:
    metadata = _decode(raw)
    for name in metadata:
        if name.lower() == "annotations" and bytes(metadata[name]) != b"null":
            annotations = _decode(metadata[name])
            if LAST_APPLIED in annotations:
                annotations[LAST_APPLIED] = _REDACTED
                metadata[name] = msgspec.Raw(_encode(annotations))
    return msgspec.Raw(_encode(metadata))


def _text(raw: msgspec.Raw | None) -> object:
    return None if raw is None else msgspec.json.decode(raw)
