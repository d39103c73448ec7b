"""Tokens of service accounts, and roles: by the server's clock, and through its Python methods."""

from __future__ import annotations

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.support.api import CONFIGMAPS

TOKEN = "/api/v1/namespaces/default/serviceaccounts/robot/token"


async def status_of(session: aiohttp.ClientSession, token: str) -> int:
    async with session.get(CONFIGMAPS, headers={"Authorization": f"Bearer {token}"}) as response:
        return response.status


@pytest.mark.parametrize(("later", "status"), [(599, 403), (659, 403), (660, 401)])
async def test_token_is_valid_one_minute_past_its_expiry(later: float, status: int) -> None:
    now = 1_000_000_000.0
    async with (
        ApiServer(clock=lambda: now, authorization_mode="RBAC") as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        server.create("serviceaccounts", {"metadata": {"name": "robot"}})
        async with session.post(TOKEN, json={"spec": {"expirationSeconds": 600}}) as response:
            token = (await response.json())["status"]["token"]
        now += later
        assert await status_of(session, token) == status


async def test_token_of_another_server_is_401() -> None:
    async with ApiServer(authorization_mode="RBAC") as server, ApiServer(authorization_mode="RBAC") as other:
        for each in (server, other):
            each.create("serviceaccounts", {"metadata": {"name": "robot"}})
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{server.url}{TOKEN}", json={}) as response:
                token = (await response.json())["status"]["token"]
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{other.url}{CONFIGMAPS}", headers=headers) as response:
                assert response.status == 401


async def test_python_methods_are_not_restricted_by_rbac() -> None:
    async with ApiServer(authorization_mode="RBAC") as server:
        role = {"metadata": {"name": "all"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
        assert server.create("clusterroles", role)["rules"] == role["rules"]


async def test_server_without_rbac_has_no_roles() -> None:
    async with ApiServer() as server:
        assert server.list("clusterroles") == []
