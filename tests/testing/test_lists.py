from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.testing.api import CONFIGMAPS, DEFINITION, DEFINITIONS, MERGE, NOT_OLDER, WIDGETS, Api, names

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


@pytest.fixture
async def five(api: Api) -> str:
    for index in range(5):
        created = await api.create(f"c{index}", labels={"odd": str(index % 2)})
    version: str = created["metadata"]["resourceVersion"]
    return version


@pytest.mark.conformance("FK-03")
async def test_pages_together_are_the_list_of_the_first_page(api: Api, five: str) -> None:
    _, first = await api("GET", f"{CONFIGMAPS}?limit=2")
    await api("DELETE", f"{CONFIGMAPS}/c3")
    await api.create("c25")
    _, second = await api("GET", f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    _, third = await api("GET", f"{CONFIGMAPS}?limit=2&continue={second['metadata']['continue']}")
    assert [names(page) for page in (first, second, third)] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {five}
    assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [3, 1, None]


async def test_version_zero_ignores_the_limit(api: Api, five: str) -> None:
    _, listed = await api("GET", f"{CONFIGMAPS}?limit=2&resourceVersion=0")
    assert len(listed["items"]) == 5
    assert "continue" not in listed["metadata"]


async def test_an_exact_version_shows_the_past(api: Api, five: str) -> None:
    await api("PATCH", f"{CONFIGMAPS}/c0", {"data": {"a": "b"}}, content_type=MERGE)
    await api("DELETE", f"{CONFIGMAPS}/c1")
    _, listed = await api("GET", f"{CONFIGMAPS}?resourceVersion={five}&resourceVersionMatch=Exact")
    assert names(listed) == ["c0", "c1", "c2", "c3", "c4"]
    assert "data" not in listed["items"][0]


async def test_a_version_with_a_limit_and_no_match_is_exact(api: Api, five: str) -> None:
    await api("DELETE", f"{CONFIGMAPS}/c0")
    _, listed = await api("GET", f"{CONFIGMAPS}?resourceVersion={five}&limit=10")
    assert listed["metadata"]["resourceVersion"] == five
    assert "c0" in names(listed)


async def test_an_expired_token_comes_with_one_that_goes_on_in_the_present(
    api: Api, five: str, server: ApiServer
) -> None:
    _, first = await api("GET", f"{CONFIGMAPS}?limit=2")
    await api.create("c25")
    server.compact()
    status, expired = await api("GET", f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    assert (status, expired["reason"]) == (410, "Expired")
    assert expired["message"].startswith("The provided continue parameter is too old")
    _, rest = await api("GET", f"{CONFIGMAPS}?continue={expired['metadata']['continue']}")
    assert names(rest) == ["c2", "c25", "c3", "c4"]


async def test_a_version_in_the_future_is_too_large(api: Api, five: str) -> None:
    status, body = await api("GET", f"{CONFIGMAPS}?resourceVersion=999999&{NOT_OLDER}")
    assert status == 504
    assert body["message"] == f"Timeout: Too large resource version: 999999, current: {five}"
    assert body["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("resourceVersion=abc", 400, 'invalid resource version: resourceVersion: Invalid value: "abc"'),
        ("limit=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("continue=abc", 400, "invalid continue token: continue key is not valid: invalid character 'i'"),
        ("resourceVersionMatch=Exact", 422, "is forbidden unless resourceVersion is provided"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, 'forbidden for resourceVersion "0"'),
        ("resourceVersion=1&resourceVersionMatch=Foo", 422, 'supported values: "Exact", "NotOlderThan", ""'),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("fieldSelector=spec.foo%3Dx", 400, '"spec.foo" is not a known field selector: only "metadata.name"'),
        ("labelSelector=a%20b", 400, ""),
    ],
)
async def test_parameters_that_make_no_sense_are_refused_in_the_words_of_the_api(
    api: Api, query: str, code: int, message: str
) -> None:
    status, body = await api("GET", f"{CONFIGMAPS}?{query}")
    assert (status, body["kind"], body["code"]) == (code, "Status", code)
    assert message in body["message"]


async def test_selectors_narrow_a_list_and_leave_the_rest_uncounted(api: Api, five: str) -> None:
    _, odd = await api("GET", f"{CONFIGMAPS}?labelSelector=odd%3D1")
    _, page = await api("GET", f"{CONFIGMAPS}?labelSelector=odd%3D0&limit=2")
    _, named = await api("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Dc3")
    assert (names(odd), names(page), names(named)) == (["c1", "c3"], ["c0", "c2"], ["c3"])
    assert "remainingItemCount" not in page["metadata"]


async def test_built_in_lists_begin_with_their_kind_and_have_items_without_one(api: Api, five: str) -> None:
    async with api.session.get(CONFIGMAPS) as response:
        text = await response.text()
    assert text.startswith('{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":')
    assert '"items":[{"metadata":{"name":"c0","namespace":"default","uid":' in text


async def test_custom_lists_are_sorted_and_have_whole_items(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    async with api.session.get(WIDGETS) as response:
        text = await response.text()
    head = '{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":'
    assert text.startswith(head)
    assert '"kind":"WidgetList","metadata":{"continue":"","resourceVersion":' in text


async def test_metadata_alone_is_a_matter_of_accept(api: Api, five: str) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    _, listed = await api("GET", f"{CONFIGMAPS}?limit=1", accept=accept)
    assert (listed["kind"], listed["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")
    assert listed["metadata"]["remainingItemCount"] == 4


async def test_tables_are_a_matter_of_accept(api: Api, five: str) -> None:
    _, table = await api("GET", CONFIGMAPS, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][4]["cells"][0] == "c4"


async def test_large_lists_are_compressed_for_who_accepts_it(api: Api, server: ApiServer) -> None:
    for index in range(3):
        server.create("configmaps", {"metadata": {"name": f"big{index}"}, "data": {"x": "y" * 100_000}})
    async with api.session.get(CONFIGMAPS, headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert len((await response.json())["items"]) == 3
