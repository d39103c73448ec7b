"""How long does one object of 3 MiB hold the event loop while it is taken in?

Each subject is one shape of an object that a tenant may create to block others: deep nesting, tiny values, brackets
within texts. It is read in chunks, as a watch, a list and a streaming list deliver it; a step is what runs between two
turns of the event loop. The figure is the longest step, in CPU time, of the best of three repetitions.
"""

from __future__ import annotations

from functools import partial
from time import thread_time
from typing import TYPE_CHECKING

from harness import Offer, Question, Requirement, answer

from aioinformer.reflector.messages import Failed, Send
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.response_reader import AnswerReader
from aioinformer.reflector.watch_events import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from harness import Figures

SIZE = 3 << 20
CHUNK = 256 << 10
_META = b'"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}'
_REPETITIONS = 3


def _with_spec(spec: bytes) -> bytes:
    return b"{%b,%b}" % (_META, b'"spec":' + spec)


def _filled(unit: bytes, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening + b",".join([unit] * ((SIZE - 200) // (len(unit) + 1))) + closing


_HALF, _SIXTH = (SIZE - 200) // 2, (SIZE - 200) // 6

SHAPES: dict[str, Callable[[], bytes]] = {
    "one text": lambda: _with_spec(b'"%b"' % (b"x" * (SIZE - 200))),
    "nested 1,100 deep, often": lambda: _with_spec(_filled(b"[" * 1100 + b"]" * 1100)),
    "nested 500 deep, often": lambda: _with_spec(_filled(b"[" * 500 + b"]" * 500)),
    "lists in lists": lambda: _with_spec(b"[" * _HALF + b"]" * _HALF),
    "objects in objects": lambda: _with_spec(b'{"x":' * _SIXTH + b"1" + b"}" * _SIXTH),
    "numbers": lambda: _with_spec(_filled(b"1")),
    "empty lists": lambda: _with_spec(_filled(b"[]")),
    "tiny members": lambda: _with_spec(_filled(b'"":1', b"{", b"}")),
    "brackets in texts": lambda: _with_spec(_filled(b'"}{[\\"],"')),
    "backslashes": lambda: _with_spec(b'"%b"' % (b"\\\\" * _HALF)),
    "metadata behind the rest": lambda: b'{"spec":%b,%b}' % (_filled(b"{}"), _META),
    "metadata again and again": lambda: b"{%b}" % b",".join([_META] * (SIZE // (len(_META) + 1))),
    "managed fields": lambda: b'{%b,"managedFields":[%b]}}' % (_META[:-1], _filled(b'"f:a":{}', b"{", b"}")),
    "300,000 labels": lambda: (
        b'{%b,"labels":{%b}}}' % (_META[:-1], b",".join(b'"%d":""' % at for at in range(300_000)))
    ),
}


class _Body:
    """An answer whose body is fed by hand."""

    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in list[bytes]():
            yield chunk

    async def close(self) -> None:
        pass


def _longest_step(body: bytes, options: ListOptions, *, initial: bool) -> float:
    reader = AnswerReader(_Body(), Send(options, initial=initial), Intake(), ReflectorOptions())
    longest = 0.0
    for at in range(0, len(body), CHUNK):
        begun = thread_time()
        for said in reader.digest(body[at : at + CHUNK], initial=initial):
            longest = max(longest, thread_time() - begun)
            if isinstance(said, Failed):
                raise said.error
            begun = thread_time()
        longest = max(longest, thread_time() - begun)
    return longest * 1000


async def measure(url: str, name: str) -> Figures:
    """The longest steps of one shape."""
    raw = SHAPES[name]()
    event = b'{"type":"ADDED","object":%b}\n' % raw
    page = b'{"kind":"List","metadata":{"resourceVersion":"9"},"items":[%b]}' % raw
    ways = {
        "watch_step_ms": (event, ListOptions(watch=True), False),
        "stream_step_ms": (event, ListOptions(watch=True, send_initial_events=True), True),
        "list_step_ms": (page, ListOptions(), True),
    }
    return {
        figure: min(_longest_step(body, options, initial=initial) for _ in range(_REPETITIONS))
        for figure, (body, options, initial) in ways.items()
    }


QUESTION = Question(
    "heavy_objects",
    "How long does one object of 3 MiB hold the event loop while it is taken in?",
    {name: partial(measure, name=name) for name in SHAPES},
    offer=Offer(pods=1, events=1),
    requirements=[
        Requirement(f"{name}: {where}", name, figure, 10.0)
        for name in SHAPES
        for where, figure in (("watch", "watch_step_ms"), ("stream", "stream_step_ms"), ("list", "list_step_ms"))
    ],
    rounds=1,
    seconds=90.0,
    notes=["Watch, streaming list and list, by the default storage tier, in chunks of 256 KiB."],
)

if __name__ == "__main__":
    answer(QUESTION)
