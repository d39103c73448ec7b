from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.kubectl.objects import WIDGETS, widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        running.create("customresourcedefinitions", WIDGETS)
        yield running


async def test_what_was_wrong_before_does_not_stand_in_the_way_of_a_change(server: ApiServer) -> None:
    server.create("widgets", widget("w", size=1))
    narrower = server.get("customresourcedefinitions", "widgets.example.com")
    schema = narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["minimum"] = 5
    server.update("customresourcedefinitions", narrower)

    changed = server.patch("widgets", "w", {"spec": {"colour": "red"}})

    assert changed["spec"] == {"size": 1, "colour": "red"}


async def test_from_python_the_same_fields_are_dropped(server: ApiServer) -> None:
    stored = server.create("widgets", widget("w", size=1, sise=2))

    assert stored["spec"] == {"size": 1}
