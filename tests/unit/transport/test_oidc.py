"""OpenID Connect: when and how the provider is asked, and which tokens are stored."""

from __future__ import annotations

import gzip
import json
import os
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import pytest
import trustme
import yaml
from aiohttp import web

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport.auth.oidc import OIDCCredentials, TokenStore, oidc_provider
from aioinformer.transport.auth.tokens import obtain
from tests.support.loopback import Server, Stalled, certified

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = 1_893_456_000.0


def jwt(name: str, expires: Any = NOW + 3600) -> str:
    parts = [b"{}", json.dumps({"exp": expires, "name": name}).encode(), b"signature"]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


class Provider:
    """An OIDC provider that answers with `tokens`, and records its requests."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tokens: dict[str, str] = {"id_token": jwt("new"), "refresh_token": "refresh-2"}
        self.discovery: dict[str, Any] = {}
        self.status = 200
        self.forms: list[dict[str, str]] = []
        self.logins: list[str] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/realm/.well-known/openid-configuration":
            return web.json_response({"token_endpoint": f"{self.server.url}/token", **self.discovery})
        self.forms.append({name: str(value) for name, value in (await request.post()).items()})
        self.logins.append(request.headers.get("Authorization", ""))
        return web.json_response(self.tokens, status=self.status)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def provider(authority: trustme.CA) -> AsyncIterator[Provider]:
    provider = Provider(Server())
    async with provider.server.started(provider, certified(authority)):
        yield provider


class User:
    """A user in a kubeconfig file, and the user's credentials."""

    def __init__(self, path: Path, provider: Provider, authority: trustme.CA) -> None:
        self.path = path
        self.settings: dict[str, Any] = {
            "idp-issuer-url": f"{provider.server.url}/realm",
            "idp-certificate-authority-data": b64encode(authority.cert_pem.bytes()).decode(),
            "client-id": "cl:ient",
            "client-secret": "s3cret",
            "id-token": jwt("old", NOW - 1),
            "refresh-token": "refresh-1",
        }

    def write(self) -> None:
        user = {"auth-provider": {"name": "oidc", "config": self.settings}}
        self.path.write_text(yaml.safe_dump({"users": [{"name": "other", "user": {}}, {"name": "me", "user": user}]}))

    def read(self) -> dict[str, Any]:
        content = yaml.safe_load(self.path.read_text())
        settings: dict[str, Any] = content["users"][1]["user"]["auth-provider"]["config"]
        return settings

    def credentials(self) -> OIDCCredentials:
        self.write()
        provider = oidc_provider(self.settings, "users[me]")
        return OIDCCredentials(provider, TokenStore(self.path, "me"), now=lambda: NOW)


@pytest.fixture
def user(tmp_path: Path, provider: Provider, authority: trustme.CA) -> User:
    return User(tmp_path / "config", provider, authority)


@pytest.mark.parametrize("token", ["", jwt("old", NOW - 1), jwt("dying", NOW + 30)])
async def test_missing_or_expiring_id_token_is_renewed(user: User, token: str) -> None:
    user.settings["id-token"] = token
    assert (await user.credentials().current()).authorization == f"Bearer {jwt('new')}"


async def test_client_authenticates_with_id_and_secret(user: User, provider: Provider) -> None:
    await user.credentials().current()
    assert provider.forms == [{"grant_type": "refresh_token", "refresh_token": "refresh-1"}]
    assert b64decode(provider.logins[0].removeprefix("Basic ")) == b"cl%3Aient:s3cret"


