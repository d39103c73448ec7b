"""The certificate that a manager serves its webhooks with, and the CA that the API server must trust for it.

An own CA is in a Secret, so that all replicas have the same one; each of them issues a certificate for itself. A CA is
replaced when two thirds of its time are over, or if the Secret is deleted, by the replica that notices it first. The
Secret then has both CAs as trusted, and each replica goes on with its old certificate until the API server has had time
to trust the new one. Ten minutes later, a replica removes the former CA from the Secret. The API server trusts what
the Secret has, whatever the version of a replica: otherwise, each would undo what another has written.
"""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from aioinformer.client.changes.patches import document_of
from aioinformer.errors import AlreadyExists, ApiNotFound, Conflict, UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport.auth.secret import PrivateDict, Secret
from aioinformer.transport.session import no_password, pem_file
from aioinformer.workqueue.retry import DEFAULT_RETRY, on_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.client import Client
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.webhooks.authority import Authority
    from aioinformer.webhooks.conversion import Conversions
    from aioinformer.webhooks.server import WebhookServer

_log = get_logger("aioinformer.webhooks")

SECRETS: Final[Resource[Any]] = Resource("", "v1", "secrets", "Secret")
CONFIGURATIONS: Final[dict[str, Resource[Any]]] = {
    purpose: Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for purpose, kind in (("default", "MutatingWebhookConfiguration"), ("validate", "ValidatingWebhookConfiguration"))
}
#: The definitions have the CA of the webhook that converts.
DEFINITIONS: Final[Resource[Any]] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


