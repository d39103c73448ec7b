"""Users with certificates of the server's own authority."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer.errors import UsageError
from aioinformer.testing import ApiServer
from tests.real.contract.servers import access_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(tls=True, authorization_mode="RBAC", tokens={"secret": "root,system:masters"}) as server:
        yield server


async def told_of(kubeconfig: Path, **headers: str) -> dict[str, Any]:
    """Return the user that the server sees for a kubeconfig."""
    access = access_of(kubeconfig)
    async with (
        access.session() as session,
        session.post(access.server + REVIEWS, json=REVIEW, headers=headers) as response,
    ):
        assert response.status == 201, await response.text()
        user: dict[str, Any] = (await response.json())["status"]["userInfo"]
    return user


async def test_certificate_sets_user_and_groups(server: ApiServer, tmp_path: Path) -> None:
    user = await told_of(server.kubeconfig(tmp_path / "jane", user="jane,readers,writers", certificate=True))

    assert (user["username"], user["groups"]) == ("jane", ["readers", "writers", "system:authenticated"])
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_certificate_takes_precedence_over_a_token(server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.kubeconfig(tmp_path / "jane", user="jane", certificate=True)

    assert (await told_of(kubeconfig, Authorization="Bearer secret"))["username"] == "jane"
    assert (await told_of(kubeconfig, Authorization="Bearer wrong"))["username"] == "jane"


async def test_certificate_user_has_the_rights_of_its_roles(server: ApiServer, tmp_path: Path) -> None:
    access = access_of(server.kubeconfig(tmp_path / "jane", user="jane", certificate=True))

    async with access.session() as session, session.get(f"{access.server}/api/v1/nodes") as response:
        assert response.status == 403
        assert 'User "jane" cannot list resource "nodes"' in (await response.json())["message"]


async def test_certificate_of_another_authority_is_refused(server: ApiServer, tmp_path: Path) -> None:
    async with ApiServer(tls=True) as other:
        access = access_of(other.kubeconfig(tmp_path / "stranger", user="jane", certificate=True))
        assert access.tls is not None
        access.tls.load_verify_locations(cadata=server.certificate_authority.decode())

        async with access.session() as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get(f"{server.url}/version")


async def test_certificates_need_tls(tmp_path: Path) -> None:
    async with ApiServer() as server:
        with pytest.raises(UsageError, match="tls=True"):
            server.kubeconfig(tmp_path / "jane", user="jane", certificate=True)
