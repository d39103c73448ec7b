"""What an error after a 401 says: whose credentials were refused, what has expired, and what to do."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from aioinformer import Client, HttpTransport, ListWatch, Resource, SharedIndexInformer, connect
from aioinformer.errors import ApiError
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from aioinformer.transport import TLS, Credential
from aioinformer.transport.auth.refusals import Owner, certificate_expiry, explanation

if TYPE_CHECKING:
    from pathlib import Path

OWNER = Owner("kubeconfig f: users[jane]", "log in again, or correct the user")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def jwt(expires: datetime | None) -> str:
    claims = {"sub": "jane"} if expires is None else {"sub": "jane", "exp": int(expires.timestamp())}
    return f"aGVhZA.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def certificate(expires: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    made = builder.not_valid_before(expires - timedelta(days=400)).not_valid_after(expires).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("credential", "tls", "told"),
    [
        (Credential(f"Bearer {jwt(NOW)}"), None, "the token expired at 2026-06-01 12:00:00 UTC; log in again"),
        (Credential(f"Bearer {jwt(NOW + timedelta(1))}"), None, "the server does not accept the token; log in again"),
        (Credential(f"Bearer {jwt(None)}"), None, "the server does not accept the token; log in again"),
        (Credential("Bearer opaque"), None, "the server does not accept the token; log in again"),
        (Credential("Basic YTpi"), None, "does not accept the user name and the password; correct them"),
        (Credential(), None, "there is neither a token nor a client certificate; add one"),
        (Credential(), TLS(client_certificate_data="nonsense"), "does not accept the client certificate; log in again"),
    ],
)
def test_refusal_names_owner_reason_and_remedy(credential: Credential, tls: TLS | None, told: str) -> None:
    text = explanation(OWNER, credential, tls, NOW.timestamp())
    assert text.startswith("kubeconfig f: users[jane]: ")
    assert told in text
    assert not credential.authorization or credential.authorization.partition(" ")[2] not in text


@pytest.mark.parametrize("year", [2026, 2049, 2050, 2100])
def test_expiry_of_a_certificate_is_read(year: int, tmp_path: Path) -> None:
    expires = datetime(year, 5, 31, 23, 59, 58, tzinfo=UTC)
    pem = certificate(expires)
    assert certificate_expiry(f"a comment\n{pem}{certificate(NOW)}") == expires.timestamp()
    (tmp_path / "me.crt").write_text(pem)
    told = "the client certificate expired at" if expires < NOW else "does not accept the client certificate"
    for tls in (TLS(client_certificate=tmp_path / "me.crt"), TLS(client_certificate_data=pem)):
        assert told in explanation(OWNER, Credential(), tls, NOW.timestamp())
    assert told in explanation(OWNER, Credential(certificate=pem, key="x"), None, NOW.timestamp())


@pytest.mark.parametrize("damage", [b"", b"\x30", b"\x30\x82\xff\xff\x30", b"\x30\x84\x30\x30"])
def test_damaged_certificate_has_no_expiry(damage: bytes) -> None:
    body = base64.b64encode(damage).decode()
    assert certificate_expiry(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n") is None


async def test_401_names_the_user_of_the_kubeconfig(tmp_path: Path) -> None:
    expired = jwt(datetime(2020, 1, 1, tzinfo=UTC))
    async with ApiServer(tokens={"other": "somebody"}, authorization_mode="RBAC") as server:
        path = tmp_path / "config"
        content: dict[str, Any] = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "jane"}}],
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "jane", "user": {"token": expired}}],
        }
        path.write_text(json.dumps(content))
        wanted = (
            rf"401 Unauthorized.*; kubeconfig {path}: users\[jane\]: the token expired at 2020-01-01 .*; log in again"
        )
        async with await connect(kubeconfig=path) as connection:
            with pytest.raises(ApiError, match=wanted) as caught:
                await connection.client.core.v1.pods.list()
            assert expired not in str(caught.value)
            assert caught.value.hint.startswith("kubeconfig ")
            resource: Resource[Any] = core_v1.PODS
            informer: SharedIndexInformer[Any] = SharedIndexInformer(ListWatch(connection.transport, resource))
            errors: list[Exception] = []
            informer.set_watch_error_handler(errors.append)
            async with informer:
                async with asyncio.timeout(50):
                    while not errors:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
            assert "users[jane]: the token expired" in str(errors[0])


async def test_401_of_a_plain_transport_says_what_is_refused() -> None:
    async with (
        ApiServer(tokens={"other": "somebody"}, authorization_mode="RBAC") as server,
        HttpTransport(server.url, token="nonsense") as transport,
    ):
        with pytest.raises(ApiError, match="the credentials of this transport: the server does not accept the token"):
            await Client(transport).core.v1.pods.list()
