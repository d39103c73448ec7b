"""Listing a collection once, page by page."""

from __future__ import annotations

import json
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import ApiError, DecodeError, Expired, TransportError, UsageError
from aioinformer.reflector.pager import ListPager
from tests.support.collection import PODS, Response, cut

if TYPE_CHECKING:
    from aioinformer.reflector.options import ListOptions


class Pages:
    """Serves pods in pages; some requests fail.

    Attributes:
        failures: number of the request -> status, or an error that breaks the response off.
    """

    resource = PODS

    def __init__(self, count: int) -> None:
        self.count = count
        self.requests: list[ListOptions] = []
        self.responses: list[Response] = []
        self.failures: dict[int, int | BaseException | bytes | None] = {}

    async def request(self, options: ListOptions) -> Response:
        self.requests.append(copy(options))
        failure = self.failures.get(len(self.requests), 200)
        response = Response(failure if isinstance(failure, int) else 200)
        self.responses.append(response)
        first = int(options.continue_token or 0)
        last = min(self.count, first + options.limit) if options.limit else self.count
        items = [{"metadata": {"name": f"p{number}", "resourceVersion": "1"}} for number in range(first, last)]
        metadata = {"resourceVersion": str(100 + len(self.requests))}
        if last < self.count:
            metadata["continue"] = str(last)
        document: dict[str, Any] = {"kind": "PodList", "metadata": metadata, "items": items}
        if response.status != 200:
            reason = "Expired" if response.status == 410 else "No"
            document = {"kind": "Status", "code": response.status, "reason": reason}
        data = failure if isinstance(failure, bytes) else json.dumps(document).encode()
        response.feed(data if isinstance(failure, (int, bytes)) else data[:-60])
        if failure is not None:
            response.end(failure if isinstance(failure, BaseException) else None)
        return response


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


async def listed(pager: ListPager[Any]) -> list[str]:
    return [pod.metadata.name for pod in await pager.list()]


@pytest.mark.conformance("PG-01", "PG-02")
@pytest.mark.parametrize(("count", "pages"), [(0, 1), (1, 1), (10, 1), (11, 2), (25, 3)])
async def test_all_pages_are_listed(count: int, pages: int) -> None:
    server = Pages(count)
    pager: ListPager[Any] = ListPager(server, page_size=10)
    assert await listed(pager) == names(count)
    assert pager.pages == len(server.requests) == pages
    assert pager.resource_version == "101"
    assert all(response.closed for response in server.responses)


@pytest.mark.conformance("PG-02")
async def test_later_pages_are_requested_by_token_alone() -> None:
    server = Pages(25)
    await ListPager(server, page_size=10, resource_version="7", resource_version_match="Exact").list()
    asked = [(each.resource_version, each.resource_version_match, each.continue_token) for each in server.requests]
    assert asked == [("7", "Exact", ""), ("", "", "10"), ("", "", "20")]
    assert {each.limit for each in server.requests} == {10}


@pytest.mark.conformance("PG-01")
async def test_default_page_has_500_objects() -> None:
    server = Pages(3)
    await ListPager(server).list()
    await ListPager(server, page_size=0).list()
    assert [each.limit for each in server.requests] == [500, 0]


@pytest.mark.conformance("PG-03")
async def test_expired_token_leads_to_a_full_list() -> None:
    server = Pages(25)
    server.failures[2] = 410
    pager: ListPager[Any] = ListPager(server, page_size=10, resource_version="7")
    assert await listed(pager) == names(25)
    again = server.requests[-1]
    assert (again.limit, again.continue_token, again.resource_version) == (0, "", "7")
    assert pager.resource_version == "103"


@pytest.mark.conformance("PG-03")
async def test_expired_version_of_the_first_page_raises() -> None:
    server = Pages(25)
    server.failures[1] = 410
    with pytest.raises(Expired):
        await ListPager(server, page_size=10).list()
    assert len(server.requests) == 1


@pytest.mark.conformance("PG-04")
async def test_iteration_raises_when_the_token_expires() -> None:
    server = Pages(25)
    server.failures[2] = 410
    async with aclosing(ListPager(server, page_size=10).each()) as pods:
        seen = [(await anext(pods)).metadata.name for _ in range(10)]
        with pytest.raises(Expired):
            await anext(pods)
    assert seen == names(10)


@pytest.mark.conformance("PG-04")
async def test_stopped_iteration_closes_the_connection() -> None:
    server = Pages(25)
    async with aclosing(ListPager(server, page_size=10).each()) as pods:
        async for pod in pods:
            if pod.metadata.name == "p3":
                break
    assert len(server.requests) == 1
    assert server.responses[0].closed


@pytest.mark.parametrize(
    ("failure", "error"),
    [(403, ApiError), (500, ApiError), (cut(), TransportError), (None, TransportError), (b"<html>", DecodeError)],
    ids=["403", "500", "cut", "silence", "garbage"],
)
async def test_errors_are_raised_and_responses_closed(
    failure: int | BaseException | bytes | None, error: type[Exception]
) -> None:
    server = Pages(25)
    server.failures[2] = failure
    with pytest.raises(error):
        await ListPager(server, page_size=10).list()
    assert all(response.closed for response in server.responses)


async def test_undecodable_object_raises_with_its_key() -> None:
    server = Pages(1)
    bad = {"metadata": {"name": "x", "resourceVersion": 7}}
    server.failures[1] = json.dumps({"metadata": {"resourceVersion": "1"}, "items": [bad]}).encode()
    with pytest.raises(DecodeError) as caught:
        await ListPager(server).list()
    assert caught.value.key == "x"


def test_negative_page_size_is_refused() -> None:
    with pytest.raises(UsageError, match="page_size=-1"):
        ListPager(Pages(1), page_size=-1)
