"""TLS: which certificates are trusted and sent, and the rotation of their files."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport
from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import TLS, Credential, HttpRequest, KubernetesTransport
from aioinformer.transport.auth.tokens import RenewedCredentials
from aioinformer.transport.session import TLSContexts
from tests.support.loopback import Server, Stalled, body, certified, fetch, forward, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def who(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the common name of the client's certificate."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert")
    names = [value for part in (certificate or {}).get("subject", ()) for name, value in part if name == "commonName"]
    return web.Response(text=",".join(names))


def client_certificate(authority: trustme.CA, name: str) -> trustme.LeafCert:
    return authority.issue_cert("client@example.org", common_name=name)


def write(folder: Path, certificate: trustme.LeafCert) -> None:
    """Replace certificate and key as rotations do: by new files with the old names."""
    for name, pem in (("tls.crt", certificate.cert_chain_pems[0]), ("tls.key", certificate.private_key_pem)):
        (folder / "next").write_bytes(pem.bytes())
        os.replace(folder / "next", folder / name)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def tls_server(authority: trustme.CA) -> AsyncIterator[Server]:
    context = certified(authority, "127.0.0.1", "kubernetes.default.svc", asks_clients=True)
    async with Server().started(who, context) as server:
        yield server


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(path)
    return path


async def test_unknown_authority_is_the_reason(tls_server: Server) -> None:
    async with HttpTransport(tls_server.url) as transport:
        with pytest.raises(
            TransportError, match=f"^{tls_server.authority}: its certificate is not trusted: .*certificate"
        ):
            await fetch(transport)


@pytest.mark.parametrize("strict", [True, False])
async def test_strict_verification_is_an_option(strict: bool) -> None:
    context = await TLSContexts(TLS(strict=strict)).context(Credential())
    assert bool(context.verify_flags & ssl.VERIFY_X509_STRICT) is strict


async def test_name_missing_in_the_certificate_raises(tls_server: Server, ca_file: Path) -> None:
    settings = TLS(certificate_authority=ca_file)
    async with HttpTransport(tls_server.url.replace("127.0.0.1", "localhost"), ssl=settings) as transport:
        with pytest.raises(TransportError, match="not trusted"):
            await fetch(transport)


async def test_close_in_mid_body_does_not_wait_for_the_peer(tls_server: Server, ca_file: Path) -> None:
    lossy, client_is_gone = asyncio.Event(), asyncio.Event()
    host, _, port = tls_server.authority.rpartition(":")

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A network that drops the server's bytes on demand."""
        there, back = await asyncio.open_connection(host, int(port))

        async def answer() -> None:
            while data := await there.read(65536):
                if not lossy.is_set():
                    writer.write(data)

        answering = asyncio.create_task(answer())
        await forward(reader, back)
        client_is_gone.set()
        answering.cancel()

    tls_server.answer = Stalled()
    settings = TLS(certificate_authority=ca_file)
    async with listening(carry) as url, HttpTransport(url.replace("http:", "https:"), ssl=settings) as transport:
        response = await transport.request(HttpRequest("/"))
        await anext(response.chunks())
        lossy.set()
        await response.close()
        async with asyncio.timeout(50):
            await client_is_gone.wait()


async def test_new_requests_use_a_rotated_client_certificate(
    tls_server: Server, authority: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    write(tmp_path, client_certificate(authority, "first"))
    configuration = Configuration(host=tls_server.url, ssl_ca_cert=str(ca_file))
    configuration.cert_file, configuration.key_file = str(tmp_path / "tls.crt"), str(tmp_path / "tls.key")
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        before = await fetch(transport)
        tls_server.answer = stalled = Stalled()
        watch = await transport.request(HttpRequest("/"))
        tls_server.answer = who
        write(tmp_path, client_certificate(authority, "second"))
        after = await fetch(transport)
        stalled.go_on.set()
        assert await body(watch) == b"first"
    assert (before, after) == (b"first", b"second")


async def test_half_rotated_certificate_is_not_used(
    tls_server: Server, authority: trustme.CA, ca_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, client_certificate(authority, "first"))
    settings = TLS(
        certificate_authority=ca_file, client_certificate=tmp_path / "tls.crt", client_key=tmp_path / "tls.key"
    )
    async with HttpTransport(tls_server.url, ssl=settings) as transport:
        await fetch(transport)
        second = client_certificate(authority, "second")
        (tmp_path / "tls.crt").write_bytes(second.cert_chain_pems[0].bytes())
        with caplog.at_level(logging.WARNING):
            between = [await fetch(transport) for _ in range(3)]
        write(tmp_path, second)
        after = await fetch(transport)
    assert (between, after) == ([b"first"] * 3, b"second")
    assert len(caplog.records) == 1


async def test_new_requests_trust_a_rotated_authority(
    tls_server: Server, authority: trustme.CA, tmp_path: Path
) -> None:
    path = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(path)
    async with HttpTransport(tls_server.url, ssl=TLS(certificate_authority=path)) as transport:
        with pytest.raises(TransportError, match="not trusted"):
            await fetch(transport)
        authority.cert_pem.write_to_path(tmp_path / "next")
        os.replace(tmp_path / "next", path)
        assert await fetch(transport) == b""


async def test_renewed_client_certificate_uses_a_new_connection(
    tls_server: Server, authority: trustme.CA, ca_file: Path
) -> None:
    class Certificates(RenewedCredentials):
        count = 0

        async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
            self.count += 1
            leaf = client_certificate(authority, f"number {self.count}")
            return Credential(
                certificate=leaf.cert_chain_pems[0].bytes().decode(), key=leaf.private_key_pem.bytes().decode()
            ), None

    async def only_the_second(request: web.BaseRequest) -> web.StreamResponse:
        answer = await who(request)
        assert isinstance(answer, web.Response)
        return answer if answer.text == "number 2" else web.Response(status=401)

    tls_server.answer = only_the_second
    settings = TLS(certificate_authority=ca_file)
    async with HttpTransport(tls_server.url, credentials=Certificates(), ssl=settings) as transport:
        assert await fetch(transport) == b"number 2"


@pytest.mark.parametrize("content", [None, "", "not PEM"])
async def test_invalid_authority_raises_before_the_first_request(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=f"certificate-authority file {path} cannot be used.*PEM"):
        async with HttpTransport("https://127.0.0.1:1", ssl=TLS(certificate_authority=path)):
            pass


async def test_invalid_client_certificate_is_named(ca_file: Path, tmp_path: Path) -> None:
    settings = TLS(certificate_authority=ca_file, client_certificate=ca_file, client_key=tmp_path / "tls.key")
    with pytest.raises(UsageError, match=f"client certificate {ca_file} with key {tmp_path / 'tls.key'}"):
        async with HttpTransport("https://127.0.0.1:1", ssl=settings):
            pass
