from __future__ import annotations

import re

import pytest

from aioinformer.testing import ApiServer, StatusError
from tests.testing.api import CONFIGMAPS, MERGE, Api, told


@pytest.mark.conformance("FK-02")
async def test_a_created_object_has_what_the_server_gives_it(api: Api, server: ApiServer) -> None:
    created = await api.create("a", labels={"k": "v"})
    metadata = created["metadata"]
    assert list(metadata)[:6] == ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels"]
    assert metadata["resourceVersion"] == server.resource_version


async def test_generated_names_get_five_characters(api: Api) -> None:
    _, created = await api("POST", CONFIGMAPS, {"metadata": {"generateName": "gen-"}})
    assert re.fullmatch("gen-[bcdfghjklmnpqrstvwxz2456789]{5}", created["metadata"]["name"])


@pytest.mark.conformance("FK-02")
async def test_a_name_is_taken_once(api: Api) -> None:
    await api.create("a")
    status, body = await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert (status, body["reason"], body["message"]) == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert body["details"] == {"name": "a", "kind": "configmaps"}


@pytest.mark.parametrize(("size", "code"), [(1_200_000, 201), (3_200_000, 413)])
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # of the client that the test uses
async def test_bodies_are_taken_up_to_three_mebibytes(api: Api, size: int, code: int) -> None:
    status, body = await api("POST", CONFIGMAPS, {"metadata": {"name": "a", "annotations": {"a": "x" * size}}})
    assert (status, body.get("reason")) == (code, "RequestEntityTooLarge" if code == 413 else None)


async def test_a_missing_namespace_is_named(api: Api) -> None:
    status, body = await api("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "a"}})
    assert (status, body["message"]) == (404, 'namespaces "nope" not found')


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"metadata": {"name": "A_b"}}, 422, 'Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist'),
        ({"metadata": {}}, 422, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": {"name": "a", "labels": {"a b": "c"}}}, 422, "name part must consist of"),
        ({"metadata": {"name": "a", "labels": {"a": 1}}}, 400, "cannot unmarshal number into Go struct field"),
        ({"metadata": {"name": "a", "finalizers": ["z"]}}, 422, "name is neither a standard finalizer name"),
        ({"metadata": {"name": "a", "namespace": "b"}}, 400, "does not match the namespace sent on the request"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, 500, "resourceVersion should not be set"),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, 'Pod in version "v1" cannot be handled as a ConfigMap'),
        ("{broken", 400, "invalid character 'b' looking for beginning of object key string"),
    ],
)
async def test_a_bad_object_is_refused_in_the_words_of_the_api(api: Api, body: object, code: int, message: str) -> None:
    status, answer = await api("POST", CONFIGMAPS, body)
    assert (status, answer["code"]) == (code, code)
    assert message in answer["message"]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_an_update_of_an_old_version_conflicts(api: Api) -> None:
    first = await api.create("a")
    await api("PATCH", f"{CONFIGMAPS}/a", {"data": {"x": "1"}}, content_type=MERGE)
    status, body = await api("PUT", f"{CONFIGMAPS}/a", {**first, "data": {"x": "2"}})
    assert (status, body["reason"]) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in body["message"]


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api, server: ApiServer) -> None:
    first = await api.create("a")
    _, same = await api("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a"}})
    assert same == first
    assert server.resource_version == first["metadata"]["resourceVersion"]


async def test_a_dry_run_changes_nothing(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    status, _ = await api("POST", f"{CONFIGMAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert (status, server.resource_version, server.list("configmaps")) == (201, version, [])


async def test_finalizers_hold_a_deletion_until_the_last_is_gone(api: Api) -> None:
    first = await api.create("a", finalizers=["example.com/a"])
    _, marked = await api("DELETE", f"{CONFIGMAPS}/a")
    assert "deletionTimestamp" in marked["metadata"]
    await api("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)
    status, _ = await api("GET", f"{CONFIGMAPS}/a")
    events = await api.events(f"resourceVersion={first['metadata']['resourceVersion']}")
    assert (status, told(events)) == (404, [("MODIFIED", "a"), ("DELETED", "a")])


async def test_a_deletion_may_insist_on_a_uid(api: Api) -> None:
    await api.create("a")
    status, body = await api("DELETE", f"{CONFIGMAPS}/a", {"preconditions": {"uid": "another"}})
    assert status == 409
    assert "The object might have been deleted and then recreated" in body["message"]


async def test_a_collection_is_deleted_by_selector(api: Api, server: ApiServer) -> None:
    await api.create("a", labels={"x": "1"})
    await api.create("b")
    await api("DELETE", f"{CONFIGMAPS}?labelSelector=x")
    assert [obj["metadata"]["name"] for obj in server.list("configmaps")] == ["b"]


async def test_status_and_spec_are_written_apart(server: ApiServer) -> None:
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


async def test_scale_shows_and_sets_replicas(api: Api, server: ApiServer) -> None:
    server.create("deployments", {"metadata": {"name": "d"}, "spec": {"replicas": 2}})
    path = "/apis/apps/v1/namespaces/default/deployments/d/scale"
    _, scale = await api("PATCH", path, {"spec": {"replicas": 5}}, content_type=MERGE)
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 5})
    assert server.get("deployments", "d")["spec"]["replicas"] == 5


async def test_a_deleted_namespace_takes_its_objects_with_it(api: Api, server: ApiServer) -> None:
    server.create("namespaces", {"metadata": {"name": "team"}})
    server.create("configmaps", {"metadata": {"name": "a", "namespace": "team"}})
    async with api.session.get("/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dteam") as watch:
        assert b'"ADDED"' in await watch.content.readline()
        _, answer = await api("DELETE", "/api/v1/namespaces/team")
        assert b'"Terminating"' in await watch.content.readline()
        assert b'"DELETED"' in await watch.content.readline()
    assert answer["status"]["phase"] == "Terminating"
    assert server.list("configmaps", "team") == []


async def test_methods_and_media_types_that_do_not_fit_are_refused(api: Api) -> None:
    await api.create("a")
    assert (await api("PUT", CONFIGMAPS, {}))[0] == 405
    assert (await api("PATCH", f"{CONFIGMAPS}/a", {}))[0] == 415
    assert (await api("POST", CONFIGMAPS, "x", content_type="text/plain"))[0] == 415
    assert (await api("GET", CONFIGMAPS, accept="text/plain"))[0] == 406


@pytest.mark.conformance("FK-02")
async def test_python_and_http_obey_the_same_rules(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    with pytest.raises(StatusError, match='configmaps "a" already exists'):
        server.create("configmaps", {"metadata": {"name": "a"}})
