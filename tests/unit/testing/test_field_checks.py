from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer, StatusError
from aioinformer.testing.api.statuses import warning_headers
from tests.real.kubectl.objects import WIDGETS, widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        running.create("customresourcedefinitions", WIDGETS)
        yield running


async def test_unchanged_invalid_fields_do_not_block_an_update(server: ApiServer) -> None:
    server.create("widgets", widget("w", size=1))
    narrower = server.get("customresourcedefinitions", "widgets.example.com")
    schema = narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["minimum"] = 5
    server.update("customresourcedefinitions", narrower)

    changed = server.patch("widgets", "w", {"spec": {"colour": "red"}})

    assert changed["spec"] == {"size": 1, "colour": "red"}


async def test_unknown_fields_are_dropped_from_python(server: ApiServer) -> None:
    stored = server.create("widgets", widget("w", size=1, sise=2))

    assert stored["spec"] == {"size": 1}


@pytest.mark.parametrize("place", ["items", "additionalProperties", "not", "properties", "allOf"])
@pytest.mark.parametrize("said", [5, [5], {"type": 5}, "x", True], ids=str)
def test_invalid_schema_of_a_crd_is_refused(server: ApiServer, place: str, said: object) -> None:
    definition = {**WIDGETS, "metadata": {"name": "widgets.example.org"}}
    schema = {"type": "object", "properties": {"a": {"type": "array", place: said}}}
    version = WIDGETS["spec"]["versions"][0] | {"schema": {"openAPIV3Schema": schema}}
    definition["spec"] = WIDGETS["spec"] | {"group": "example.org", "versions": [version]}

    with pytest.raises(StatusError) as refused:
        server.create("customresourcedefinitions", definition)

    assert refused.value.code in (400, 422)


def test_invalid_warning_is_left_out_of_headers() -> None:
    assert warning_headers(["a\nb", 'say "c"', "d\x7f"]) == ['299 - "say \\"c\\""']
