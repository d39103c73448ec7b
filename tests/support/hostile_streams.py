"""Informers of servers that send damaged lists and watches."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import AioinformerError
from tests.support.collection import Collection, Response, cut, line
from tests.support.virtual_time import in_virtual_time, settled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.informer import QueueName
    from aioinformer.reflector import ListOptions


#: Virtual seconds within which an informer must reach the state of a correct server: a few of the longest delays.
_PATIENCE = 400.0


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
