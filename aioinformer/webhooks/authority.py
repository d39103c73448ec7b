"""A CA, and the certificates that it issues. Imported for a CA of a manager's own only: it needs cryptography."""

from __future__ import annotations

import base64
import ipaddress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aioinformer.errors import UsageError
from aioinformer.transport.auth.secret import PrivateDict, Secret

_LIFETIME: Final = timedelta(days=365)
#: Certificates begin before now, for API servers whose clock is late.
_SKEW: Final = timedelta(hours=1)
#: How long a former CA stays trusted: by then, each replica has noticed the new one.
_FORMER: Final = timedelta(minutes=10)
#: A CA is replaced when so much of its time is over.
_RENEWED: Final = 2 / 3
_REMEDY: Final = "correct it, or delete the Secret to have a new CA made"
_USAGES: Final = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")


class Authority(NamedTuple):
    """A CA: its certificate and key."""

    certificate: x509.Certificate
    key: Any
    #: The CAs whose certificates clients must accept, in PEM; this one first.
    trusted: bytes

    @property
    def renewal(self) -> datetime:
        """When the CA is to be replaced."""
        begin = self.certificate.not_valid_before_utc
        end = self.certificate.not_valid_after_utc
        return begin + (end - begin) * _RENEWED

    def alone(self) -> Authority:
        """Return this CA without the one that it has replaced."""
        return self._replace(trusted=self.certificate.public_bytes(Encoding.PEM))

    def has_former(self, now: datetime) -> bool:
        """Return whether a CA that `make` has made still has the former one, ten minutes after it was made."""
        made = self.certificate.not_valid_before_utc + _SKEW
        return now >= made + _FORMER and self.trusted != self.alone().trusted

    def data(self) -> PrivateDict:
        """Return the data of the Secret that keeps the CA; as JSON, bytes are base64."""
        return PrivateDict({"tls.crt": self.trusted, "tls.key": _pem(self.key).text.encode()})

    def issue(self, names: tuple[str, ...], now: datetime) -> Secret:
        """Return a new certificate for names and addresses, and its key, in PEM."""
        certificate, key = _signed(names[0], now, self, names)
        return Secret(_pem(key).text + certificate.public_bytes(Encoding.PEM).decode())


def make(name: str, now: datetime, former: Authority | None) -> Authority:
    """Return a new CA. That which it replaces stays trusted for a while, see `Authority.has_former`."""
    certificate, key = _signed(name, now)
    trusted = [certificate] if former is None else [certificate, former.certificate]
    return Authority(certificate, key, b"".join(each.public_bytes(Encoding.PEM) for each in trusted))


def read(data: PrivateDict, where: str) -> Authority | None:
    """Return the CA in the data of a Secret; None if there is none yet.

    Raises:
        UsageError: there is one that cannot be read.
    """
    if not data.get("tls.crt") and not data.get("tls.key"):
        return None
    try:
        trusted = base64.b64decode(data["tls.crt"], validate=True)
        certificate = x509.load_pem_x509_certificate(trusted)
        public_key = certificate.public_key()
    except KeyError:
        reason = "tls.crt is missing"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = "tls.crt cannot be read as certificates in PEM"
    else:
        key, reason = _key(data)
        if not reason and key.public_key() != public_key:
            reason = "tls.key is the key of another certificate"
        if not reason:
            return Authority(certificate, key, trusted)
    raise UsageError(f"{where} has no CA that this version of aioinformer knows: {reason}; {_REMEDY}")


def _key(data: PrivateDict) -> tuple[Any, str]:
    """Return the private key in the data of a Secret, or why there is none."""
    try:
        return load_pem_private_key(base64.b64decode(data["tls.key"], validate=True), None), ""
    except KeyError:
        return None, "tls.key is missing"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None, "tls.key cannot be read as a key in PEM without a password"


def _pem(key: Any) -> Secret:
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _signed(
    name: str, now: datetime, authority: Authority | None = None, names: tuple[str, ...] = ()
) -> tuple[x509.Certificate, Any]:
    """Return a certificate and its key: a CA without `authority`, else the certificate of a server."""
    is_ca = authority is None
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])  # the most that there may be
    signer, signing = (subject, key) if authority is None else (authority.certificate.subject, authority.key)
    others = dict.fromkeys((*_USAGES, "encipher_only", "decipher_only"), False)
    usages = x509.KeyUsage(digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, **others)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME if authority is None else authority.certificate.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(usages, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    if not is_ca:
        found = x509.SubjectAlternativeName([_general_name(each) for each in names])
        builder = builder.add_extension(found, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(signing, hashes.SHA256()), key


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
