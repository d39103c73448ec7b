"""The end of an item is found by reading all of it, also if a record needs only a part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from aioinformer.cache.objects.record import Record
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.protocol.messages import Listed, Send
from aioinformer.reflector.response_reader import ResponseReader
from aioinformer.reflector.watch_events import RecordDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TEMPLATE = {"metadata": {"name": "template"}, "spec": {}}


class Body:
    """An answer of which the test digests the chunks itself."""

    status = 200
    headers: ClassVar[dict[str, str]] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def close(self) -> None: ...


def item(name: str, spec: Any) -> dict[str, Any]:
    managed = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
    return {"metadata": {"name": name, "resourceVersion": "1", "managedFields": managed}, "spec": spec}


def deep(levels: int) -> Any:
    value: Any = [_TEMPLATE, _TEMPLATE]
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "spec",
    [{"templates": [_TEMPLATE] * 3}, {"text": "x" * 2000}, {}, deep(400)],
    ids=["templates", "long", "short", "deep"],
)
def test_items_are_complete_whatever_follows_their_metadata(spec: Any) -> None:
    items = [item("first", {"text": "x" * 1000}), item("second", spec), item("third", {}), item("fourth", {})]
    body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}, separators=(",", ":")).encode()
    for size in (50, 700, len(body)):
        reader = ResponseReader(Body(), Send(ListOptions()), RecordDecoder(), ReflectorOptions())
        chunks: list[bytes | None] = [body[at : at + size] for at in range(0, len(body), size)]
        answers = [answer for chunk in [*chunks, None] for answer in reader.parse(chunk, initial=True)]
        found = [each for answer in answers if isinstance(answer, Listed) for each in answer.items]
        assert [json.loads(each.json) for each in found if isinstance(each, Record)] == items
