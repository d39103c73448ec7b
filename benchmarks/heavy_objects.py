"""Measure how long reading one object of 1.5 MiB, the limit of etcd, blocks the event loop.

Each subject is one shape of object that a tenant could create to block other users: deep nesting, many small values,
brackets in strings. It is read in chunks, as a watch, a list or a streaming list delivers it. A step is what runs
between two turns of the event loop. The figure is the CPU time of the longest step, in the best of three repetitions.
"""

from __future__ import annotations

from functools import partial
from time import thread_time
from typing import TYPE_CHECKING

from harness import Offer, Question, Requirement, run

from aioinformer.reflector import ListOptions, ReflectorOptions
from aioinformer.reflector.protocol.messages import Failed, Send
from aioinformer.reflector.response_reader import ResponseReader
from aioinformer.reflector.watch_events import RecordDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from harness import Figures

SIZE = 3 << 19
CHUNK = 256 << 10
_META = b'"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}'
_REPETITIONS = 3
#: Milliseconds, if not 10: the metadata behind such a field is found by brackets.
_LIMITS = {"deep lists before the metadata": 75.0}


def _with_spec(spec: bytes) -> bytes:
    return b"{%b,%b}" % (_META, b'"spec":' + spec)


def _filled(unit: bytes, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening + b",".join([unit] * ((SIZE - 200) // (len(unit) + 1))) + closing


_HALF, _SIXTH = (SIZE - 200) // 2, (SIZE - 200) // 6

SHAPES: dict[str, Callable[[], bytes]] = {
    "one string": lambda: _with_spec(b'"%b"' % (b"x" * (SIZE - 200))),
    "many lists nested 1,100 deep": lambda: _with_spec(_filled(b"[" * 1100 + b"]" * 1100)),
    "many lists nested 500 deep": lambda: _with_spec(_filled(b"[" * 500 + b"]" * 500)),
    "one deeply nested list": lambda: _with_spec(b"[" * _HALF + b"]" * _HALF),
    "one deeply nested object": lambda: _with_spec(b'{"x":' * _SIXTH + b"1" + b"}" * _SIXTH),
    "numbers": lambda: _with_spec(_filled(b"1")),
    "empty lists": lambda: _with_spec(_filled(b"[]")),
    "many small members": lambda: _with_spec(_filled(b'"":1', b"{", b"}")),
    "brackets in strings": lambda: _with_spec(_filled(b'"}{[\\"],"')),
    "backslashes": lambda: _with_spec(b'"%b"' % (b"\\\\" * _HALF)),
    "deep lists before the metadata": lambda: b'{"spec":%b,%b}' % (_filled(b"[" * 1100 + b"]" * 1100), _META),
    "metadata at the end": lambda: b'{"spec":%b,%b}' % (_filled(b"{}"), _META),
    "metadata repeated": lambda: b"{%b}" % b",".join([_META] * (SIZE // (len(_META) + 1))),
    "managed fields": lambda: b'{%b,"managedFields":[%b]}}' % (_META[:-1], _filled(b'"f:a":{}', b"{", b"}")),
    "140,000 labels": lambda: (
        b'{%b,"labels":{%b}}}' % (_META[:-1], b",".join(b'"%d":""' % at for at in range(140_000)))
    ),
}


class _Body:
    """A response whose body is passed to the reader directly."""

    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in list[bytes]():
            yield chunk

    async def close(self) -> None:
        pass


def _longest_step(body: bytes, options: ListOptions, *, initial: bool) -> float:
    reader = ResponseReader(_Body(), Send(options, initial=initial), RecordDecoder(), ReflectorOptions())
    longest = 0.0
    for at in range(0, len(body), CHUNK):
        begun = thread_time()
        for conclusion in reader.parse(body[at : at + CHUNK], initial=initial):
            longest = max(longest, thread_time() - begun)
            if isinstance(conclusion, Failed):
                raise conclusion.error
            begun = thread_time()
        longest = max(longest, thread_time() - begun)
    return longest * 1000


async def measure(url: str, name: str) -> Figures:
    """Measure the longest steps of one shape."""
    raw = SHAPES[name]()
    event = b'{"type":"ADDED","object":%b}\n' % raw
    page = b'{"kind":"List","metadata":{"resourceVersion":"9"},"items":[%b]}' % raw
    responses = {
        "watch_step_ms": (event, ListOptions(watch=True), False),
        "stream_step_ms": (event, ListOptions(watch=True, send_initial_events=True), True),
        "list_step_ms": (page, ListOptions(), True),
    }
    return {
        figure: min(_longest_step(body, options, initial=initial) for _ in range(_REPETITIONS))
        for figure, (body, options, initial) in responses.items()
    }


QUESTION = Question(
    "heavy_objects",
    "How long does reading one object of 1.5 MiB block the event loop?",
    {name: partial(measure, name=name) for name in SHAPES},
    offer=Offer(pods=1, events=1),
    requirements=[
        Requirement(f"{name}: {response}, ms", name, figure, _LIMITS.get(name, 10.0))
        for name in SHAPES
        for response, figure in (("watch", "watch_step_ms"), ("stream", "stream_step_ms"), ("list", "list_step_ms"))
    ],
    rounds=1,
    seconds=90.0,
    notes=["Watch, streaming list and list, with the default storage tier, in chunks of 256 KiB."],
)

if __name__ == "__main__":
    run(QUESTION)
