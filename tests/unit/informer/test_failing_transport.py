"""The informer continues after a foreign transport raises any exception anywhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import Phase
from tests.support.collection import Collection, Response
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.reflector.options import ListOptions

pytestmark = pytest.mark.usefixtures("queue")

FAILURES = [asyncio.CancelledError(), OSError("broken"), ValueError("odd"), MemoryError()]


def named(error: BaseException) -> str:
    return type(error).__name__


class Unclosable(Response):
    """A response that cannot be closed."""

    error: BaseException

    async def close(self) -> None:
        await super().close()
        raise self.error


class Faulty(Collection):
    """A transport whose responses are of a failing class."""

    error: BaseException

    async def request(self, options: ListOptions) -> Response:
        response = await super().request(options)
        made = Unclosable.__new__(Unclosable)
        made.__dict__ = response.__dict__  # shares the chunks of the other response
        made.error = self.error
        return made


async def assert_follows(pods: Collection, informer: SharedIndexInformer[Any]) -> None:
    """Assert that the informer receives further changes."""
    await asyncio.sleep(60)
    assert informer.state.phase is Phase.WATCHING
    pods.put("new")
    await settled()
    assert "default/new" in informer.get_store().list_keys()


@pytest.mark.parametrize("error", FAILURES, ids=named)
@pytest.mark.parametrize("streaming", [False, True])
async def test_raising_request_is_retried(error: BaseException, streaming: bool) -> None:
    pods = Collection("a")
    pods.refusals.append(error)
    informer = SharedIndexInformer(pods, options=ReflectorOptions(streaming_list=streaming))
    async with informer:
        await assert_follows(pods, informer)


@pytest.mark.parametrize("error", FAILURES, ids=named)
async def test_raising_watch_is_reopened(error: BaseException) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(5)
        pods.responses[-1].end(error)
        await assert_follows(pods, informer)
    assert recorder.received == ["add! a 1", "add new 2"]


@pytest.mark.parametrize("error", FAILURES, ids=named)
async def test_unclosable_response_is_abandoned(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    pods = Faulty("a")
    pods.error = error
    informer = SharedIndexInformer(pods, options=ReflectorOptions(streaming_list=False))
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(5)
        pods.end_watches()
        await assert_follows(pods, informer)
    assert "a response could not be closed" in caplog.text


async def test_error_response_with_raising_body_is_a_failure() -> None:
    pods = Collection("a")
    refusal = Response(503)
    refusal.end(asyncio.CancelledError())
    pods.refusals.append(refusal)
    informer = SharedIndexInformer(pods)
    async with informer:
        await assert_follows(pods, informer)
