"""Creating, replacing and deleting objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.contract.talk import Talk

CONFIGMAPS = "/api/v1/namespaces/{ns}/configmaps"


async def test_an_object_is_created(talk: Talk) -> None:
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert answer.status == 201


async def test_a_name_is_taken_once(talk: Talk) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert answer.status == 409


async def test_names_are_generated(talk: Talk) -> None:
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"generateName": "gen-"}})
    assert answer.metadata["name"].startswith("gen-")