async def test_secret_is_sent_in_the_form_if_required(user: User, provider: Provider) -> None:
    provider.discovery["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    await user.credentials().current()
    assert provider.logins == [""]
    assert provider.forms[0].items() >= {"client_id": "cl:ient", "client_secret": "s3cret"}.items()


async def test_public_client_sends_only_its_id(user: User, provider: Provider) -> None:
    del user.settings["client-secret"]
    await user.credentials().current()
    assert (provider.logins, provider.forms[0]["client_id"]) == ([""], "cl:ient")


async def test_new_tokens_are_written_to_the_file(user: User) -> None:
    source = user.credentials()
    os.chmod(user.path, 0o600)
    before = user.read()
    await source.current()
    assert user.read() == {**before, "id-token": jwt("new"), "refresh-token": "refresh-2"}
    assert user.path.stat().st_mode & 0o777 == 0o600


async def test_refresh_token_is_kept_without_rotation(user: User, provider: Provider) -> None:
    del provider.tokens["refresh_token"]
    await user.credentials().current()
    assert (user.read()["id-token"], user.read()["refresh-token"]) == (jwt("new"), "refresh-1")


async def test_token_written_by_another_program_is_used(user: User, provider: Provider) -> None:
    user.settings["id-token"] = jwt("good")
    source = user.credentials()
    refused = await source.current()
    user.settings["id-token"] = jwt("written by kubectl")
    user.write()
    assert (await source.renew(refused)).authorization == f"Bearer {jwt('written by kubectl')}"
    assert not provider.server.requests


async def test_unwritable_file_logs_a_warning(
    user: User, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read_only(self: TokenStore, tokens: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(TokenStore, "save", read_only)
    source = user.credentials()
    refused = await source.current()
    provider.tokens = {"id_token": jwt("newer")}
    assert (await source.renew(refused)).authorization == f"Bearer {jwt('newer')}"
    assert provider.forms[1]["refresh_token"] == "refresh-2"
    assert "cannot be written to the kubeconfig" in caplog.text


async def test_untrusted_provider_gets_no_secret(user: User, provider: Provider) -> None:
    del user.settings["idp-certificate-authority-data"]
    with pytest.raises(TransportError, match=r"^OIDC provider 127\.0\.0\.1:\d+: its certificate is not trusted"):
        await user.credentials().current()
    assert not provider.server.requests


async def test_expired_id_token_without_refresh_token_raises(user: User) -> None:
    del user.settings["refresh-token"]
    with pytest.raises(TransportError, match="log in again"):
        await user.credentials().current()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client-id": ""}, r"users\[me\]\.auth-provider\.config\.client-id is missing"),
        ({"idp-issuer-url": "http://example.org"}, "idp-issuer-url must begin with https"),
        ({"idp-certificate-authority-data": "s3cret"}, "idp-certificate-authority cannot be used"),
    ],
)
def test_invalid_settings_raise(user: User, changes: dict[str, str], message: str) -> None:
    user.settings.update(changes)
    with pytest.raises(UsageError, match=message):
        user.credentials()


@pytest.mark.parametrize(
    "expires",
    [10**400, -(10**400), float("inf"), float("nan"), 1e300, "soon", str(NOW), [], {}, None, True, False],
    ids=lambda value: str(value)[:12],
)
async def test_invalid_exp_is_ignored(user: User, provider: Provider, expires: Any) -> None:
    user.settings["id-token"] = jwt("odd", expires)
    source = user.credentials()
    assert (await source.current()).authorization == f"Bearer {jwt('odd', expires)}"
    assert not provider.server.requests


@pytest.mark.parametrize(
    "answer",
    [
        {"id_token": 10**30, "expires_in": 10**400},
        {"id_token": ["s3cret"]},
        {"id_token": ""},
    ],
    ids=str,
)
async def test_id_token_of_another_type_raises(user: User, provider: Provider, answer: Any) -> None:
    provider.tokens = answer
    with pytest.raises(TransportError, match="it returned no id_token") as caught:
        await user.credentials().current()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("methods", [1, "client_secret_basic", {"a": 1}, [1, None], []])
async def test_odd_discovery_documents_are_accepted(user: User, provider: Provider, methods: Any) -> None:
    provider.discovery["token_endpoint_auth_methods_supported"] = methods
    assert (await user.credentials().current()).authorization == f"Bearer {jwt('new')}"


@pytest.mark.parametrize("endpoint", [None, 1, ["https://host"], "http://10.0.0.1/token", "https://["])
async def test_invalid_token_endpoint_raises(user: User, provider: Provider, endpoint: Any) -> None:
    provider.discovery["token_endpoint"] = endpoint
    with pytest.raises(TransportError, match="names no token_endpoint"):
        await user.credentials().current()
    assert provider.forms == []


@pytest.mark.parametrize("place", ["discovery", "token"])
@pytest.mark.parametrize(
    ("text", "encoding", "reason"),
    [
        (b" " * 1_100_000, "", "answered with more than 1048576 bytes"),
        (gzip.compress(b" " * 50_000_000), "gzip", "answered with more than 1048576 bytes|is not complete|decoded"),
        (b"[" * 100_000, "", "answered 200"),
        (b'{"id_token": 1' + b"1" * 5000 + b"}", "", "answered 200"),
    ],
    ids=["large", "bomb", "deep", "number"],
)
async def test_response_of_a_provider_is_limited_in_size(
    user: User, provider: Provider, place: str, text: bytes, encoding: str, reason: str
) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if (place == "token") == (request.method == "POST"):
            return web.Response(body=text, headers={"Content-Encoding": encoding} if encoding else {})
        return await provider(request)

    provider.server.answer = answer
    with pytest.raises(TransportError, match=reason):
        await user.credentials().current()


async def test_response_of_a_provider_is_limited_in_time(user: User, provider: Provider) -> None:
    provider.server.answer = Stalled()
    user.write()
    source = OIDCCredentials(
        oidc_provider(user.settings, "users[me]"), TokenStore(user.path, "me"), timeout=0.2, now=lambda: NOW
    )
    with pytest.raises(TransportError, match="the response timed out"):
        await source.current()


async def test_provider_is_reached_through_a_proxy(
    user: User, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks4://me:s3cret@127.0.0.1:1")
    user.settings["idp-issuer-url"] = "https://provider.invalid"
    with pytest.raises(TransportError, match="HTTPS_PROXY names a proxy with the scheme socks4") as caught:
        await obtain(user.credentials())
    assert "s3cret" not in str(caught.value)
