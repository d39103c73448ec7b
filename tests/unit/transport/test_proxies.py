"""Proxies: which one leads to a server, and connections through SOCKS proxies."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme
from kubernetes_asyncio.client import CoreV1Api
from yarl import URL

from aioinformer import HttpTransport, connect
from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import TLS, proxies
from aioinformer.transport.auth.secret import Secret
from aioinformer.transport.proxies import environment_proxy, proxy_of
from tests.support.loopback import Server, bearer_only, certified, fetch
from tests.support.socks_server import SocksServer
from tests.unit.transport.kubeconfigs import Kubeconfig, identity

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = (
    "https://example.com:6443",
    "https://a.example.com",
    "https://badexample.com",
    "https://xn--bcher-kva.example",
    "https://bücher.example",
    "https://10.0.0.1:6443",
    "https://10.1.2.3",
    "https://[fd00::1]:6443",
    "https://[FD00:0::1]",
    "https://[::ffff:10.0.0.1]",
    "https://kubernetes.default.svc",
    "http://example.com",
)
# Values of NO_PROXY, and the numbers of the servers that Go then reaches without a proxy.
EXCLUDED: dict[str, tuple[int, ...]] = {
    "": (),
    "*": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    "a,*": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    "example.com": (0, 1, 11),
    "example.com.": (),
    ".example.com": (1,),
    "*.example.com": (1,),
    "*example.com": (),
    "com": (0, 1, 2, 11),
    "example.com:6443": (0,),
    ".example.com:443": (1,),
    "*.example.com:80": (),
    "example.com:80": (11,),
    "http://example.com": (),
    "[example.com]:6443": (0,),
    "10.0.0.0/8": (5, 6, 9),
    "10.0.0.5/16": (5, 9),
    "10.0.0.0/255.0.0.0": (),
    "10.0.0.0/8:443": (),
    "0.0.0.0/0": (5, 6, 9),
    "10.0.0.1": (5, 9),
    "10.0.0.1:6443": (5,),
    "10.0.0.1:443": (9,),
    "010.0.0.1": (),
    "10.0.0": (),
    "fd00::/8": (7, 8),
    "fd00::1": (7, 8),
    "[fd00::1]": (),
    "[fd00::1]:6443": (7,),
    "::ffff:10.0.0.0/104": (5, 6, 9),
    "::ffff:10.0.0.1": (5, 9),
    "bücher.example": (3, 4),
    ".bücher.example": (),
    ".svc": (10,),
    "default.svc:443": (10,),
    "10.0.0.0/8, .svc , fd00::/8": (5, 6, 7, 8, 9, 10),
    ":6443": (),
    ",,": (),
}


def used(url: str, **environment: str) -> str | None:
    proxy = environment_proxy(URL(url), environment)
    return None if proxy is None else str(proxy.url)


def test_no_proxy_follows_the_rules_of_go() -> None:
    proxies = {"HTTP_PROXY": "http://proxy:1", "HTTPS_PROXY": "http://proxy:1"}
    direct = {
        no_proxy: tuple(
            number for number, server in enumerate(SERVERS) if used(server, **proxies, NO_PROXY=no_proxy) is None
        )
        for no_proxy in EXCLUDED
    }
    assert direct == EXCLUDED


@pytest.mark.parametrize(
    "server", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "[::1]", "[::ffff:127.0.0.1]", "localhost:6443"]
)
def test_loopback_is_never_proxied(server: str) -> None:
    assert used(f"https://{server}", HTTPS_PROXY="http://proxy:1") is None


@pytest.mark.parametrize(
    ("environment", "http", "https"),
    [
        ({"HTTP_PROXY": "a:1"}, "http://a:1", None),
        ({"HTTPS_PROXY": "a:1"}, None, "http://a:1"),
        ({"http_proxy": "a:1", "https_proxy": "b:1"}, "http://a:1", "http://b:1"),
        ({"HTTP_PROXY": "A:1", "http_proxy": "b:1"}, "http://a:1", None),
        ({"HTTPS_PROXY": "a:1", "https_proxy": "b:1"}, None, "http://a:1"),
        ({"HTTPS_PROXY": "", "https_proxy": "b:1"}, None, "http://b:1"),
        ({"HTTPS_PROXY": "a:1", "NO_PROXY": "", "no_proxy": "api"}, None, None),
        ({"HTTPS_PROXY": "a:1", "NO_PROXY": "other", "no_proxy": "api"}, None, "http://a:1"),
        ({"ALL_PROXY": "a:1", "all_proxy": "a:1"}, None, None),
        ({"HTTPS_PROXY": "https://a"}, None, "https://a"),
    ],
)
def test_variables_are_those_of_go(environment: dict[str, str], http: str | None, https: str | None) -> None:
    assert (used("http://api", **environment), used("https://api", **environment)) == (http, https)


def test_http_proxy_raises_in_a_cgi_program() -> None:
    environment = {"HTTP_PROXY": "a:1", "HTTPS_PROXY": "a:1", "REQUEST_METHOD": "GET"}
    with pytest.raises(UsageError, match="HTTP_PROXY is not used in a CGI program"):
        used("http://api", **environment)
    assert used("https://api", **environment) == "http://a:1"


@pytest.mark.parametrize(("proxy", "url"), [("proxy:3128", "http://proxy:3128"), ("", None), (None, None)])
def test_proxy_without_scheme_is_an_http_proxy(proxy: str | None, url: str | None) -> None:
    found = proxy_of(None if proxy is None else Secret(proxy), "proxy")
    assert (None if found is None else str(found.url)) == url


@pytest.mark.parametrize(
    "proxy", ["ftp://me:s3cret@proxy", "socks4://me:s3cret@proxy", "http://me:s3cret@[proxy", "http://"]
)
def test_invalid_proxy_raises_without_its_password(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(UsageError, match=r"^HTTPS_PROXY ") as caught:
        HttpTransport("https://host")
    assert "s3cret" not in str(caught.value)
    with pytest.raises(UsageError, match=r"^proxy ") as caught:
        HttpTransport("https://host", proxy=proxy)
    assert "s3cret" not in str(caught.value)


# SOCKS proxies: connections through them, and no connection without them.


PASSWORD = "me:s3cret@ word"


def port_of(server: Server) -> int:
    return URL(server.url).port or 0


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_request_through_a_socks_proxy(server: Server, scheme: str) -> None:
    async with SocksServer(port_of(server)) as socks:
        proxy = f"{scheme}://{socks.authority}"
        async with HttpTransport("http://api.invalid:8080", proxy=proxy) as transport:
            assert [await fetch(transport, "/api") for _ in range(2)] == [b"ok"] * 2
    assert socks.asked == [("name", "api.invalid", 8080)]
    assert server.requests[0].headers["Host"] == "api.invalid:8080"


@pytest.mark.parametrize(("host", "kind"), [("10.1.2.3", "IPv4"), ("[fd00::1]", "IPv6")])
async def test_socks_proxy_resolves_names(server: Server, host: str, kind: str) -> None:
    async with (
        SocksServer(port_of(server)) as socks,
        HttpTransport(f"http://{host}:8080", proxy=f"socks5://{socks.authority}") as transport,
    ):
        assert await fetch(transport) == b"ok"
    assert socks.asked == [(kind, host.strip("[]"), 8080)]


async def test_socks_proxy_gets_user_and_password(server: Server) -> None:
    async with SocksServer(port_of(server), password=PASSWORD) as socks:
        url = URL(f"socks5://{socks.authority}").with_user("me").with_password("s3cret@ word")
        async with HttpTransport("http://api.invalid", proxy=str(url)) as transport:
            assert await fetch(transport) == b"ok"


@pytest.mark.parametrize("login", ["", "me:wrong@"])
async def test_socks_proxy_that_refuses_the_login_is_named(server: Server, login: str) -> None:
    async with (
        SocksServer(port_of(server), password=PASSWORD) as socks,
        HttpTransport("http://api.invalid", proxy=f"socks5://{login}{socks.authority}") as transport,
    ):
        with pytest.raises(TransportError, match=rf"SOCKS proxy {socks.authority} \(proxy\) refuses") as caught:
            await fetch(transport)
    assert "wrong" not in str(caught.value)
    assert server.requests == []


async def test_error_of_a_socks_proxy_is_quoted(server: Server) -> None:
    async with (
        SocksServer(port_of(server), reply=4) as socks,
        HttpTransport("http://api.invalid", proxy=f"socks5://{socks.authority}") as transport,
    ):
        with pytest.raises(TransportError, match="refuses: Host unreachable"):
            await fetch(transport)


async def test_unreachable_socks_proxy_prevents_connections(server: Server) -> None:
    async with SocksServer(port_of(server)) as socks:
        gone = socks.authority
    # A direct connection to the server would work: it is on loopback.
    async with HttpTransport(server.url, proxy=f"socks5://{gone}", token="s3cret") as transport:
        with pytest.raises(TransportError, match=r"SOCKS proxy .* cannot be reached: Connection refused"):
            await fetch(transport)
    assert server.requests == []


async def test_direct_connection_beside_socks_raises(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a later aiohttp makes connections in another way."""
    from aioinformer.transport.proxies import SocksConnector

    monkeypatch.delattr(SocksConnector, "_wrap_create_connection")
    async with HttpTransport(server.url, proxy="socks5://127.0.0.1:1") as transport:
        with pytest.raises(TransportError):
            await fetch(transport)
    assert server.requests == []


