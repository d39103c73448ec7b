"""Why a server may have refused credentials (401), for people: whose they are, what has expired, and the remedy.

The API server says only "Unauthorized", so that clients cannot learn from it which tokens exist. This side knows more.
"""

from __future__ import annotations

import json
import math
import ssl
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aioinformer.transport.auth.tokens import Credential
    from aioinformer.transport.session import TLS

_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
#: A UTCTime has two digits of the year.
_CENTURY = 50


class Owner(NamedTuple):
    """Whose credentials a transport sends.

    Attributes:
        name: "kubeconfig FILE: users[NAME]".
        remedy: what to do if they are refused, and why is not known.
    """

    name: str = "the credentials of this transport"
    remedy: str = "log in again, or name other ones"


def explanation(owner: Owner, credential: Credential, tls: TLS | None, now: float) -> str:
    """Return why a server may have refused a credential. Never raises, and quotes no credential.

    Args:
        tls: the settings of the transport, which may have a client certificate.
        now: seconds since the epoch.
    """
    kind = credential.authorization.partition(" ")[0]
    if kind == "Bearer":
        expiry = token_expiry(credential.authorization.removeprefix("Bearer "))
        if expiry is not None and expiry <= now:
            return f"{owner.name}: the token expired at {_moment(expiry)}; {owner.remedy}"
        return f"{owner.name}: the server does not accept the token; {owner.remedy}"
    if kind:
        return f"{owner.name}: the server does not accept the user name and the password; correct them"
    certificate = credential.certificate or _certificate_of(tls)
    if not certificate:
        return f"{owner.name}: there is neither a token nor a client certificate; add one"
    expiry = certificate_expiry(certificate)
    if expiry is not None and expiry <= now:
        return f"{owner.name}: the client certificate expired at {_moment(expiry)}; renew it"
    return f"{owner.name}: the server does not accept the client certificate; {owner.remedy}"


def token_expiry(token: str) -> float | None:
    """Return `exp` of a JWT, None if there is none or the token is not a JWT: the API server validates it."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expiry = claims["exp"]
        known = isinstance(expiry, (int, float)) and not isinstance(expiry, bool) and math.isfinite(expiry)
        return float(expiry) if known else None
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def certificate_expiry(pem: str) -> float | None:
    """Return when the first certificate of a PEM text expires, None if it cannot be read: TLS validates it."""
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERTIFICATE") :].partition("-----END")[0] + _END)
        _, certificate, _ = _element(der)
        _, body, _ = _element(certificate)
        tag, _, rest = _element(body)
        if tag == _VERSION:
            _, _, rest = _element(rest)  # the serial number
        for _ in ("signature algorithm", "issuer"):
            _, _, rest = _element(rest)
        _, validity, _ = _element(rest)
        _, _, rest = _element(validity)
        tag, digits, _ = _element(rest)
        return _time(digits.decode("ascii"), has_century=tag != _UTC_TIME)
    except (ValueError, IndexError):
        return None


_END = "-----END CERTIFICATE-----\n"


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first element in DER, and what follows it."""
    tag = data[0]
    length = data[1]
    start = 2
    if length >= 0x80:
        start += length - 0x80
        length = int.from_bytes(data[2:start], "big")
    return tag, data[start : start + length], data[start + length :]


def _time(digits: str, *, has_century: bool) -> float:
    if not has_century:
        digits = f"{19 if int(digits[:2]) >= _CENTURY else 20}{digits}"
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _certificate_of(tls: TLS | None) -> str:
    if tls is None:
        return ""
    if tls.client_certificate_data or tls.client_certificate is None:
        return tls.client_certificate_data
    try:
        return Path(tls.client_certificate).read_text("ascii", "replace")
    except OSError:
        return ""


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"second {seconds:.0f} of 1970"
