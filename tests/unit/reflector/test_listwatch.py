"""Requests for lists: of a ListWatch, of a pager, and of shards."""

from __future__ import annotations

import json
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ListWatch, Resource
from aioinformer.errors import ApiError, DecodeError, Expired, OptionError, SelectorError, TransportError, UsageError
from aioinformer.reflector import (
    HASHES,
    NAMESPACE,
    ListOptions,
    ListPager,
    ShardRange,
    ShardSelector,
    parse_shard_selector,
    shard_hash,
    shard_selectors,
)
from tests.support.collection import PODS, Response, cut

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest

DEPLOYMENTS: Resource[Any] = Resource("apps", "v1", "deployments", "Deployment")
NODES: Resource[Any] = Resource("", "v1", "nodes", "Node", namespaced=False)


class Recorder:
    """A transport that records requests, and never responds."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def request(self, request: HttpRequest) -> NoReturn:
        self.requests.append(request)
        raise ConnectionError

    async def close(self) -> None:
        """Nothing to close."""


async def asked(options: ListOptions, resource: Resource[Any] = DEPLOYMENTS, **selection: Any) -> HttpRequest:
    transport = Recorder()
    with pytest.raises(ConnectionError):
        await ListWatch(transport, resource, **selection).request(options)
    return transport.requests[0]


async def test_list_requests_the_collection_with_its_options() -> None:
    request = await asked(ListOptions(limit=5))
    assert (request.path, dict(request.query)) == ("/apis/apps/v1/deployments", {"limit": "5"})


@pytest.mark.conformance("LW-04")
async def test_selectors_are_sent_with_every_request() -> None:
    request = await asked(ListOptions(watch=True), label_selector="app=x", field_selector="metadata.name=a")
    assert dict(request.query) == {"labelSelector": "app=x", "fieldSelector": "metadata.name=a", "watch": "true"}


@pytest.mark.conformance("LW-04")
async def test_tweak_overrides_options() -> None:
    def tweak(options: ListOptions) -> None:
        options.label_selector += ",tier=y"
        options.limit = 1

    request = await asked(ListOptions(limit=5), label_selector="app=x", tweak=tweak)
    assert dict(request.query) == {"labelSelector": "app=x,tier=y", "limit": "1"}


@pytest.mark.conformance("FAC-13")
@pytest.mark.parametrize(("watch", "kind"), [(False, "PartialObjectMetadataList"), (True, "PartialObjectMetadata")])
async def test_metadata_only_is_requested_by_accept_header(watch: bool, kind: str) -> None:
    request = await asked(ListOptions(watch=watch), metadata_only=True)
    assert f"as={kind};" in request.headers["Accept"]


def test_namespace_of_a_cluster_scoped_resource_is_refused() -> None:
    with pytest.raises(UsageError, match="cluster-scoped"):
        ListWatch(Recorder(), NODES, "ns")


@pytest.mark.parametrize("selection", [{"label_selector": "a in b"}, {"field_selector": "a=b=c,,=="}])
def test_invalid_selector_is_refused_before_any_request(selection: dict[str, Any]) -> None:
    with pytest.raises(SelectorError):
        ListWatch(Recorder(), DEPLOYMENTS, **selection)


@pytest.mark.conformance("REF-03")
def test_str_names_resource_and_namespace() -> None:
    assert str(ListWatch(Recorder(), DEPLOYMENTS, "ns")) == "deployments.apps in namespace ns"
    assert str(ListWatch(Recorder(), NODES)) == "nodes"


# What a collection excludes.


def _pod(namespace: str = "shop", labels: Any = None, **members: Any) -> Any:
    return {"metadata": {"name": "a", "namespace": namespace, "uid": "u", "labels": labels}, **members}


@pytest.mark.parametrize(
    ("selection", "obj", "reason"),
    [
        ({}, _pod(), ""),
        ({"namespace": "shop"}, _pod(), ""),
        ({"namespace": "shop"}, _pod("other"), "it is not in namespace shop"),
        ({"label_selector": "app=x"}, _pod(labels={"app": "x"}), ""),
        ({"label_selector": "app=x"}, _pod(), "its labels do not match app=x"),
        ({"field_selector": "spec.nodeName=n"}, _pod(spec={"nodeName": "n"}), ""),
        ({"field_selector": "spec.nodeName=n"}, _pod(), "its fields do not match spec.nodeName=n"),
        ({"field_selector": "spec.nodeName!=n"}, _pod(spec={"nodeName": "n"}), "its fields do not match"),
        ({"field_selector": "metadata.name=b"}, _pod(), "its fields do not match"),
        # Only the server knows what it compares: the default of an absent boolean, or a field of another name.
        ({"field_selector": "spec.hostNetwork=true"}, _pod(), ""),
        ({"field_selector": "status.successful=1"}, _pod(), ""),
        ({"label_selector": "app=x", "tweak": print}, _pod(), ""),
    ],
)
def test_object_outside_of_the_collection_is_excluded(selection: Any, obj: Any, reason: str) -> None:
    found = ListWatch(Recorder(), PODS, **selection).excludes(obj)
    assert found.startswith(reason)
    assert bool(found) is bool(reason)


# Listing a collection once, page by page.


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
    pager: ListPager[Any] = ListPager(server, page_size=10, resource_version="7", resource_version_match="Exact")
    assert await listed(pager) == names(25)
    again = server.requests[-1]
    assert (again.limit, again.continue_token) == (0, "")
    assert (again.resource_version, again.resource_version_match) == ("7", "Exact")
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


# Shard selectors: ranges of the hash of a field.


HALF = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"


@pytest.mark.conformance("SHD-01")
@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_hash_is_64_bit_fnv_1a(value: str, expected: int) -> None:
    assert shard_hash(value) == expected


@pytest.mark.conformance("SHD-01")
def test_selector_syntax_is_that_of_the_api() -> None:
    first, second = shard_selectors(2)
    assert str(first) == HALF
    assert str(second) == "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    assert str(ShardSelector(first.ranges + second.ranges)) == f"{first} || {second}"


@pytest.mark.conformance("SHD-04")
@given(st.integers(1, 50), st.text(), st.text(), st.sampled_from(["object.metadata.uid", NAMESPACE]))
def test_every_object_is_in_exactly_one_shard(count: int, uid: str, namespace: str, field: str) -> None:
    shards = shard_selectors(count, field)
    assert sum(shard.matches(uid, namespace) for shard in shards) == 1


@given(st.lists(st.tuples(st.integers(0, HASHES - 1), st.integers(0, HASHES)), min_size=1, max_size=4))
def test_selector_round_trip(bounds: list[tuple[int, int]]) -> None:
    ranges = tuple(ShardRange(start, end) for start, end in bounds if start < end) or (ShardRange(0, HASHES),)
    assert parse_shard_selector(str(ShardSelector(ranges))) == ShardSelector(ranges)


@pytest.mark.parametrize(
    "text", ["", "x", HALF + " ||", HALF.replace("uid", "name"), HALF.replace("0x8", "0x0"), HALF.replace("'0x0", "'0")]
)
def test_invalid_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_shard_selector(text)


def test_invalid_range_or_shard_count_is_refused() -> None:
    with pytest.raises(OptionError, match="field of a shard"):
        ShardRange(0, 1, "object.metadata.name")
    with pytest.raises(OptionError, match="start < end"):
        ShardRange(1, 1)
    with pytest.raises(OptionError, match="count of shards"):
        shard_selectors(0)
    with pytest.raises(OptionError, match="at least one range"):
        ShardSelector(())
