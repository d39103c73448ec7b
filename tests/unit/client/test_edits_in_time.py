"""Edits that meet conflicts until their time is over."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from aioinformer import Client, Conflict, TransportError
from tests.support.scripted_transport import OBJECT, Answer, Scripted, refusal, unreachable

if TYPE_CHECKING:
    from aioinformer.transport import Request


METADATA = {**cast("dict[str, str]", OBJECT["metadata"]), "creationTimestamp": "2024-01-01T00:00:00Z"}
OLD: Any = {**OBJECT, "metadata": METADATA, "data": {"x": "0"}}


class Contended(Scripted):
    """Refuses each patch, since the object has changed meanwhile, and takes `seconds` for each read."""

    seconds = 0.0

    async def request(self, request: Request) -> Answer:
        await super().request(request)
        if request.method == "PATCH":
            return refusal(409, "Conflict")
        await asyncio.sleep(self.seconds)
        return Answer(200, json.dumps(OLD).encode())


async def edit(transport: Any, timeout: float) -> None:  # noqa: ASYNC109 - of the edit
    changed = {**OLD, "data": {"x": "1"}}
    await Client(transport).core.v1.configmaps.edit(OLD, lambda old: changed, attempts=10**6, timeout=timeout)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.4, 3600.0])
async def test_last_conflict_is_raised_when_the_time_is_over(seconds: float) -> None:
    transport = Contended()
    transport.seconds = seconds
    with pytest.raises(Conflict):
        await edit(transport, 0.4)
    methods = [request.method for request in transport.requests]
    assert methods[:1] == ["PATCH"]
    assert max(transport.times) - transport.times[0] <= 0.4


async def test_read_that_fails_in_time_raises_its_error() -> None:
    with pytest.raises(TransportError, match="no connection"):
        await edit(Scripted(refusal(409, "Conflict"), unreachable(transient=False)), 60.0)
