"""The requests of a reflector with default options."""

from __future__ import annotations

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection, Response
from tests.support.virtual_time import settled


def item(name: str) -> bytes:
    return b'{"metadata":{"name":"%s","namespace":"default","uid":"u","resourceVersion":"1"}}' % name.encode()


@pytest.mark.conformance("REF-05")
@pytest.mark.parametrize(("share", "seconds"), [(0.0, 300), (0.5, 450), (0.999, 599)])
def test_watches_and_streaming_lists_last_five_to_ten_minutes(share: float, seconds: int) -> None:
    options = ReflectorOptions()
    assert options.watch("1", share).timeout_seconds == options.stream("", share).timeout_seconds == seconds


@pytest.mark.conformance("PG-01", "PG-04")
async def test_next_page_is_requested_while_one_is_read() -> None:
    pods = Collection()
    pods.version = 1
    first, second = Response(), Response()
    pods.refusals.extend([first, second])
    informer = SharedIndexInformer(pods, options=ReflectorOptions(streaming_list=False))
    async with informer:
        await settled()
        head = b'{"metadata":{"resourceVersion":"1","continue":"more"},"items":['
        first.feed(head + item("a") + b"," + item("b")[:20])
        await settled()
        assert [request.continue_token for request in pods.requests] == ["", "more"]
        first.feed(item("b")[20:] + b"]}")
        first.end()
        second.feed(b'{"metadata":{"resourceVersion":"1"},"items":[' + item("c") + b"]}")
        second.end()
        await informer.wait_for_sync()
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/c"]
        assert [request.watch for request in pods.requests[:2]] == [False, False]
