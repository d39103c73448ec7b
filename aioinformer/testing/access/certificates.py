"""TLS: a certificate authority of the server's own, the certificates that it issues, and kubeconfig files with them.

Users may authenticate with a certificate, too. One of another authority ends the handshake; Python's TLS does not let a
server read such a certificate and answer 401.
"""

from __future__ import annotations

import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trustme import CA

_NAME = "aioinformer"


class Authority:
    """A new certificate authority.

    Raises:
        UsageError: trustme, which makes certificates, is not installed.
    """

    def __init__(self) -> None:
        self._authority: CA = _trustme().CA(organization_name="aioinformer")

    @cached_property
    def certificate(self) -> bytes:
        """The certificate that clients must trust, in PEM."""
        data: bytes = self._authority.cert_pem.bytes()
        return data

    def context(self, host: str) -> ssl.SSLContext:
        """Return the TLS context of the server.

        Args:
            host: address or name of the server for clients, besides "localhost" and the loopback addresses.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        names = dict.fromkeys((host, "localhost", "127.0.0.1", "::1"))
        self._authority.issue_cert(*names, common_name="aioinformer").configure_cert(context)
        context.load_verify_locations(cadata=self.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue(self, name: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Return a certificate for a user, and its key, in PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        authority = x509.load_pem_x509_certificate(self.certificate)
        signing = serialization.load_pem_private_key(self._authority.private_key_pem.bytes(), None)
        assert isinstance(signing, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                    authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
                ),
                critical=False,
            )
            .sign(signing, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        plain = serialization.NoEncryption()
        return certificate.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


def _trustme() -> Any:
    try:
        import trustme
    except ImportError:
        raise UsageError('TLS needs trustme, which makes certificates: pip install "aioinformer[testing]"') from None
    return trustme


def write_kubeconfig(
    path: Path, url: str, token: str = "", authority: bytes = b"", certificate: tuple[bytes, bytes] = (b"", b"")
) -> Path:
    """Write a kubeconfig that only its owner can read, completely or not at all.

    Args:
        path: is replaced if it exists.
        token: bearer token, "" for none.
        authority: certificate to trust, in PEM; b"" for the system's.
        certificate: of the user, and its key, in PEM.

    Returns:
        The absolute path.
    """
    path = path.absolute()
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    user = {"token": token} if token else {}
    for name, data in zip(("client-certificate-data", "client-key-data"), certificate, strict=True):
        if data:
            user[name] = base64.b64encode(data).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
        "preferences": {},
    }
    # JSON is valid YAML.
    replace_file(path, [json.dumps(content, indent=2).encode(), b"\n"], private=True)
    return path