class Certificates:
    """Keeps a certificate in `context`, the TLS context of a server, and the CA in the configurations."""

    def __init__(
        self,
        server: WebhookServer,
        client: Client,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        conversions: Conversions | None = None,
    ) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server = server
        self._client = client
        self._conversions = conversions
        self._now = now
        #: What the certificate in the context was made of.
        self._loaded: Any = None
        #: The CA that was read last: it stays trusted for a while if somebody deletes the Secret.
        self._known: Authority | None = None

    async def refresh(self) -> None:
        """Load a certificate that is valid, if another one is loaded, and let the configurations trust its CA.

        New connections get it.

        Raises:
            UsageError: the Secret or the files have no readable certificate, or the Secret belongs to others. They stay
                as they are.
            ApiError: the server refuses a request.
            TransportError: the server was not reached.
        """
        if self._server.files is not None:
            parts = [_read(Path(self._server.files, name)) for name in ("tls.crt", "tls.key")]
            if parts != self._loaded:
                self._load(Secret("\n".join(part.text for part in parts)), f"{self._server.files}: tls.crt and tls.key")
                self._loaded = parts
            return
        authority = await on_error(self._authority, _is_raced, DEFAULT_RETRY)
        self._known = authority
        name = self._server.configuration
        changed = [
            await self._trust(resource, name, authority.trusted, webhooks_of) for resource in CONFIGURATIONS.values()
        ]
        for each in () if self._conversions is None else self._conversions.resources():
            changed.append(await self._trust(DEFINITIONS, each.group_resource, authority.trusted, conversion_of))
        if self._loaded is None or (self._loaded != authority.certificate and not any(changed)):
            names = (*self._server.dns_names, *self._server.addresses)
            self._load(authority.issue(names, self._now()), "the new certificate")
            self._loaded = authority.certificate
        # At the end: a Secret that cannot be written keeps no replica from serving.
        if self._is_own(authority) and authority.has_former(self._now()):
            await on_error(self._remove_former, _is_raced, DEFAULT_RETRY)

    def _load(self, pem: Secret, what: str) -> None:
        with pem_file(pem) as path:
            # A failure half-way would leave the context without a certificate.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                try:
                    context.load_cert_chain(path, password=no_password)
                except (OSError, ValueError) as error:
                    raise UsageError(f"{what}: {getattr(error, 'reason', '') or error}") from None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a certificate to serve with."""
        return self._loaded is not None

    async def _authority(self) -> Authority:
        """Return the CA in the Secret, after making or replacing it if need be."""
        from aioinformer.webhooks import authority

        known, stored = await self._stored()
        now = self._now()
        if known is not None:
            is_own = self._is_own(known)
            end = known.certificate.not_valid_after_utc
            if now < (known.renewal if is_own else end):
                return known
            if not is_own:
                raise UsageError(f"{self._where} has a CA of others, which ended at {end}; replace it")
        made = authority.make(self._subject, now, known or self._known)
        await self._store(made, stored)
        _log.info("%s has a new CA, until %s", self._where, made.certificate.not_valid_after_utc)
        return made

    async def _remove_former(self) -> None:
        """Remove the CA that the present one has replaced from the Secret, unless another replica has done so."""
        known, stored = await self._stored()
        if known is not None and self._is_own(known) and known.has_former(self._now()):
            await self._store(known.alone(), stored)

    async def _stored(self) -> tuple[Authority | None, PrivateDict]:
        """Return the CA in the Secret, None if there is none, and the Secret, empty if there is none."""
        from aioinformer.webhooks import authority

        found = await self._secrets().get_or_none(self._server.secret)
        stored = PrivateDict({} if found is None else document_of(found))
        data = PrivateDict(stored.get("data") or {})
        known = authority.read(data, self._where)
        if known is None and data:
            raise UsageError(f"{self._where} belongs to others: it has {', '.join(data)}; rename the server")
        return known, stored

    async def _store(self, authority: Authority, stored: PrivateDict) -> None:
        """Write a CA into the Secret, which has not changed since it was read as `stored`."""
        metadata = {"name": self._server.secret, "namespace": self._server.namespace}
        data = PrivateDict({**(stored.get("data") or {}), **authority.data()})
        body = PrivateDict({"metadata": metadata, "type": "Opaque", **stored, "data": data})
        secrets = self._secrets()
        await (secrets.replace if stored else secrets.create)(body)

    def _secrets(self) -> ResourceClient[Any]:
        return self._client.with_options(namespace=self._server.namespace).resource(SECRETS)

    def _is_own(self, authority: Authority) -> bool:
        """Return whether a manager has made a CA, for this server."""
        return bool(authority.certificate.subject.rfc4514_string() == f"CN={self._subject}")

    @property
    def _subject(self) -> str:
        return f"CA of {self._server.name}.{self._server.namespace}"[:64]

    @property
    def _where(self) -> str:
        return f"Secret {self._server.namespace}/{self._server.secret}"

    async def _trust(
        self, resource: Resource[Any], name: str, trusted: bytes, clients_of: Callable[[dict[str, Any]], list[Any]]
    ) -> bool:
        """Set `caBundle` of the webhooks of this server in an object; return whether it was another one."""
        bundle = base64.b64encode(trusted).decode()
        changed = False

        def change(current: Any) -> Any:
            nonlocal changed
            document = document_of(current)
            clients = [each for each in clients_of(document) if refers_to(self._server, each)]
            changed = any(each.get("caBundle") != bundle for each in clients)
            for each in clients:
                each["caBundle"] = bundle
            return document if changed else current

        try:
            await self._client.resource(resource).edit(name, change)
        except ApiNotFound as error:
            if not error.name:  # the resource is not served at the moment
                raise
            return False  # the manager may have functions of the other kind only
        return changed


def refers_to(server: WebhookServer, config: dict[str, Any]) -> bool:
    """Return whether a `clientConfig` leads to a server."""
    if "url" in config:
        return urlsplit(config["url"]).hostname in server.addresses
    service = config.get("service") or {}
    return bool((service.get("name"), service.get("namespace")) == (server.name, server.namespace))


def webhooks_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how the API server reaches the webhooks of a configuration."""
    return [each["clientConfig"] for each in document.get("webhooks") or ()]


def conversion_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how the API server reaches the webhook of a definition."""
    webhook = (document["spec"].get("conversion") or {}).get("webhook") or {}
    return [webhook["clientConfig"]] if "clientConfig" in webhook else []


def _is_raced(error: Exception) -> bool:
    """Return whether another replica was faster."""
    return isinstance(error, (AlreadyExists, Conflict))


def _read(path: Path) -> Secret:
    try:
        return Secret(path.read_text())
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', '') or 'it is no PEM file'}") from None
