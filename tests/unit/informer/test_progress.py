"""The progress of a first list: a line of the log every 10 s, and the snapshot."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aioinformer import RunOptions, SharedIndexInformer
from tests.support.collection import Collection, Response, line

PAGED = RunOptions(streaming_list=False, page_size=100)


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer")


def pod(number: int) -> dict[str, Any]:
    name = f"pod-{number}"
    return {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(number + 1)}}


def page(first: int, **metadata: Any) -> bytes:
    items = [pod(number) for number in range(first, first + 100)]
    head = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1000", **metadata}}
    return json.dumps({**head, "items": items}).encode()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text.partition(": the first list has ")[2] for text in caplog.messages if "the first list has" in text]


async def fed(*pages: bytes, each: float) -> None:
    """Answer the requests of an informer with these pages, one after so many seconds."""
    pods, responses = Collection(), [Response() for _ in pages]
    pods.refusals.extend(responses)
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, options=PAGED)
    async with informer:
        for response, body in zip(responses, pages, strict=True):
            await asyncio.sleep(each)
            response.feed(body)
            response.end()
        await asyncio.sleep(1)
        assert informer.snapshot()["listing"] == ""
        assert len(informer.get_indexer()) == 100 * len(pages)
        await asyncio.sleep(100)


async def test_first_list_says_how_far_it_is_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    more = [{"continue": f"after-{left}", "remainingItemCount": left} for left in (300, 200, 100)]
    await fed(*(page(100 * number, **each) for number, each in enumerate(more)), page(300), each=7.4)
    assert lines(caplog) == [
        "100 of 400 objects after 10 s (10 a second, about 30 s left)",
        "200 of 400 objects after 20 s (10 a second, about 20 s left)",
    ]


@pytest.mark.parametrize("count", [None, "300", -1.5])
async def test_total_is_left_out_if_the_server_does_not_say_it(caplog: pytest.LogCaptureFixture, count: object) -> None:
    more = {"continue": "next"} if count is None else {"continue": "next", "remainingItemCount": count}
    await fed(page(0, **more), page(100), each=8)
    assert lines(caplog) == ["100 objects after 10 s (10 a second)"]


async def test_silent_server_and_quick_list_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    await fed(page(0), each=12)
    assert lines(caplog) == ["0 objects after 10 s (0 a second)"]
    caplog.clear()
    await fed(page(0), each=9)
    assert lines(caplog) == []


async def test_stream_counts_its_objects_and_the_snapshot_shows_them(caplog: pytest.LogCaptureFixture) -> None:
    pods, response = Collection(), Response()
    pods.refusals.append(response)
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(0.01)
        response.feed(b"".join(line("ADDED", pod(number)) for number in range(50)))
        await asyncio.sleep(10)
        assert lines(caplog) == ["50 objects after 10 s (5 a second)"]
        assert informer.snapshot()["listing"] == "50 objects after 10 s (5 a second)"
    await asyncio.sleep(60)
    assert len(lines(caplog)) == 1