async def test_tls_through_socks_verifies_the_server_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    async with Server().started(bearer_only, certified(authority, "api.invalid")) as server:
        async with SocksServer(port_of(server)) as socks:
            settings: dict[str, Any] = {"proxy": f"socks5://{socks.authority}", "token": "s3cret"}
            good = TLS(tmp_path / "ca.crt")
            async with HttpTransport("https://api.invalid", ssl=good, **settings) as transport:
                assert await fetch(transport) == b"Bearer s3cret"
            named = TLS(tmp_path / "ca.crt", server_name="api.invalid")
            async with HttpTransport("https://other.invalid", ssl=named, **settings) as transport:
                assert await fetch(transport) == b"Bearer s3cret"
            async with HttpTransport("https://other.invalid", ssl=good, **settings) as transport:
                with pytest.raises(TransportError, match="certificate is not trusted"):
                    await fetch(transport)
        assert len(server.requests) == 2


async def test_proxy_url_may_name_a_socks_proxy(tmp_path: Path) -> None:
    """The proxy applies to the transport and to the client."""
    authority = trustme.CA()
    async with Server().started(identity, certified(authority, "api.invalid")) as server:
        async with SocksServer(port_of(server)) as socks:
            kubeconfig = Kubeconfig(tmp_path / "config", server, authority)
            kubeconfig.cluster |= {"server": "https://api.invalid:6443", "proxy-url": f"socks5://{socks.authority}"}
            async with await connect(kubeconfig=kubeconfig.write(token="abc")) as connection:
                assert b"Bearer abc" in await fetch(connection.transport)
                found = await CoreV1Api(connection.api_client).read_namespaced_config_map("me", "default")
                assert found.data["authorization"] == "Bearer abc"
        assert socks.asked == [("name", "api.invalid", 6443)] * 2


async def test_missing_socks_extra_names_field_and_extra(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(proxies, "find_spec", lambda name: None if name == "python_socks" else find_spec(name))
    kubeconfig = Kubeconfig(tmp_path / "config", server, trustme.CA())
    kubeconfig.cluster["proxy-url"] = "socks5://me:s3cret@127.0.0.1:1"
    with pytest.raises(
        UsageError, match=r"clusters\[c\]\.proxy-url names a SOCKS proxy.*'aioinformer\[socks\]'"
    ) as caught:
        await connect(kubeconfig=kubeconfig.write(token="abc"))
    assert "s3cret" not in str(caught.value)
    assert server.requests == []


async def test_borrowed_session_with_socks_raises(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(UsageError, match="leave out session"):
            HttpTransport(server.url, session, proxy="socks5://127.0.0.1:1")
