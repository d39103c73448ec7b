"""The certificate that a manager serves its webhooks with, and the CA that the API server must trust for it.

An own CA is in a Secret, so that all replicas have the same one; each of them issues a certificate for itself. A CA is
replaced when two thirds of its time are over, by the replica that notices it first. The Secret then has both CAs as
trusted, and each replica goes on with its old certificate until the API server has had time to trust the new one.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from aioinformer.client.changes.patches import document_of
from aioinformer.errors import AlreadyExists, ApiNotFound, Conflict, UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport.auth.secret import PrivateDict, Secret
from aioinformer.transport.session import no_password, pem_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.client import Client
    from aioinformer.webhooks.server import WebhookServer

_log = get_logger("aioinformer.webhooks")

SECRETS: Final[Resource[Any]] = Resource("", "v1", "secrets", "Secret")
CONFIGURATIONS: Final[dict[str, Resource[Any]]] = {
    purpose: Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for purpose, kind in (("default", "MutatingWebhookConfiguration"), ("validate", "ValidatingWebhookConfiguration"))
}
_LIFETIME: Final = timedelta(days=365)
#: Certificates begin before now, for API servers whose clock is late.
_SKEW: Final = timedelta(hours=1)
#: A CA is replaced when so much of its time is over.
_RENEWED: Final = 2 / 3
_ATTEMPTS: Final = 5


class Authority(NamedTuple):
    """A CA.

    Attributes:
        certificate, key: of `cryptography`.
        trusted: the CAs whose certificates clients must accept, in PEM; this one first.
    """

    certificate: Any
    key: Any
    trusted: bytes


class Certificates:
    """Keeps a certificate in a TLS context, and the CA in the configurations.

    Args:
        server: names, and where the certificate comes from.
        client: for the Secret and the configurations.
        now: the time.

    Attributes:
        context: for a server; `refresh` changes the certificate in it, for new connections.
    """

    def __init__(
        self, server: WebhookServer, client: Client, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server = server
        self._client = client
        self._now = now
        #: What the certificate in the context was made of.
        self._loaded: Any = None

    async def refresh(self) -> None:
        """Load a certificate that is valid, if another one is loaded, and let the configurations trust its CA.

        Raises:
            UsageError: the Secret or the files have no readable certificate; they stay as they are.
            ApiError: the server refused a read or write.
            TransportError: the server was not reached.
        """
        if self._server.files is not None:
            parts = [_read(Path(self._server.files, name)) for name in ("tls.crt", "tls.key")]
            if parts != self._loaded:
                self._load(Secret("\n".join(part.text for part in parts)), f"{self._server.files}: tls.crt and tls.key")
                self._loaded = parts
            return
        authority = await self._authority()
        changed = [await self._trust(resource, authority.trusted) for resource in CONFIGURATIONS.values()]
        if self._loaded is None or (self._loaded != authority.certificate and not any(changed)):
            self._load(_issued(authority, self._server, self._now()), "the new certificate")
            self._loaded = authority.certificate

    def _load(self, pem: Secret, what: str) -> None:
        with pem_file(pem) as path:
            # A failure half-way would leave the context without a certificate.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                try:
                    context.load_cert_chain(path, password=no_password)
                except (OSError, ValueError) as error:
                    raise UsageError(f"{what}: {getattr(error, 'reason', '') or error}") from None

    async def _authority(self) -> Authority:
        """Return the CA in the Secret, after making or replacing it if need be."""
        server, now = self._server, self._now()
        where = f"Secret {server.namespace}/{server.secret}"
        secrets = self._client.with_options(namespace=server.namespace).resource(SECRETS)
        for attempt in range(_ATTEMPTS):
            found = await secrets.get_or_none(server.secret)
            stored = PrivateDict({} if found is None else document_of(found))
            known = _authority_in(PrivateDict(stored.get("data") or {}), where)
            if known is not None:
                begin, end = known.certificate.not_valid_before_utc, known.certificate.not_valid_after_utc
                is_own = known.certificate.subject.rfc4514_string() == f"CN={_name_of_ca(server)}"
                if now < (begin + (end - begin) * _RENEWED if is_own else end):
                    return known
                if not is_own:
                    raise UsageError(f"{where} has a CA of others, which ended at {end}; replace it")
            elif stored.get("data"):
                raise UsageError(f"{where} belongs to others: it has {', '.join(stored['data'])}; rename the server")
            made = _made(server, now, known)
            body = PrivateDict({"tls.crt": _base64(made.trusted), "tls.key": _base64(_pem(made.key).text.encode())})
            metadata = {"name": server.secret, "namespace": server.namespace}
            try:
                if found is None:
                    await secrets.create({"metadata": metadata, "type": "Opaque", "data": body})
                else:
                    await secrets.replace(PrivateDict({**stored, "data": {**(stored.get("data") or {}), **body}}))
            except (AlreadyExists, Conflict):
                if attempt + 1 == _ATTEMPTS:
                    raise
                continue  # another replica was faster
            _log.info("%s has a new CA, until %s", where, made.certificate.not_valid_after_utc)
            return made
        raise AssertionError("the last attempt returns or raises")

    async def _trust(self, resource: Resource[Any], trusted: bytes) -> bool:
        """Set `caBundle` of the webhooks of this server; return whether it was another one."""
        bundle, changed = _base64(trusted), False

        def change(current: Any) -> Any:
            nonlocal changed
            document = document_of(current)
            clients = [each["clientConfig"] for each in document.get("webhooks") or () if self._is_ours(each)]
            changed = any(each.get("caBundle") != bundle for each in clients)
            for each in clients:
                each["caBundle"] = bundle
            return document if changed else current

        try:
            await self._client.resource(resource).edit(self._server.configuration, change)
        except ApiNotFound:
            return False  # the manager may have functions of the other kind only
        return changed

    def _is_ours(self, webhook: dict[str, Any]) -> bool:
        config = webhook["clientConfig"]
        if "url" in config:
            return urlsplit(config["url"]).hostname in self._server.hosts
        service = config.get("service") or {}
        return bool((service.get("name"), service.get("namespace")) == (self._server.name, self._server.namespace))


def _read(path: Path) -> Secret:
    try:
        return Secret(path.read_text())
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', '') or 'it is no PEM file'}") from None


def _authority_in(data: PrivateDict, where: str) -> Authority | None:
    """Return the CA in the data of a Secret; None if there is none yet.

    Raises:
        UsageError: there is one that cannot be read.
    """
    if not data.get("tls.crt") and not data.get("tls.key"):
        return None
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        trusted = base64.b64decode(data["tls.crt"], validate=True)
        certificate = x509.load_pem_x509_certificate(trusted)
        key: Any = load_pem_private_key(base64.b64decode(data["tls.key"], validate=True), None)
        reason = "" if key.public_key() == certificate.public_key() else "the key is of another certificate"
    except KeyError as error:
        reason = f"{error.args[0]} is missing"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = "tls.crt or tls.key cannot be read as PEM"
    if not reason:
        return Authority(certificate, key, trusted)
    raise UsageError(f"{where} has no CA: {reason}; correct it, or delete the Secret to have a new CA made")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _pem(key: Any) -> Secret:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _name_of_ca(server: WebhookServer) -> str:
    """Return the common name of an own CA, which has at most 64 characters."""
    return f"CA of {server.name}.{server.namespace}"[:64]


def _made(server: WebhookServer, now: datetime, former: Authority | None) -> Authority:
    """Return a new CA. That which it replaces stays trusted."""
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate, key = _signed(_name_of_ca(server), now)
    trusted = [certificate] if former is None else [certificate, former.certificate]
    return Authority(certificate, key, b"".join(each.public_bytes(Encoding.PEM) for each in trusted))


def _issued(authority: Authority, server: WebhookServer, now: datetime) -> Secret:
    """Return a certificate for a server, and its key, in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate, key = _signed(server.dns_names[0][:64], now, authority, (*server.dns_names, *server.hosts))
    return Secret(_pem(key).text + certificate.public_bytes(Encoding.PEM).decode())


def _signed(
    name: str, now: datetime, authority: Authority | None = None, names: tuple[str, ...] = ()
) -> tuple[Any, Any]:
    """Return a certificate and its key: a CA without `authority`, else the certificate of a server."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
    signer, signing = (subject, key) if authority is None else (authority.certificate.subject, authority.key)
    usages = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    usages |= {"encipher_only": False, "decipher_only": False, "digital_signature": authority is not None}
    is_ca = authority is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME if authority is None else authority.certificate.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(x509.KeyUsage(key_cert_sign=is_ca, crl_sign=is_ca, **usages), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    if not is_ca:
        found = [_general_name(each) for each in names]
        usage = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(x509.SubjectAlternativeName(found), critical=False)
        builder = builder.add_extension(usage, critical=False)
    return builder.sign(signing, hashes.SHA256()), key


def _general_name(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
