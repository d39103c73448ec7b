"""Credentials from an OpenID Connect provider: the `oidc` auth-provider of kubeconfig files.

The kubeconfig stores the tokens. A provider may replace the refresh token at each use, so new tokens are written to the
file, for kubectl and for the next start. Tokens that another program has written there are used before the provider is
asked. If the file cannot be written, a warning is logged, and only this process has the new tokens.

The client secret and the refresh token are sent over verified TLS or loopback only.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import aiohttp
from yarl import URL

from aioinformer.errors import TransportError, UsageError
from aioinformer.files import replace_file
from aioinformer.logs import get_logger
from aioinformer.transport.auth.kubeconfig import read_kubeconfig
from aioinformer.transport.auth.refusals import token_expiry
from aioinformer.transport.auth.secret import PrivateDict, PrivateHeaders, Secret, plain, private
from aioinformer.transport.auth.tokens import MAX_BYTES, Credential, RenewedCredentials, bearer
from aioinformer.transport.failures import authority, transport_error
from aioinformer.transport.proxies import environment_proxy, is_loopback
from aioinformer.transport.session import connector_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_log = get_logger("aioinformer.transport")


class OIDCCredentials(RenewedCredentials):
    """The ID token of a user. The refresh token gives a new one shortly before it expires.

    Args:
        timeout: seconds that a request to the provider may take.
        now: wall clock, seconds since the epoch.
    """

    def __init__(
        self,
        provider: OIDCProvider,
        store: TokenStore,
        *,
        timeout: float = 30.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(now=now, longest=4 * timeout)
        self._provider = provider
        self._store = store
        self._timeout = timeout
        self._stored = Tokens()
        self._held = self._stored

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        try:
            stored = await asyncio.to_thread(self._store.load)
        except UsageError as error:
            raise TransportError(str(error)) from error
        if stored != self._stored:
            self._stored = stored
            self._held = stored
        if not self._is_good(refused):
            await self._exchange()
        return _credential(self._held), token_expiry(self._held.id_token)

    def _is_good(self, refused: Credential | None) -> bool:
        if not self._held.id_token or (refused is not None and _credential(self._held) == refused):
            return False
        expiry = token_expiry(self._held.id_token)
        return expiry is None or self._now() < expiry - self._margin

    async def _exchange(self) -> None:
        if not self._held.refresh_token:
            raise self._error("the ID token has expired, and there is no refresh token; log in again")
        self._held = await self._refreshed()
        try:
            await asyncio.to_thread(self._store.save, self._held)
        except (OSError, UsageError) as error:
            _log.warning("the renewed OIDC tokens cannot be written to the kubeconfig: %s", error)
        else:
            self._stored = self._held

    async def _refreshed(self) -> Tokens:
        context = await asyncio.to_thread(ssl.create_default_context, cadata=self._provider.authority or None)
        discovery = f"{self._provider.issuer}/.well-known/openid-configuration"
        found = await self._ask(URL(discovery), context)
        endpoint = found.get("token_endpoint")
        if not isinstance(endpoint, str) or not _is_private(endpoint):
            raise self._error("its configuration names no token_endpoint with https")
        methods = found.get("token_endpoint_auth_methods_supported")
        basic = not isinstance(methods, list) or not methods or "client_secret_basic" in methods
        answer = await self._ask(URL(endpoint), context, _Form(self._provider, self._held, basic))
        tokens = _tokens(answer, self._held)
        if tokens is None:
            raise self._error("it returned no id_token for the refresh token")
        return tokens

    async def _ask(self, url: URL, context: ssl.SSLContext, form: _Form | None = None) -> PrivateDict:
        proxy = environment_proxy(url)
        failure: TransportError | None = None
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector_kind(proxy)(ssl=context),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=self._timeout),
                ) as session,
                session.request(
                    "GET" if form is None else "POST",
                    url,
                    allow_redirects=False,
                    proxy=proxy.url if proxy is not None and not proxy.is_socks else None,
                    data=None if form is None else form.fields(),
                    headers=PrivateHeaders({"Accept-Encoding": "identity"} if form is None else form.headers()),
                ) as response,
            ):
                answer = _Answer(response.status, await _bounded(response))
        except (aiohttp.ClientError, OSError) as error:
            failure = transport_error(f"OIDC provider {authority(url)}", error)
        if failure is not None:
            raise failure
        document = answer.document()
        if isinstance(document, str):
            raise self._error(f"{url.path} {document}")
        return document

    def _error(self, reason: str) -> TransportError:
        return TransportError(f"OIDC provider {self._provider.issuer}: {reason}")


@dataclass(frozen=True, slots=True)
class OIDCProvider:
    """The description of a provider in a kubeconfig, without its tokens.

    Attributes:
        client_secret: the secret of this client, "" for a public client.
        authority: PEM certificates to trust for the provider, "" for those of the system.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one user, "" for a missing one."""

    id_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)


class TokenStore:
    """The tokens of a user in a kubeconfig file. Its methods block.

    Args:
        user: the name of the user in the file.
    """

    def __init__(self, path: Path, user: str) -> None:
        self._path = path
        self._user = user

    def load(self) -> Tokens:
        """Return the tokens that are now in the file.

        Raises:
            UsageError: as `read_kubeconfig`.
        """
        settings = self._settings(read_kubeconfig(self._path) or {})
        return Tokens(_text(settings, "id-token"), _text(settings, "refresh-token"))

    def save(self, tokens: Tokens) -> None:
        """Write tokens to the file. It is replaced as a whole, and keeps its permissions.

        Raises:
            OSError: the file cannot be written.
            UsageError: as `read_kubeconfig`.
        """
        content = read_kubeconfig(self._path) or PrivateDict()
        self._settings(content).update({"id-token": tokens.id_token, "refresh-token": tokens.refresh_token})
        replace_file(self._path, _as_yaml(content))

    def _settings(self, content: dict[str, Any]) -> dict[str, Any]:
        for entry in content.get("users") or ():
            if isinstance(entry, dict) and entry.get("name") == self._user:
                config = ((entry.get("user") or {}).get("auth-provider") or {}).get("config")
                if isinstance(config, dict):
                    return config
        return {}


def _as_yaml(content: PrivateDict) -> Iterator[bytes]:
    from aioinformer.transport.auth.yaml_documents import to_yaml

    yield to_yaml([plain(content)], sort_keys=False).encode()


def _text(settings: Mapping[str, Any], name: str) -> str:
    found = settings.get(name)
    return found if isinstance(found, str) else ""


def oidc_provider(settings: Mapping[str, Any], where: str) -> OIDCProvider:
    """Read the `config` of the auth-provider `oidc`.

    Args:
        where: "kubeconfig FILE: users[NAME]", for messages.

    Raises:
        UsageError: a field is missing or wrong.
    """
    where = f"{where}.auth-provider.config"
    settings = private(settings)
    for name in ("idp-issuer-url", "client-id"):
        if not settings.get(name):
            raise UsageError(f"{where}.{name} is missing; log in again with the tool that wrote this file")
    if not _is_private(str(settings["idp-issuer-url"])):
        raise UsageError(f"{where}.idp-issuer-url must begin with https://, because secrets are sent to it")
    authority = ""
    try:
        if settings.get("idp-certificate-authority-data"):
            authority = b64decode(str(settings["idp-certificate-authority-data"]), validate=True).decode("ascii")
        elif settings.get("idp-certificate-authority"):
            with open(str(settings["idp-certificate-authority"]), encoding="ascii") as file:
                authority = file.read()
        if authority:
            ssl.create_default_context(cadata=authority)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{where}.idp-certificate-authority cannot be used: {type(error).__name__}; it must be PEM certificates"
        ) from error
    return OIDCProvider(
        issuer=str(settings["idp-issuer-url"]).rstrip("/"),
        client_id=str(settings["client-id"]),
        client_secret=str(settings.get("client-secret") or ""),
        authority=authority,
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """The form that exchanges a refresh token. Methods build its parts, so that no frame that raises holds a secret."""

    provider: OIDCProvider
    held: Tokens
    basic: bool

    def fields(self) -> dict[str, str]:
        form = {"grant_type": "refresh_token", "refresh_token": self.held.refresh_token}
        if not self._is_basic():
            form["client_id"] = self.provider.client_id
            if self.provider.client_secret:
                form["client_secret"] = self.provider.client_secret
        return form

    def headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity"}
        if self._is_basic():
            pair = f"{quote_plus(self.provider.client_id)}:{quote_plus(self.provider.client_secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return headers

    def _is_basic(self) -> bool:
        return self.basic and bool(self.provider.client_secret)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response of a provider.

    Attributes:
        body: the body, None if it is too large.
    """

    status: int
    body: bytes | None = field(repr=False)

    def document(self) -> PrivateDict | str:
        """Return the JSON object of a success, or what is wrong. Never raises: the object contains tokens."""
        if self.body is None:
            return f"answered with more than {MAX_BYTES} bytes"
        try:
            answer = json.loads(self.body)
        except (ValueError, RecursionError):
            answer = None
        if self.status == 200 and isinstance(answer, dict):
            return PrivateDict(answer)
        word = answer.get("error") if isinstance(answer, dict) else None
        return f"answered {self.status}" + (f" ({str(word)[:100]})" if word else "")


async def _bounded(response: aiohttp.ClientResponse) -> bytes | None:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


def _tokens(answer: Mapping[str, Any], held: Tokens) -> Tokens | None:
    """Return the tokens in a response, None if it has no usable ID token."""
    id_token = answer.get("id_token")
    refresh_token = answer.get("refresh_token")
    if not isinstance(id_token, str) or not id_token:
        return None
    # A provider that does not rotate refresh tokens leaves them out of the response, and the old one stays valid.
    return Tokens(id_token, refresh_token if isinstance(refresh_token, str) and refresh_token else held.refresh_token)


def _credential(tokens: Tokens) -> Credential:
    return Credential(authorization=bearer(Secret(tokens.id_token), "the OIDC id-token"))


def _is_private(url: str) -> bool:
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return bool(parsed.host) and (parsed.scheme == "https" or (parsed.scheme == "http" and is_loopback(parsed.host)))
