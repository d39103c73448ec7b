"""Which requests are repeated, when, and what is raised otherwise; edits that meet conflicts for long."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from aioinformer import ApiError, Client, Conflict
from aioinformer.errors import TooManyRequests, TransportError, WriteOutcomeUnknown
from tests.support.scripted_transport import OBJECT, Answer, Scripted, refusal, unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.scripted_transport import Step

    Call = Callable[[Client], Awaitable[Any]]
    from aioinformer.transport import HttpRequest


async def read(client: Client) -> Any:
    return await client.core.v1.configmaps.get("shop/a")


async def create(client: Client) -> Any:
    return await client.core.v1.configmaps.create(OBJECT)


async def replace(client: Client) -> Any:
    return await client.core.v1.configmaps.replace(OBJECT)


async def patch(client: Client) -> Any:
    return await client.core.v1.configmaps.patch("shop/a", {"metadata": {"resourceVersion": "7"}})


async def delete(client: Client) -> Any:
    return await client.core.v1.configmaps.delete("shop/a")


async def dry_create(client: Client) -> Any:
    return await client.core.v1.configmaps.create(OBJECT, dry_run=True)


async def first_page(client: Client) -> Any:
    return await client.core.v1.namespaces.list()


READS = [read, dry_create]
WRITES = [create, replace, patch, delete]
CUT = unreachable(unsent=False)
PAGE = b'{"kind":"NamespaceList","metadata":{"resourceVersion":"3"},"items":[]}'

each_call = pytest.mark.parametrize("call", [*READS, *WRITES], ids=lambda call: call.__name__)
each_read = pytest.mark.parametrize("call", READS, ids=lambda call: call.__name__)
each_write = pytest.mark.parametrize("call", WRITES, ids=lambda call: call.__name__)


@each_call
@pytest.mark.parametrize(
    "refused",
    [
        lambda: unreachable(),
        lambda: refusal(429, "TooManyRequests", after=1),
        lambda: refusal(503, "ServiceUnavailable", after=1),
        lambda: refusal(500, "InternalError", "Internal error occurred: server is starting", retryAfterSeconds=1),
    ],
    ids=["no connection", "429", "503", "starting"],
)
async def test_unprocessed_request_is_repeated(call: Call, refused: Callable[[], Step]) -> None:
    transport = Scripted(refused(), refused())
    await call(Client(transport))
    assert len(transport.requests) == 3
    assert transport.requests[0] == transport.requests[2]


async def test_retry_after_is_the_least_pause() -> None:
    transport = Scripted(refusal(429, after=7), refusal(429, after=3))
    await create(Client(transport))
    first, second, third = transport.times
    assert 7 <= second - first < 8
    assert 3 <= third - second < 4


async def test_pauses_without_retry_after_grow() -> None:
    transport = Scripted(*(unreachable() for _ in range(8)))
    await create(Client(transport))
    pauses = [later - earlier for earlier, later in zip(transport.times, transport.times[1:], strict=False)]
    assert 0.1 <= pauses[0] <= 0.15
    assert 2 <= pauses[-1] <= 3


@each_read
async def test_read_is_repeated_after_a_cut(call: Call) -> None:
    transport = Scripted(CUT, Answer(200, b'{"kind":', CUT), refusal(500, "ServerTimeout", after=1))
    await call(Client(transport))
    assert len(transport.requests) == 4


async def test_page_is_repeated_after_a_cut() -> None:
    transport = Scripted(Answer(200, PAGE[:40], CUT), refusal(429, after=1), Answer(200, PAGE))
    page = await first_page(Client(transport))
    assert (page.resource_version, len(transport.requests)) == ("3", 3)


@each_write
@pytest.mark.parametrize("answer", [CUT, Answer(200, b'{"kind":', CUT)], ids=["head", "body"])
async def test_write_with_a_lost_answer_is_not_repeated(call: Call, answer: Step) -> None:
    transport = Scripted(answer)
    with pytest.raises(WriteOutcomeUnknown, match="may have processed") as caught:
        await call(Client(transport))
    assert len(transport.requests) == 1
    assert caught.value.__cause__ is CUT


@each_write
async def test_write_that_may_be_stored_is_not_repeated(call: Call) -> None:
    transport = Scripted(refusal(500, "ServerTimeout", after=1))
    with pytest.raises(ApiError, match="ServerTimeout"):
        await call(Client(transport))
    assert len(transport.requests) == 1


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_write_that_a_gateway_has_passed_on_is_not_repeated(status: int) -> None:
    transport = Scripted(refusal(status, after=1))
    with pytest.raises(ApiError) as caught:
        await create(Client(transport))
    assert (caught.value.status, len(transport.requests)) == (status, 1)


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_read_is_repeated_after_the_time_that_a_gateway_names(status: int) -> None:
    transport = Scripted(refusal(status, after=1))
    await read(Client(transport))
    assert len(transport.requests) == 2


@each_call
async def test_refusal_without_retry_after_is_final(call: Call) -> None:
    transport = Scripted(refusal(429, "TooManyRequests", "Cannot evict pod"))
    with pytest.raises(TooManyRequests):
        await call(Client(transport))
    assert len(transport.requests) == 1


@each_call
async def test_lasting_failure_is_raised_at_once(call: Call) -> None:
    transport = Scripted(unreachable(transient=False))
    with pytest.raises(TransportError) as caught:
        await call(Client(transport))
    assert type(caught.value) is TransportError
    assert len(transport.requests) == 1


async def test_unreachable_server_is_waited_for_until_the_timeout() -> None:
    transport = Scripted(*(unreachable() for _ in range(100)))
    with pytest.raises(TransportError, match="no connection") as caught:
        await create(Client(transport, timeout=20))
    assert type(caught.value) is TransportError
    assert 15 < transport.times[-1] - transport.times[0] <= 20


async def test_wait_beyond_the_timeout_is_not_begun() -> None:
    transport = Scripted(refusal(429, after=31))
    with pytest.raises(TooManyRequests) as caught:
        await create(Client(transport))
    assert (len(transport.requests), caught.value.retry_after) == (1, 31)
    assert asyncio.get_running_loop().time() == transport.times[0]


@each_read
async def test_silent_server_ends_a_read_at_the_timeout(call: Call) -> None:
    with pytest.raises(TransportError, match="no answer within 5 s") as caught:
        await call(Client(Scripted(None), timeout=5))
    assert type(caught.value) is TransportError


@each_write
async def test_silent_server_leaves_the_outcome_of_a_write_unknown(call: Call) -> None:
    with pytest.raises(WriteOutcomeUnknown, match="no answer within 5 s"):
        await call(Client(Scripted(None), timeout=5))


@each_write
async def test_refusal_whose_reason_is_cut_is_a_refusal(call: Call) -> None:
    with pytest.raises(ApiError, match="409"):
        await call(Client(Scripted(Answer(409, b'{"kind":', CUT))))


async def test_timeout_of_a_transport_is_not_taken_for_the_clients_own() -> None:
    with pytest.raises(TimeoutError, match="of the transport"):
        await read(Client(Scripted(TimeoutError("of the transport"))))


@each_call
async def test_without_retry_the_first_failure_is_raised(call: Call) -> None:
    transport = Scripted(refusal(429, after=1))
    with pytest.raises(TooManyRequests):
        await call(Client(transport, retry=False))
    assert len(transport.requests) == 1


class Slow(Scripted):
    """Answers after some seconds."""

    def __init__(self, *seconds: float) -> None:
        super().__init__()
        self._seconds = list(seconds)

    async def request(self, request: Any) -> Answer:
        await asyncio.sleep(self._seconds.pop(0))
        return await super().request(request)


@pytest.mark.parametrize("seconds", [(0.9, 0.9), (5.0, 0.0)], ids=["slow write", "slow read"])
async def test_edit_of_a_name_keeps_its_timeout(seconds: tuple[float, ...]) -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    with pytest.raises(TransportError, match="no answer within"):
        await Client(Slow(*seconds)).core.v1.configmaps.edit(
            "shop/a", lambda obj: obj.evolve({"data": {"x": "1"}}), timeout=1.0
        )
    assert clock() - begun < 1.01


async def test_infinite_timeout_is_none() -> None:
    transport = Scripted()
    await Client(transport, timeout=float("inf")).core.v1.configmaps.get("shop/a")
    await Client(transport).core.v1.configmaps.get("shop/a", timeout=float("inf"))
    assert [request.total_timeout for request in transport.requests] == [None, None]


METADATA = {**cast("dict[str, str]", OBJECT["metadata"]), "creationTimestamp": "2024-01-01T00:00:00Z"}
OLD: Any = {**OBJECT, "metadata": METADATA, "data": {"x": "0"}}


class Contended(Scripted):
    """Refuses each patch, since the object has changed meanwhile, and takes `seconds` for each read."""

    seconds = 0.0

    async def request(self, request: HttpRequest) -> Answer:
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
