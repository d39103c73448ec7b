"""Validation of certificate signing requests and their status.

The request itself is only checked for its form; its signature is not verified.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import duplicate, one_of, required
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

# fmt: off
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)
# fmt: on
_LEGACY = "kubernetes.io/legacy-unknown"
_SHORTEST = 600
_LONGEST_DOMAIN = 253
_LONGEST_NAME = 571
_DECISIONS = ("Approved", "Denied", "Failed")
_STATUSES = ("False", "True", "Unknown")
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)-----\s*(?:[\w-]+:.*\n)*\s*([A-Za-z0-9+/=\s]*?)-----END \1-----")
_CERTIFICATE = b"CERTIFICATE"
_REQUEST = b"CERTIFICATE REQUEST"
_SEQUENCE = 0x30


def signing_request(obj: Part, old: Part | None) -> Iterator[Cause]:
    # The spec is immutable: an update keeps the old one.
    spec = (obj if old is None else old).get("spec") or {}
    request, usages = spec.get("request") or "", spec.get("usages") or ()
    if why := _request_fault(base64.b64decode(request)):
        yield Cause.invalid("spec.request", quote(request), why)
    yield from required(spec, "spec", "usages")
    for index, usage in enumerate(usages):
        yield from one_of(usage, f"spec.usages[{index}]", _USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield duplicate(usage, f"spec.usages[{index}]")
    if spec.get("signerName") == _LEGACY:
        why = "the legacy signerName is not allowed via this API version"
        yield Cause.invalid("spec.signerName", quote(_LEGACY), why)
    else:
        yield from signer_causes(spec.get("signerName") or "", "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        why = f"may not specify a duration less than {_SHORTEST} seconds (10 minutes)"
        yield Cause.invalid("spec.expirationSeconds", str(seconds), why)


def _request_fault(text: bytes) -> str:
    block = _BLOCK.search(text)
    if block is None or block[1] != _REQUEST:
        return "PEM block type must be CERTIFICATE REQUEST"
    return "" if _is_sequence(block[2]) else "asn1: structure error: no certificate request"


def _is_sequence(text: bytes) -> bool:
    """Return whether the text is one DER sequence in base64, as certificates and their requests are."""
    try:
        data = base64.b64decode(b"".join(text.split()), validate=True)
    except binascii.Error:
        return False
    if len(data) < 2 or data[0] != _SEQUENCE:
        return False
    size, more = data[1], data[1] & 0x7F if data[1] & 0x80 else 0
    if more:
        size = int.from_bytes(data[2 : 2 + more], "big")
    return len(data) == 2 + more + size


def signer_causes(name: str, path: str) -> Iterator[Cause]:
    """Check the name of a signer."""
    if not name:
        yield Cause.required(path)
        return
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield Cause.invalid(path, quote(name), why)
        return
    domain, _, rest = name.partition("/")
    if len(domain) > _LONGEST_DOMAIN:
        yield Cause.too_long(path, _LONGEST_DOMAIN)
    yield from _label_causes(domain, domain.split("."), path, label_faults)
    if "." not in domain:
        yield Cause.invalid(path, quote(domain), "should be a domain with at least two segments separated by dots")
    yield from _label_causes(rest, rest.split("."), path, subdomain_faults)
    if len(name) > _LONGEST_NAME:
        yield Cause.too_long(path, _LONGEST_NAME)


def _label_causes(segment: str, labels: Sequence[str], path: str, faults: Any) -> Iterator[Cause]:
    wrong = next((label for label in labels if faults(label)), None)
    if wrong is not None:
        for why in faults(wrong):
            yield Cause.invalid(path, quote(segment), f"validating label {quote(wrong)}: {why}")


def signing_approval(obj: Part, old: Part | None) -> Iterator[Cause]:
    """Check the approval of a request."""
    return _status_causes(obj, old or {})


def signing_status(obj: Part, old: Part | None) -> Iterator[Cause]:
    """Check the status that a signer writes. It may not approve or deny."""
    old = old or {}
    yield from _status_causes(obj, old)
    current, former = (_decisions(each) for each in (obj, old))
    for type_ in _DECISIONS[:2]:
        if len(current[type_]) > len(former[type_]):
            yield Cause.forbidden("status.conditions", f'updates may not add a condition of type "{type_}"')
    certificate, known = ((each.get("status") or {}).get("certificate") or "" for each in (obj, old))
    if known and certificate != known:
        yield Cause.forbidden("status.certificate", "updates may not modify existing certificate content")


def _decisions(obj: Part) -> dict[str, list[Part]]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return {type_: [each for each in conditions if each.get("type") == type_] for type_ in _DECISIONS}


def _status_causes(obj: Part, old: Part) -> Iterator[Cause]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    types = [each.get("type") or "" for each in conditions]
    for index, condition in enumerate(conditions):
        path, type_ = f"status.conditions[{index}]", types[index]
        yield from required(condition, path, "type", "status")
        if condition.get("status"):
            yield from one_of(condition["status"], f"{path}.status", ("True",) if type_ in _DECISIONS else _STATUSES)
        if type_ in _DECISIONS[:2] and set(_DECISIONS[:2]).issubset(types[: index + 1]):
            why = "Approved and Denied conditions are mutually exclusive"
            yield Cause.invalid("status.conditions", quote(type_), why)
        if type_ in types[:index]:
            yield duplicate(type_, f"{path}.type")
    yield from _certificate_causes((obj.get("status") or {}).get("certificate") or "")
    current, former = (_decisions(each) for each in (obj, old))
    for type_ in _DECISIONS:
        if len(current[type_]) < len(former[type_]):
            yield Cause.forbidden("status.conditions", f'updates may not remove a condition of type "{type_}"')


def _certificate_causes(certificate: str) -> Iterator[Cause]:
    text = base64.b64decode(certificate)
    blocks = _BLOCK.findall(text)
    why = ""
    if text and not blocks:
        why = "must contain at least one CERTIFICATE PEM block"
    for kind, body in blocks:
        if kind != _CERTIFICATE:
            why = why or f"only CERTIFICATE PEM blocks are allowed, found {quote(kind.decode())}"
        elif not _is_sequence(body):
            why = why or "x509: malformed certificate"
    if why:
        yield Cause.invalid("status.certificate", '"<certificate data>"', why)
