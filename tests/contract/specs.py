"""Rows of what must be true of objects: several of them, right or wrong, and how they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.contract.talk import Talk

Object = dict[str, Any]


def manifest(fields: Mapping[str, Any], name: str = "a") -> Object:
    """An object of these fields; of its metadata only those that matter to the row have to be among them."""
    return {**fields, "metadata": {"name": name} | fields.get("metadata", {})}


async def told(talk: Talk, where: str, objects: Iterable[Mapping[str, Any]]) -> list[int]:
    """Asks for each of several objects to be made, none of which is kept, and returns the statuses."""
    answers = [await talk("POST", f"{where}?dryRun=All", manifest(each)) for each in objects]
    return [answer.status for answer in answers]


async def changed(talk: Talk, where: str, old: Mapping[str, Any], new: Iterable[Mapping[str, Any]]) -> list[int]:
    """Makes an object, asks for it to be replaced by each of several others, and returns the statuses."""
    made = await talk.made(where, manifest(old))
    name = made["metadata"]["name"]
    answers = [await talk("PUT", f"{where}/{name}?dryRun=All", manifest(each, name)) for each in new]
    return [answer.status for answer in answers]
