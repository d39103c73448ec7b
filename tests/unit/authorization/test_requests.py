"""What the headers of a request prove."""

from __future__ import annotations

import pytest

from aioinformer.authorization import AccessDenied, Unauthenticated, User
from aioinformer.authorization.requests import NamedPeers, bearer_token, check_same_origin, forwarded_user
from aioinformer.errors import OptionError
from aioinformer.serving import joined_headers


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic amFuZTpwYXNz", ""),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_bearer_token_of_a_header(header: str, token: str) -> None:
    assert bearer_token({"authorization": header}).text == token


@pytest.mark.parametrize("header", ["Bearer a b", "Bearer a\nBearer b", "Bearer " + "a" * 70_000])
def test_several_or_huge_tokens_are_refused_without_a_quote(header: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        bearer_token({"authorization": header})
    assert "Bearer a" not in str(refused.value)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},  # typed into the address bar
        {"origin": "https://shop.example", "host": "shop.example"},
        {"origin": "https://shop.example:8443", "host": "Shop.example:8443"},
        {"host": "shop.example"},  # a program
    ],
)
def test_requests_of_the_same_origin_pass(headers: dict[str, str]) -> None:
    check_same_origin(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "same-origin\ncross-site"},
        {"sec-fetch-site": "cross-site", "origin": "https://shop.example", "host": "shop.example"},
        {"origin": "https://evil.example", "host": "shop.example"},
        {"origin": "null", "host": "shop.example"},
        {"origin": "https://[", "host": "shop.example"},
        {"origin": "https://shop.example"},
    ],
)
def test_requests_of_other_origins_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(AccessDenied, match="another origin"):
        check_same_origin(headers)


def test_peers_are_addresses_and_networks() -> None:
    peers = NamedPeers(["10.0.0.7", "192.168.1.9/24", "fd00::/8"])
    assert all(each in peers for each in ("10.0.0.7", "192.168.1.200", "fd00::1", "::ffff:10.0.0.7"))
    assert not any(each in peers for each in ("10.0.0.8", "192.168.2.1", "::1", "", "proxy.example", None))


@pytest.mark.parametrize("peer", ["0.0.0.0/0", "::/0", "proxy.example", "10.0.0.0/33", ""])
def test_peers_that_name_nobody_or_everybody_are_refused(peer: str) -> None:
    with pytest.raises(OptionError, match="from_peers"):
        NamedPeers([peer])


def test_proxy_names_a_user_and_groups() -> None:
    headers = {"x-remote-user": "jane", "x-remote-group": "shop, ops\nadmins"}
    found = forwarded_user(headers, "x-remote-user", "x-remote-group")
    assert found == User("jane", groups=("shop", "ops", "admins", "system:authenticated"))
    assert forwarded_user(headers, "x-remote-user", "") == User("jane", groups=("system:authenticated",))
    assert forwarded_user({"x-remote-user": " "}, "x-remote-user", "x-remote-group") is None


def test_user_header_that_was_sent_twice_is_refused() -> None:
    headers = joined_headers([("X-Remote-User", "admin"), ("x-remote-user", "jane")])
    with pytest.raises(Unauthenticated, match="more than once"):
        forwarded_user(headers, "x-remote-user", "")


def test_joined_headers_hide_their_values() -> None:
    headers = joined_headers([("Cookie", "a=1"), ("cookie", "b=2"), ("Accept", "x"), ("accept", "y"), ("Host", "h")])
    assert headers == {"cookie": "a=1; b=2", "accept": "x\ny", "host": "h"}
    assert "a=1" not in repr(headers)
