"""`WebhookServer`: where a manager serves its admission functions, and the server that does it, over TLS."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from importlib.util import find_spec
from logging import ERROR, WARNING
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from aioinformer.concurrency import create_task
from aioinformer.errors import USER_ERRORS, AioinformerError, ApiError, OptionError, UsageError
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.listening import listening
from aioinformer.logs import get_logger
from aioinformer.resources.resource import path_segment
from aioinformer.resources.scopes import check_namespace
from aioinformer.webhooks.certificates import Certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.client.client import Client
    from aioinformer.listening import Port
    from aioinformer.webhooks.admission import Admission

_log = get_logger("aioinformer.webhooks")

#: Seconds between looks at the certificate and the configurations; less until there is a certificate.
_INTERVAL: Final = 10.0
_RETRY: Final = 5.0
#: At a time. For TLS, asyncio has a buffer of 256 KiB for each: 60 of the 256 MiB that `aioinformer manifests` allows.
_CONNECTIONS: Final = 240


class WebhookServer(msgspec.Struct, frozen=True):
    """Where a manager serves its admission functions over TLS. Every replica serves, the leader or not.

    Without `files`, the manager has a CA of its own, in the Secret `<name>-webhook-ca`, which it renews, and it keeps
    `caBundle` in the configurations with the name `<name>.<namespace>`, of the webhooks that refer to this service or
    to `hosts`. This needs the extra "webhooks".

    Attributes:
        name: of the Service in front of the replicas.
        namespace: of the Service and the Secret.
        port: that the replicas listen on; 0 for any free port, see `Admission.port`.
        host: the address to listen on; "" for all.
        files: a folder with `tls.crt` and `tls.key`, such as the volume of a Secret of cert-manager. They are read
            again when they change.
        files_secret: the Secret that has the files; the Deployment of `aioinformer manifests` mounts it at `files`.
        certificate: the Certificate of cert-manager, in this namespace, whose CA cert-manager writes into the
            configurations of `aioinformer manifests`.
        hosts: further names and addresses for the certificate, for webhooks with a URL.
        url: where the API server reaches this process instead of the Service, such as "https://192.168.49.1:9443": for
            the configurations of `aioinformer manifests`, which then have no Service. Its host is one of `hosts`.

    Raises:
        UsageError: a value is invalid, or the extra is missing.
    """

    name: str
    namespace: str = "default"
    port: int = 9443
    host: str = ""
    files: str | None = None
    files_secret: str = ""
    certificate: str = ""
    hosts: tuple[str, ...] = ()
    url: str = ""

    def __post_init__(self) -> None:
        path_segment(self.name, "WebhookServer: name")
        check_namespace(self.namespace, "WebhookServer: namespace")
        if not (type(self.port) is int and 0 <= self.port < 65536):
            raise OptionError(f"WebhookServer: port must be a number from 0 to 65535, not {self.port!r}")
        given: object = self.hosts
        if isinstance(given, str):
            raise UsageError(f"WebhookServer: hosts must be a list of names, not a text: ({given!r},)")
        parts = urlsplit(self.url)
        if self.url and (parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment):
            raise OptionError(f"WebhookServer: url must be https://HOST:PORT, without a query, not {self.url!r}")
        for option, value in (("files_secret", self.files_secret), ("certificate", self.certificate)):
            if value and self.files is None:
                raise OptionError(f"WebhookServer: {option} needs files=, the folder in which the certificate is")
            if value:
                path_segment(value, f"WebhookServer: {option}")
        if self.files is None and find_spec("cryptography") is None:
            raise UsageError(
                'WebhookServer: a CA of its own needs cryptography: pip install "aioinformer[webhooks]"; or pass files='
            )

    @property
    def secret(self) -> str:
        """The name of the Secret with the CA."""
        return f"{self.name}-webhook-ca"

    @property
    def configuration(self) -> str:
        """The name of the configurations."""
        return f"{self.name}.{self.namespace}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """`hosts`, and the host of `url`."""
        host = urlsplit(self.url).hostname
        return tuple(dict.fromkeys((*self.hosts, *([host] if host else []))))

    @property
    def dns_names(self) -> tuple[str, ...]:
        """The names of the Service in the cluster; the first one is that which the API server expects."""
        return f"{self.name}.{self.namespace}.svc", f"{self.name}.{self.namespace}.svc.cluster.local"


@asynccontextmanager
async def serving(server: WebhookServer, admission: Admission, client: Client, grace: float) -> AsyncIterator[Port]:
    """Serve admission functions at a port while the block runs; at its end, reviews under way have `grace` seconds.

    Raises:
        UsageError: the server cannot listen at its address.
    """
    certificates = Certificates(server, client, conversions=admission.conversions)
    admission.trouble = "not served yet"
    try:
        async with listening(
            admission.respond,
            admission.largest,
            server.host,
            server.port,
            what="the webhook server",
            remedy="choose another port or host",
            most=_CONNECTIONS,
            grace=grace,
            tls=certificates.context,
        ) as port:
            admission.port = port.number
            _log.info("webhooks are served at port %d", port.number)
            task = create_task(_refresh(server, certificates, admission), name=f"certificate of {server.configuration}")
            try:
                yield port
            finally:
                task.cancel()
                await asyncio.wait({task})
    finally:
        admission.port = None
        admission.trouble = ""


async def _refresh(server: WebhookServer, certificates: Certificates, admission: Admission) -> None:
    """Keep the certificate valid. One that is loaded stays in use after a failure."""
    errors = RepeatedErrors(_log)
    while True:
        try:
            await certificates.refresh()
            admission.trouble = ""
        except USER_ERRORS as error:
            remedy = ""
            if isinstance(error, ApiError):
                remedy = f"; check namespace {server.namespace}, and the rights with `aioinformer check`"
            message = "%s: %s%s; trying again"
            level = WARNING if isinstance(error, AioinformerError) else ERROR
            errors.report("the certificate", error, message, "the certificate of webhooks", error, remedy, level=level)
            admission.trouble = "" if certificates.is_loaded else f"no certificate: {error}"
        await asyncio.sleep(_RETRY if admission.trouble else _INTERVAL)
