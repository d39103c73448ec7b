"""Invalid bytes in lists and watches: the informer survives, sends no more requests than usual, and recovers.

These tests run in virtual time and without sockets: responses reach the informer chunk by chunk.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.errors import TransportError
from aioinformer.informer import RetryWatcher
from aioinformer.reflector import ListPager
from tests.support.collection import Response, line
from tests.support.hostile_streams import (
    LIST,
    PAGES,
    PLACES,
    STREAM,
    STREAMS,
    VALUES,
    WATCH,
    HostileCollection,
    pod,
    run,
    survives,
)
from tests.support.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from aioinformer import RunOptions
    from aioinformer.informer import QueueName


@pytest.mark.parametrize("ending", ["end", "cut"])
@pytest.mark.parametrize(("body", "options"), [(LIST, PAGES), (STREAM, STREAMS)], ids=["list", "stream"])
def test_list_may_end_anywhere(body: bytes, options: RunOptions, ending: str) -> None:
    for first in range(0, len(body), 20):
        run(*(([body[:offset]], ending) for offset in range(first, min(first + 20, len(body)))), options=options)


@pytest.mark.parametrize("ending", ["end", "cut"])
def test_watch_may_end_anywhere(ending: str) -> None:
    for first in range(0, len(WATCH), 20):
        cuts = [WATCH[:offset] for offset in range(first, min(first + 20, len(WATCH)))]
        run(*(each for part in cuts for each in (([LIST], "end"), ([part], ending))), options=PAGES)


@pytest.mark.parametrize(("body", "options"), [(LIST, PAGES), (STREAM + WATCH, STREAMS)], ids=["list", "stream"])
def test_response_may_arrive_byte_by_byte(body: bytes, options: RunOptions) -> None:
    run(([body[at : at + 1] for at in range(len(body))], "end"), options=options)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value[:12]))
@pytest.mark.parametrize("what", PLACES)
def test_any_value_is_survived(what: str, value: bytes) -> None:
    body, options = {"list": (LIST, PAGES), "stream": (STREAM, STREAMS), "watch": (WATCH, PAGES)}[what]
    spoilt = [body.replace(place, value, 1) for place in PLACES[what]]
    assert body not in spoilt
    before = [([LIST], "end")] if what == "watch" else []
    run(*(each for one in spoilt for each in [*before, ([one], "end")]), options=options)


def test_list_without_version_is_followed_by_a_watch() -> None:
    run(([LIST.replace(b'"resourceVersion": "9"', b"")], "end"), options=PAGES)


CUTS = st.lists(st.integers(0, 700), max_size=6)
TOKENS = st.sampled_from(
    [*VALUES, b'"metadata":', b'"items":[', b'},{"metadata":', b"\n", b"\r\n", b'{"type":"ADDED","object":']
)


@st.composite
def mutated(draw: st.DrawFn, body: bytes) -> bytes:
    """Return the bytes of a valid response with random deletions, repetitions, changes and insertions."""
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(body)))
        end = min(len(body), begin + draw(st.sampled_from([0, 1, 1, 2, 7, 60])))
        new = draw(st.one_of(st.just(b""), st.binary(max_size=3), TOKENS, st.just(body[begin:end] * 2)))
        body = body[:begin] + new + body[end:]
    return body


@st.composite
def hostile_answers(draw: st.DrawFn) -> list[tuple[list[bytes], str]]:
    responses = []
    for _ in range(draw(st.integers(1, 5))):
        body = draw(st.sampled_from([LIST, STREAM, WATCH, STREAM + WATCH]))
        body = draw(st.one_of(mutated(body), mutated(body), st.just(body), st.binary(max_size=200)))
        places = sorted({0, len(body), *(cut for cut in draw(CUTS) if cut < len(body))})
        chunks = [body[a:b] for a, b in itertools.pairwise(places)]
        responses.append((chunks, draw(st.sampled_from(["end", "end", "cut", "hang"]))))
    return responses


@settings(max_examples=60)
@given(hostile_answers(), st.sampled_from([PAGES, STREAMS]), st.sampled_from(["delta", "in_order"]))
def test_any_responses_are_survived(
    responses: list[tuple[list[bytes], str]], options: RunOptions, queue: QueueName
) -> None:
    run(*responses, options=options, queue=queue)


def dripping(pods: HostileCollection, first: bytes, drop: bytes, every: float = 1.0) -> Response:
    """Let the next response continue without end, a few bytes at a time."""
    response = Response()
    response.feed(first)
    pods.refusals.append(response)

    async def drip() -> None:
        while not response.closed:
            response.feed(drop)
            await asyncio.sleep(every)

    pods.dripping = asyncio.create_task(drip())
    return response


def drips(
    first: bytes, drop: bytes, every: float, options: RunOptions, *before: tuple[list[bytes], str]
) -> list[Exception]:
    """Run an informer with a response that trickles, after some others."""
    errors: list[Exception] = []

    async def story() -> None:
        pods = HostileCollection(before)
        dripping(pods, first, drop, every)
        errors.extend(await survives(pods, options))

    in_virtual_time(story())
    return errors


A_LIST = b'{"metadata":{"resourceVersion":"9"},"items":['
AN_ITEM = json.dumps(pod("a", "1")).encode()
DRIPPING_LISTS = {
    "in front of it": (b"", b" "),
    "in its head": (b'{"metadata":{', b" "),
    "before an item": (A_LIST, b" "),
    "in an item": (A_LIST + b'{"x":"', b"x"),
    "behind its items": (A_LIST + AN_ITEM + b"]", b" "),
    "the same item again and again": (A_LIST, AN_ITEM + b","),
}
DRIPPING_WATCHES = {
    "in a line": (b"", b"x"),
    "empty lines": (b"", b"\n"),
    "in an event": (b'{"type":"ADDED","object":{', b" "),
}


@pytest.mark.parametrize("every", [0.5, 60.0])
@pytest.mark.parametrize("place", DRIPPING_LISTS)
def test_trickling_list_is_given_up(place: str, every: float) -> None:
    assert "no new object came for 90 s" in str(drips(*DRIPPING_LISTS[place], every, PAGES))


@pytest.mark.parametrize("every", [0.5, 20.0])
@pytest.mark.parametrize("place", [*DRIPPING_WATCHES, "the same event again and again"])
def test_trickling_streaming_list_falls_back_to_pages(place: str, every: float) -> None:
    again = line("ADDED", pod("a", "1"))
    drips(*DRIPPING_WATCHES.get(place, (again, again)), every, STREAMS)


@pytest.mark.parametrize("every", [0.5, 60.0])
@pytest.mark.parametrize("place", DRIPPING_WATCHES)
def test_trickling_watch_is_reopened(place: str, every: float) -> None:
    first, drop = DRIPPING_WATCHES[place]
    drips(first, drop, every, PAGES, ([LIST], "end"))


@pytest.mark.parametrize("place", [place for place in DRIPPING_LISTS if "again" not in place])
def test_trickling_list_without_a_cache_is_given_up(place: str) -> None:
    async def story() -> None:
        pods = HostileCollection([])
        first, drop = DRIPPING_LISTS[place]
        response = dripping(pods, first, drop)
        with pytest.raises(TransportError, match="silent"):
            await ListPager(pods).list()
        assert response.closed

    in_virtual_time(story())


@pytest.mark.parametrize("place", DRIPPING_WATCHES)
def test_trickling_watch_without_a_cache_is_reopened(place: str) -> None:
    async def story() -> None:
        pods = HostileCollection([])
        dripping(pods, *DRIPPING_WATCHES[place])
        pods.put("new")
        async with asyncio.timeout(200), RetryWatcher(pods, "5", random=lambda: 0.0) as events:
            assert (await anext(aiter(events))).object.metadata.name == "new"

    in_virtual_time(story())
