from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api import CONFIGMAPS, Api, names

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


@pytest.fixture
async def five(api: Api) -> None:
    for index in range(5):
        await api.create(f"c{index}")


@pytest.mark.usefixtures("five")
async def test_expired_continue_token_returns_a_usable_one(api: Api, server: ApiServer) -> None:
    _, first = await api("GET", f"{CONFIGMAPS}?limit=2")
    await api.create("c25")
    server.compact()
    status, expired = await api("GET", f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    assert (status, expired["reason"]) == (410, "Expired")
    assert expired["message"].startswith("The provided continue parameter is too old")
    _, rest = await api("GET", f"{CONFIGMAPS}?continue={expired['metadata']['continue']}")
    assert names(rest) == ["c2", "c25", "c3", "c4"]
