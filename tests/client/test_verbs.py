"""Each verb, on the API server in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import AlreadyExists, ApiNotFound, Conflict, Invalid, NotFound, UsageError
from aioinformer.client import Status

if TYPE_CHECKING:
    from aioinformer import Client


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def test_created_object_is_what_listers_return(client: Client) -> None:
    made = await client.core.v1.configmaps.create(config_map("a", x="1"))
    assert (made.kind, made.metadata.namespace, made.data) == ("ConfigMap", "shop", {"x": "1"})


async def test_get_by_name_by_key_and_by_object(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create(config_map("a"))
    assert await config_maps.get("a") == await config_maps.get("shop/a") == await config_maps.get(made) == made


async def test_absent_object_is_the_not_found_of_listers(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        await client.core.v1.configmaps.get("a")
    error = caught.value
    assert isinstance(error, ApiNotFound)
    assert (error.group_resource, error.name, error.status) == ("configmaps", "a", 404)


async def test_replace_of_an_old_version_is_a_conflict(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    old = await config_maps.create(config_map("a", x="1"))
    assert (await config_maps.replace({**old.to_dict(), "data": {"x": "2"}})).data == {"x": "2"}
    with pytest.raises(Conflict):
        await config_maps.replace(old)


async def test_second_create_says_that_the_object_exists(client: Client) -> None:
    await client.core.v1.configmaps.create(config_map("a"))
    with pytest.raises(AlreadyExists):
        await client.core.v1.configmaps.create(config_map("a"))


async def test_invalid_object_names_its_fields(client: Client) -> None:
    with pytest.raises(Invalid) as caught:
        await client.core.v1.configmaps.create(config_map("A"))
    (cause,) = caught.value.fields["metadata.name"]
    assert cause.reason == "FieldValueInvalid"


async def test_deletion_answers_with_a_status_or_the_object(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.create(config_map("a"))
    answer = await config_maps.delete("a")
    assert isinstance(answer, Status)
    assert answer.status == "Success"
    kept = await config_maps.create({"metadata": {"name": "b", "finalizers": ["example.com/keep"]}})
    deleted = await config_maps.delete(kept)
    assert not isinstance(deleted, Status)
    assert deleted.metadata.deletion_timestamp is not None


async def test_listing_reads_page_after_page(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    for name in "abcde":
        await config_maps.create(config_map(name))
    assert [each.metadata.name async for each in config_maps.list(page_size=2)] == list("abcde")
    assert [len(page) async for page in config_maps.list(page_size=2).pages()] == [2, 2, 1]
    assert [each.metadata.name for each in await config_maps.list(page_size=2, limit=3)] == list("abc")


async def test_namespace_is_required_for_one_object(client: Client) -> None:
    anywhere = client.with_options(namespace="").core.v1.configmaps
    with pytest.raises(UsageError, match="no namespace is given"):
        await anywhere.get("a")
