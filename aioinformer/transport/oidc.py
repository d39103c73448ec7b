"""Credentials from an OpenID Connect provider: the `oidc` auth-provider of kubeconfig files.

The kubeconfig is the memory. A provider may give a new refresh token with each use and take the old one back, so what
was obtained is written to the file, for kubectl and for the next start, and what another program has written there is
taken before the provider is asked. A file that cannot be written costs a warning; then this process remembers alone.

The client secret and the refresh token travel over verified TLS, or over loopback, and to no other place.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import tempfile
import time
from base64 import b64decode, b64encode, urlsafe_b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import aiohttp
from yarl import URL

from aioinformer.errors import TransportError, UsageError
from aioinformer.logger import get_logger
from aioinformer.transport.failures import authority, transport_error
from aioinformer.transport.kubeconfig import read_kubeconfig
from aioinformer.transport.proxies import environment_proxy, is_loopback
from aioinformer.transport.renewal import Credential, RenewedCredentials, bearer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

logger = get_logger("aioinformer.transport")


@dataclass(frozen=True, slots=True)
class OIDCProvider:
    """What a kubeconfig says of a provider, its tokens apart.

    Attributes:
        issuer: URL of the provider.
        client_id: of this client.
        client_secret: "" for a public client.
        authority: PEM certificates to trust for the provider, "" for those of the system.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one user, "" for one that is not there."""

    id_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)


def oidc_provider(settings: Mapping[str, Any], where: str) -> OIDCProvider:
    """Reads the `config` of the auth-provider `oidc`, its paths absolute.

    Args:
        settings: the section.
        where: "kubeconfig FILE: users[NAME]", for messages.

    Raises:
        UsageError: a field is missing or wrong.
    """
    where = f"{where}.auth-provider.config"
    for name in ("idp-issuer-url", "client-id"):
        if not settings.get(name):
            raise UsageError(f"{where}.{name} is missing; log in again with the tool that wrote this file")
    if not _is_private(str(settings["idp-issuer-url"])):
        raise UsageError(f"{where}.idp-issuer-url must begin with https://, for secrets are sent to it")
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


class TokenStore:
    """The tokens of one user of a kubeconfig file. Blocking.

    Args:
        path: the file.
        user: the user's name in it.
    """

    def __init__(self, path: Path, user: str) -> None:
        self._path = path
        self._user = user

    def load(self) -> Tokens:
        """The tokens that the file holds now. Raises `UsageError` as `read_kubeconfig` does."""
        settings = self._settings(read_kubeconfig(self._path) or {})
        return Tokens(str(settings.get("id-token") or ""), str(settings.get("refresh-token") or ""))

    def save(self, tokens: Tokens) -> None:
        """Writes tokens into the file, which is replaced as a whole, permissions kept. Raises `OSError`."""
        import yaml

        content = read_kubeconfig(self._path) or {}
        self._settings(content).update({"id-token": tokens.id_token, "refresh-token": tokens.refresh_token})
        target = os.path.realpath(self._path)
        mode = os.stat(target).st_mode & 0o777
        descriptor, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".kubeconfig-")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                yaml.safe_dump(content, file, default_flow_style=False, sort_keys=False, allow_unicode=True)
            os.chmod(draft, mode)
            os.replace(draft, target)
        except BaseException:
            os.unlink(draft)
            raise

    def _settings(self, content: dict[str, Any]) -> dict[str, Any]:
        for entry in content.get("users") or ():
            if isinstance(entry, dict) and entry.get("name") == self._user:
                config = ((entry.get("user") or {}).get("auth-provider") or {}).get("config")
                if isinstance(config, dict):
                    return config
        return {}


class OIDCCredentials(RenewedCredentials):
    """The ID token of a user, exchanged for a new one by the refresh token shortly before it expires.

    Args:
        provider: whom to ask.
        store: where the tokens are.
        timeout: seconds that one exchange may take.
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
        super().__init__(now=now)
        self._provider = provider
        self._store = store
        self._timeout = timeout
        self._stored = self._held = Tokens()

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        try:
            stored = await asyncio.to_thread(self._store.load)
        except UsageError as error:
            raise TransportError(str(error)) from error
        if stored != self._stored:
            self._stored = self._held = stored
        if not self._is_good(self._held.id_token, refused):
            await self._exchange()
        return _credential(self._held.id_token), _expiry(self._held.id_token)

    def _is_good(self, id_token: str, refused: Credential | None) -> bool:
        if not id_token or (refused is not None and _credential(id_token) == refused):
            return False
        expiry = _expiry(id_token)
        return expiry is None or self._now() < expiry - self._margin

    async def _exchange(self) -> None:
        provider = self._provider
        if not self._held.refresh_token:
            raise self._failure("the ID token has expired, and there is no refresh token; log in again")
        context = await asyncio.to_thread(ssl.create_default_context, cadata=provider.authority or None)
        timeout = aiohttp.ClientTimeout(total=self._timeout)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout
        ) as session:
            found = await self._ask(session, "GET", f"{provider.issuer}/.well-known/openid-configuration")
            endpoint = str(found.get("token_endpoint") or "")
            if not _is_private(endpoint):
                raise self._failure("it names no token_endpoint with https")
            form = {"grant_type": "refresh_token", "refresh_token": self._held.refresh_token}
            headers = {}
            methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            if provider.client_secret and "client_secret_basic" in methods:
                pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
                headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
            else:
                form["client_id"] = provider.client_id
                if provider.client_secret:
                    form["client_secret"] = provider.client_secret
            answer = await self._ask(session, "POST", endpoint, data=form, headers=headers)
        if not answer.get("id_token"):
            raise self._failure("it gave no id_token for the refresh token")
        # A provider that does not rotate refresh tokens leaves the old one valid, and out of the answer.
        self._held = Tokens(str(answer["id_token"]), str(answer.get("refresh_token") or self._held.refresh_token))
        try:
            await asyncio.to_thread(self._store.save, self._held)
        except (OSError, UsageError) as error:
            logger.warning("the renewed OIDC tokens cannot be written back: %s", error)
        else:
            self._stored = self._held

    async def _ask(self, session: aiohttp.ClientSession, method: str, url: str, **options: Any) -> dict[str, Any]:
        target = URL(url)
        try:
            async with session.request(
                method, target, allow_redirects=False, proxy=environment_proxy(target), **options
            ) as response:
                body, status = await response.read(), response.status
        except (aiohttp.ClientError, OSError) as error:
            failure = transport_error(f"OIDC provider {authority(target)}", error)
        else:
            try:
                answer = json.loads(body)
            except ValueError:
                answer = None
            if status == 200 and isinstance(answer, dict):
                return answer
            word = answer.get("error") if isinstance(answer, dict) else None
            failure = self._failure(f"{target.path} answered {status}" + (f" ({str(word)[:100]})" if word else ""))
        raise failure

    def _failure(self, reason: str) -> TransportError:
        return TransportError(f"OIDC provider {self._provider.issuer}: {reason}")


def _credential(id_token: str) -> Credential:
    return Credential(authorization=bearer(id_token, "the OIDC id-token"))


def _expiry(id_token: str) -> float | None:
    """`exp` of a JWT; None for a token that has none, or is none: the server will say what it thinks of it."""
    parts = id_token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def _is_private(url: str) -> bool:
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return bool(parsed.host) and (parsed.scheme == "https" or (parsed.scheme == "http" and is_loopback(parsed.host)))
