"""Validation of config maps and secrets."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import format_causes, immutable
from aioinformer.testing.api.golike import json_error
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Fields = Mapping[str, Any]

_LARGEST = 1024 * 1024
_LONGEST_KEY = 253
_KEY = "[-._a-zA-Z0-9]+"
_OPAQUE = "Opaque"
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
_ACCOUNT = "kubernetes.io/service-account.name"
#: Types of secrets whose value is a JSON document, with the key of the document.
_DOCUMENTS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REDACTED = '"<secret contents redacted>"'
_GO_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def config_map(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    yield from _unchanged(obj, old, ("data", "binaryData"))
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from format_causes(key, f"data[{key}]", key_faults)
        if key in binary:
            yield Cause.invalid(f"data[{key}]", quote(key), "duplicate of key present in binaryData")
    for key in binary:
        yield from format_causes(key, f"binaryData[{key}]", key_faults)
    if sum(len(text.encode()) for text in data.values()) + _size(binary) > _LARGEST:
        # The API reports an empty field name here.
        yield Cause.too_long("[]", _LARGEST)


def secret(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    kind, data = obj.get("type") or "", obj.get("data") or {}
    if old is not None:
        yield from immutable(kind, old.get("type") or _OPAQUE, "type")
    yield from _unchanged(obj, old, ("data",))
    for key in data:
        yield from format_causes(key, f"data[{key}]", key_faults)
    if _size(data) > _LARGEST:
        yield Cause.too_long("data", _LARGEST)
    if kind == _ACCOUNT_TOKEN and not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
        yield Cause.required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind in _DOCUMENTS:
        yield from _document(data, _DOCUMENTS[kind])
    elif kind == "kubernetes.io/basic-auth" and data.keys().isdisjoint(("username", "password")):
        yield from (Cause.required(f"data[{key}]") for key in ("username", "password"))
    elif kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        yield Cause.required("data[ssh-privatekey]")
    elif kind == "kubernetes.io/tls":
        yield from (Cause.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _unchanged(obj: Fields, old: Fields | None, fields: Sequence[str]) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    for name in ("immutable", *fields):
        if (obj.get(name) or None) != (old.get(name) or None):
            yield Cause.forbidden(name, "field is immutable when `immutable` is set")


def _size(encoded: Mapping[str, str]) -> int:
    """Return the total size of base64 values when decoded."""
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in encoded.values())


def _document(data: Mapping[str, str], key: str) -> Iterator[Cause]:
    if key not in data:
        yield Cause.required(f"data[{key}]")
        return
    text = base64.b64decode(data[key])
    why = json_error(text)
    if not why and (kind := _GO_KINDS.get(type(json.loads(text)))):
        why = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if why:
        yield Cause.invalid(f"data[{key}]", _REDACTED, why)


def key_faults(key: str) -> list[str]:
    """Return what is wrong with a key of a config map or secret."""
    faults = [f"must be no more than {_LONGEST_KEY} characters"] if len(key) > _LONGEST_KEY else []
    if not re.fullmatch(_KEY, key):
        what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        faults.append(f"{what} {examples} '{_KEY}')")
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults
