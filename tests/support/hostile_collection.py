"""A collection of pods whose first responses come from the test; later ones are correct."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection, Response, cut
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from aioinformer.informer.pipeline import QueueName
    from aioinformer.reflector.options import ListOptions, ReflectorOptions

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


async def survives(pods: HostileCollection, options: ReflectorOptions, queue: QueueName = "delta") -> list[Exception]:
    """Assert that an informer survives all hostile responses and recovers; return the errors that it reported."""
    errors: list[Exception] = []
    informer: SharedIndexInformer[Any] = SharedIndexInformer(
        pods, options=options, queue=queue, watch_error_handler=errors.append
    )
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
