"""Invalid bytes in lists and watches: the informer survives, sends no more requests than usual, and recovers.

These tests run in virtual time and without sockets: responses reach the informer chunk by chunk.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import AioinformerError, TransportError
from aioinformer.informer import RetryWatcher
from aioinformer.reflector import ListPager
from tests.support.collection import Collection, Response, cut, line
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from aioinformer.informer import QueueName
    from aioinformer.reflector import ListOptions


#: Virtual seconds within which an informer must reach the state of a correct server: a few of the longest delays.
_PATIENCE = 400.0


def in_virtual_time(story: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in virtual time; errors that asyncio reports fail the test."""
    complaints: list[str] = []
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))
        runner.run(story)
    assert complaints == []


class HostileCollection(Collection):
    """Returns its hostile responses first, one a request.

    Args:
        responses: chunks of each hostile response, and its end: "end", "cut", or "hang" for none.

    Attributes:
        times: times of requests, except for later pages.
        exhausted: set when all hostile responses are used.
        dripping: the task that feeds the last of them.
    """

    def __init__(self, responses: Iterable[tuple[list[bytes], str]]) -> None:
        super().__init__("a", "b", "c", "d", "e")
        for chunks, ending in responses:
            response = Response()
            for chunk in chunks:
                response.feed(chunk)
            if ending != "hang":
                response.end(cut() if ending == "cut" else None)
            self.refusals.append(response)
        self.times: list[float] = []
        self.exhausted = asyncio.Event()
        self.dripping: asyncio.Task[None] | None = None

    async def request(self, options: ListOptions) -> Response:
        if not self.refusals:
            self.exhausted.set()
        if not options.continue_token:
            self.times.append(asyncio.get_running_loop().time())
        known = options.resource_version in ("", "0") or options.resource_version.isascii()
        if not self.refusals and not (known and (options.resource_version or "0").isdigit()):
            self.refuse(400, "BadRequest")
        elif not self.refusals and int(options.resource_version or "0") > self.version:
            self.refuse(504, "Timeout") if options.send_initial_events else self.refuse(410, "Expired")
        elif not self.refusals and options.continue_token and options.continue_token not in self._lists:
            self.refuse(410, "Expired")
        return await super().request(options)

    def most_in(self, seconds: float) -> int:
        """Return the largest number of requests in a span of time."""
        return max(sum(begin <= time < begin + seconds for time in self.times) for begin in self.times)


async def survives(pods: HostileCollection, options: RunOptions, queue: QueueName = "delta") -> list[Exception]:
    """Assert that an informer survives all hostile responses and recovers; return the errors that it reported."""
    errors: list[Exception] = []
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, options=replace(options, queue=queue))
    informer.set_watch_error_handler(errors.append)
    async with informer:
        async with asyncio.timeout(_PATIENCE * (1 + len(pods.refusals))):
            await pods.exhausted.wait()
        # Only a list corrects what a complete but wrong response said.
        async with asyncio.timeout(_PATIENCE):
            while not await _arrived(informer, pods):
                pods.put("a")
                if pods.open_watches:
                    pods.expire_watches()
                else:
                    pods.unseen()
                await asyncio.sleep(10)
    return errors


async def _arrived(informer: SharedIndexInformer[Any], pods: Collection) -> bool:
    await settled()
    there = {key: obj["metadata"]["resourceVersion"] for key, obj in pods.objects.items()}
    with suppress(Exception):
        held = {key: informer.get_store().get_by_key(key) for key in informer.get_store().list_keys()}
        return (
            informer.state.healthy
            and {key: obj.metadata.resource_version for key, obj in held.items() if obj is not None} == there
        )
    return False


SMALL = 4096
PAGES = RunOptions(streaming_list=False, page_size=2, max_frame=SMALL)
STREAMS = RunOptions(max_frame=SMALL)


def pod(name: str, version: Any, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **fields}


END = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
LIST = json.dumps(
    {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9"},
        "items": [pod("a", "1"), pod("z", "2")],
    }
).encode()
STREAM = b"".join([line("ADDED", pod("a", "1")), line("ADDED", pod("z", "2")), line("BOOKMARK", END)])
WATCH = b"".join(
    [
        line("MODIFIED", pod("a", "11")),
        line("DELETED", pod("z", "12")),
        line("ADDED", pod("y", "13", spec={"text": '},{"metadata":'})),
        line("BOOKMARK", {"metadata": {"resourceVersion": "14"}}),
        line("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "no"}),
    ]
)


def run(*responses: tuple[list[bytes], str], options: RunOptions, queue: QueueName = "delta") -> list[Exception]:
    pods = HostileCollection(responses)
    errors: list[Exception] = []

    async def story() -> None:
        errors.extend(await survives(pods, options, queue))

    in_virtual_time(story())
    assert pods.most_in(2.0) <= 6
    assert all(isinstance(error, AioinformerError) for error in errors)
    return errors


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


#: Replacements for a value: JSON of other types, and invalid JSON.
VALUES = [
    *(b"null", b"true", b"0", b"-1", b"1.5", b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 400, b"[]", b"{}", b""),
    *(
        b'""',
        b'"\\ud800"',
        b'"\xff\xfe"',
        b'"a\x00b"',
        b'"\x1b[31m"',
        b'"' + b"9" * 400 + b'"',
        b'"' + b"x" * 5000 + b'"',
    ),
    *(
        b'"-7"',
        b'"seven"',
        b'"/"',
        b'"a/b/c"',
        b'"x" "y"',
        b"'x'",
        b"}",
        b"\xef\xbb\xbf1",
        b"<html>",
        b'{"metadata":{}}',
    ),
    *(b"[" * 3000, b'{"a":' * 500, b"[" * 900 + b"]" * 900, b'{"a":' * 700 + b"1" + b"}" * 700),
]
PLACES = {
    "list": [
        *(b'"PodList"', b'"v1"', b'{"resourceVersion": "9"}', b'"9"', b'"items"'),
        *(b'"a"', b'"default"', b'"uid-a"', b'"1"'),
    ],
    "stream": [
        *(b'"ADDED"', b'"BOOKMARK"', b'"object"', b'"type"', b'"9"', b'"true"'),
        *(b'"a"', b'"default"', b'"uid-a"', b'"1"'),
    ],
    "watch": [
        *(b'"MODIFIED"', b'"DELETED"', b'"ERROR"', b'"metadata"', b"500"),
        *(b'"a"', b'"11"', b'"12"', b'"14"', b'"z"', b'"uid-z"'),
    ],
}


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
