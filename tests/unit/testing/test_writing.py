"""Writes, and the `clock` that sets written times; delays use the time of the event loop."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer, StatusError
from tests.support.api import CONFIGMAPS, DEFINITION, Api

NOON = datetime(2001, 2, 3, 12, tzinfo=UTC).timestamp()


@pytest.mark.conformance("FK-02")
async def test_created_object_has_server_metadata(api: Api, server: ApiServer) -> None:
    created = await api.create("a", labels={"k": "v"})
    metadata = created["metadata"]
    assert list(metadata)[:6] == ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels"]
    assert metadata["resourceVersion"] == server.resource_version


async def test_generated_name_has_five_random_characters(api: Api) -> None:
    _, created = await api("POST", CONFIGMAPS, {"metadata": {"generateName": "gen-"}})
    assert re.fullmatch("gen-[bcdfghjklmnpqrstvwxz2456789]{5}", created["metadata"]["name"])


async def test_generated_names_differ(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.testing.state.strategies._SUFFIX_ALPHABET", "bc")  # 32 names
    answers = [await api("POST", CONFIGMAPS, {"metadata": {"generateName": "gen-"}}) for _ in range(12)]
    assert [status for status, _ in answers] == [201] * 12


async def test_unchanged_write_keeps_the_version(api: Api, server: ApiServer) -> None:
    first = await api.create("a")
    await api("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a"}})
    await api("POST", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "b"}})
    assert server.resource_version == first["metadata"]["resourceVersion"]


async def test_status_subresource_separates_spec_and_status(server: ApiServer) -> None:
    spec = {"replicas": 1, "selector": {}, "template": {}}
    made = server.create("deployments", {"metadata": {"name": "d"}, "spec": spec, "status": {"replicas": 9}})
    by_status = server.patch(
        "deployments", "d", {"spec": {"replicas": 5}, "status": {"replicas": 1}}, subresource="status"
    )
    by_spec = server.patch("deployments", "d", {"spec": {"replicas": 5}, "status": {"replicas": 7}})
    assert made["status"] == {}
    assert (by_status["spec"]["replicas"], by_status["status"], by_status["metadata"]["generation"]) == (
        1,
        {"replicas": 1},
        1,
    )
    assert (by_spec["spec"]["replicas"], by_spec["status"], by_spec["metadata"]["generation"]) == (
        5,
        {"replicas": 1},
        2,
    )


def is_gone(obj: Any) -> bool:
    return obj is None


FINALIZED = {"name": "a", "namespace": "team", "finalizers": ["example.com/f"]}


async def test_namespace_goes_with_the_last_finalizer_in_it(server: ApiServer) -> None:
    server.create("namespaces", {"metadata": {"name": "team"}})
    server.create("configmaps", {"metadata": FINALIZED})
    server.create("configmaps", {"metadata": {"name": "b", "namespace": "team"}})
    server.delete("namespaces", "team")
    await server.wait_for("configmaps", "team/b", is_gone)
    assert server.get("namespaces", "team")["status"]["phase"] == "Terminating"
    server.patch("configmaps", "a", {"metadata": {"finalizers": None}}, namespace="team")
    await server.wait_for("namespaces", "team", is_gone)


async def test_finalizer_of_a_namespace_holds_it_back(server: ApiServer) -> None:
    server.create("namespaces", {"metadata": {"name": "team", "finalizers": ["example.com/f"]}})
    server.create("configmaps", {"metadata": {"name": "b", "namespace": "team"}})
    server.delete("namespaces", "team")
    await server.wait_for("configmaps", "team/b", is_gone)
    assert server.get("namespaces", "team")["status"]["phase"] == "Terminating"
    server.patch("namespaces", "team", {"metadata": {"finalizers": None}})
    await server.wait_for("namespaces", "team", is_gone)


async def test_definition_goes_with_the_last_finalizer_of_its_objects(server: ApiServer) -> None:
    server.create("customresourcedefinitions", DEFINITION)
    server.create("widgets", {"metadata": {"name": "a", "finalizers": ["example.com/f"]}})
    server.delete("customresourcedefinitions", "widgets.example.com")
    await server.wait_for("widgets", "default/a", lambda obj: "deletionTimestamp" in obj["metadata"])
    server.patch("widgets", "a", {"metadata": {"finalizers": None}})
    await server.wait_for("customresourcedefinitions", "widgets.example.com", is_gone)


async def test_namespace_deletion_deletes_its_objects(api: Api, server: ApiServer) -> None:
    server.create("namespaces", {"metadata": {"name": "team"}})
    server.create("configmaps", {"metadata": {"name": "a", "namespace": "team"}})
    async with api.session.get("/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dteam") as watch:
        assert b'"ADDED"' in await watch.content.readline()
        server.delete("namespaces", "team")
        assert b'"Terminating"' in await watch.content.readline()
        assert b'"DELETED"' in await watch.content.readline()
    assert server.list("configmaps", "team") == []


@pytest.mark.conformance("FK-02")
async def test_python_and_http_follow_the_same_rules(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    with pytest.raises(StatusError, match='configmaps "a" already exists'):
        server.create("configmaps", {"metadata": {"name": "a"}})


async def test_written_times_come_from_the_given_clock() -> None:
    now = NOON
    async with ApiServer(clock=lambda: now) as server, aiohttp.ClientSession(server.url) as session:
        created = server.create("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
        now += 60
        deleted = server.delete("configmaps", "a")
        now += 3600
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with session.get(f"{CONFIGMAPS}/a", headers=table) as response:
            age = (await response.json())["rows"][0]["cells"][-1]
            date = response.headers["Date"]
        logged = server.requests[-1].at
    assert created["metadata"]["creationTimestamp"] == "2001-02-03T12:00:00Z"
    assert {entry["time"] for entry in created["metadata"]["managedFields"]} == {"2001-02-03T12:00:00Z"}
    assert deleted["metadata"]["deletionTimestamp"] == "2001-02-03T12:01:00Z"
    assert (age, date, logged) == ("61m", "Sat, 03 Feb 2001 13:01:00 GMT", now)


async def test_bookmarks_do_not_depend_on_the_given_clock() -> None:
    async with (
        ApiServer(clock=lambda: NOON, bookmark_interval=0.01, version_wait=0.01) as server,
        aiohttp.ClientSession(server.url) as session,
        asyncio.timeout(50),
    ):
        await server.fault("throttle", duration=0.01)
        while (await session.get(CONFIGMAPS)).status == 429:
            pass
        assert (await session.get(f"{CONFIGMAPS}?resourceVersion=999999")).status == 504
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={server.resource_version}"
        async with session.get(f"{CONFIGMAPS}?{query}") as response:
            assert b'"BOOKMARK"' in await response.content.readline()
