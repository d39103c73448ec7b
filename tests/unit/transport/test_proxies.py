"""Which proxy leads to a server. Expected values were recorded with Go: golang.org/x/net v0.57.0, http/httpproxy."""

from __future__ import annotations

import pytest
from yarl import URL

from aioinformer.errors import UsageError
from aioinformer.transport.auth.secret import Secret
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.proxies import environment_proxy, proxy_of

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
    "**": (),
    "a,*": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    "example.com": (0, 1, 11),
    "EXAMPLE.com": (0, 1, 11),
    " example.com ,": (0, 1, 11),
    "example.com.": (),
    ".example.com": (1,),
    "*.example.com": (1,),
    "*example.com": (),
    "com": (0, 1, 2, 11),
    ".com": (0, 1, 2, 11),
    "example.com:6443": (0,),
    ".example.com:443": (1,),
    "*.example.com:80": (),
    "example.com:80": (11,),
    "example.com:": (0, 1, 11),
    "http://example.com": (),
    "[example.com]:6443": (0,),
    "10.0.0.0/8": (5, 6, 9),
    "10.0.0.5/16": (5, 9),
    "10.0.0.0/33": (),
    "10.0.0.0/255.0.0.0": (),
    "10.0.0.0/8:443": (),
    "0.0.0.0/0": (5, 6, 9),
    "::/0": (7, 8),
    "10.0.0.1": (5, 9),
    "10.0.0.1:6443": (5,),
    "10.0.0.1:443": (9,),
    "010.0.0.1": (),
    "10.0.0": (),
    "10.": (),
    "fd00::/8": (7, 8),
    "FD00::1": (7, 8),
    "fd00::1": (7, 8),
    "[fd00::1]": (),
    "[fd00::1]:6443": (7,),
    "[fd00::1]:443": (8,),
    "fd00::1:6443": (),
    "fd00::1%eth0": (),
    "::ffff:10.0.0.0/104": (5, 6, 9),
    "::ffff:10.0.0.1": (5, 9),
    "bücher.example": (3, 4),
    "BÜCHER.example": (3, 4),
    ".bücher.example": (),
    "xn--bcher-kva.example": (3, 4),
    "svc": (10,),
    ".svc": (10,),
    "default.svc:443": (10,),
    "10.0.0.0/8, .svc , fd00::/8": (5, 6, 7, 8, 9, 10),
    ":6443": (),
    "..": (),
    ",,": (),
}


def used(url: str, **environment: str) -> str | None:
    proxy = environment_proxy(URL(url), environment)
    return None if proxy is None else str(proxy.url)


@pytest.mark.parametrize("no_proxy", EXCLUDED)
def test_no_proxy_follows_the_rules_of_go(no_proxy: str) -> None:
    proxies = {"HTTP_PROXY": "http://proxy:1", "HTTPS_PROXY": "http://proxy:1", "NO_PROXY": no_proxy}
    direct = tuple(number for number, server in enumerate(SERVERS) if used(server, **proxies) is None)
    assert direct == EXCLUDED[no_proxy]


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
