"""Storage migration over HTTP: what is written, what is left alone, and when versions are retired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, HttpTransport, UsageError
from aioinformer.client import StorageMigration
from aioinformer.crds import CustomResource, custom_resource
from aioinformer.errors import Forbidden, TransportError
from aioinformer.models import (
    ObjectMeta,
    apiextensions_v1,
    core_v1,
)
from tests.system.client.counting import Counting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.testing import ApiServer
    from aioinformer.transport import HttpRequest, Response

DEFINITIONS = apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS


class Box(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: dict[str, Any]


def boxes(stored: str = "v1", served: tuple[str, ...] = ("v1", "v1beta1")) -> CustomResource[Box]:
    names = sorted(("v1", "v1beta1"), key=lambda name: name != stored)
    made = [
        custom_resource(Box, "example.com", name, plural="boxes", storage=name == stored, served=name in served)
        for name in names
    ]
    return custom_resource(Box, "example.com", stored, plural="boxes", served=made[0].served, others=made[1:])


NEW = boxes()


class Interposed(Counting):
    """A transport that calls a function before each request."""

    interpose: Callable[[HttpRequest], Any] | None = None

    async def request(self, request: HttpRequest) -> Response:
        if self.interpose is not None:
            await self.interpose(request)
        return await super().request(request)


@pytest.fixture
async def transport(own_server: ApiServer) -> AsyncIterator[Interposed]:
    async with HttpTransport(own_server.url, token="token") as transport:
        yield Interposed(transport)


@pytest.fixture
async def moved(client: Client) -> Client:
    """Store three objects in the old version, and then let the definition store the new one."""
    await client.apply_all([boxes("v1beta1").crd()], field_manager="tests")
    old = client.resource(boxes("v1beta1"))
    for name in ("a", "b", "c"):
        await old.create({"metadata": {"name": name, "namespace": "shop"}, "spec": {"size": 1, "more": {"kept": True}}})
    await client.apply_all([boxes(served=("v1",)).crd()], field_manager="tests", force=True)
    return client


def writes(transport: Interposed) -> list[str]:
    return [request.path.rpartition("/")[2] for request in transport.requests if request.method == "PUT"]


async def stored_versions(client: Client) -> list[str]:
    found = await client.resource(DEFINITIONS).get("boxes.example.com")
    assert found.status is not None
    return list(found.status.stored_versions or ())


async def test_each_object_is_written_as_it_was_and_versions_are_retired(moved: Client, transport: Interposed) -> None:
    before = {each.metadata.name: each.spec for each in await moved.resource(NEW).list(namespace="shop")}
    report = await StorageMigration(Client(transport), NEW, settled=0).run()
    assert (report.written, report.cleaned, report.stored_versions) == (3, 3, ("v1",))
    assert sorted(writes(transport)) == ["a", "b", "c"]
    assert await stored_versions(moved) == ["v1"]
    after = await moved.resource(NEW).list(namespace="shop")
    assert {each.metadata.name: each.spec for each in after} == before
    for each in after:
        assert {entry.api_version for entry in each.metadata.managed_fields or ()} <= {"example.com/v1"}
    discoveries = [each for each in transport.requests if each.path == "/apis/example.com/v1" and each.fresh]
    assert len(discoveries) == 10


async def test_plan_writes_nothing(moved: Client, transport: Interposed) -> None:
    lines = await StorageMigration(Client(transport), NEW).plan()
    assert lines == [
        "boxes.example.com stores v1; objects may be stored in v1beta1, v1",
        "discovery names it",
        "3 objects would be written here",
        "3 of them would lose managed fields of versions that are not served",
        "storedVersions would become v1",
    ]
    assert {each.method for each in transport.requests} == {"GET"}


async def test_interrupted_run_goes_on_behind_the_last_object(moved: Client, transport: Interposed) -> None:
    await StorageMigration(Client(transport), NEW, after="shop/b", settled=0).run()
    assert writes(transport) == ["c"]


def list_by(patch: pytest.MonkeyPatch, objects: int) -> None:
    """Let a migration list so many objects at a time."""
    patch.setattr("aioinformer.client.migration._PAGE", objects)


async def test_no_page_leaves_out_a_namespace_whose_name_begins_as_another(
    moved: Client, transport: Interposed, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_by(monkeypatch, 2)
    await moved.resource(core_v1.NAMESPACES).create({"metadata": {"name": "shop-b"}})
    other = Client(transport).resource(NEW)
    for name in ("x", "y"):
        await other.create({"metadata": {"name": name, "namespace": "shop-b"}, "spec": {}})
    # The order of etcd: "-" is before "/".
    report = await StorageMigration(Client(transport), NEW, settled=0).run()
    assert sorted(writes(transport)) == ["a", "b", "c", "x", "y"]
    assert (report.objects, report.written, report.last) == (5, 5, "shop/c")
    transport.requests.clear()
    await StorageMigration(Client(transport), NEW, after="shop-b/y", settled=0).run()
    assert sorted(writes(transport)) == ["a", "b", "c"]


async def test_run_does_not_go_on_behind_a_refused_object(
    moved: Client, transport: Interposed, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_by(monkeypatch, 1)

    async def fail(request: HttpRequest) -> None:
        if request.method == "PUT" and request.path.endswith("/b"):
            raise Forbidden(403, "a policy refuses it")
        if request.method == "PUT" and request.path.endswith("/c"):
            raise TransportError("the connection broke")

    transport.interpose = fail
    interrupted = StorageMigration(Client(transport), NEW, settled=0)
    with pytest.raises(TransportError, match="the connection broke"):
        await interrupted.run()
    assert list(interrupted.report.refused) == ["shop/b"]
    assert interrupted.report.last == "shop/a"
    assert await stored_versions(moved) == ["v1beta1", "v1"]


async def test_object_that_others_have_written_or_deleted_counts_as_migrated(
    moved: Client, transport: Interposed
) -> None:
    async def change(request: HttpRequest) -> None:
        if request.method == "PUT" and request.path.endswith("/a"):
            await moved.resource(NEW).patch("shop/a", {"spec": {"size": 2}})
        elif request.method == "PUT" and request.path.endswith("/b"):
            await moved.resource(NEW).delete("shop/b")

    transport.interpose = change
    report = await StorageMigration(Client(transport), NEW, settled=0).run()
    assert (report.written, report.changed, report.gone, report.refused) == (1, 1, 1, {})
    assert report.stored_versions == ("v1",)
    assert (await moved.resource(NEW).get("shop/a")).spec["size"] == 2


async def test_refused_object_keeps_the_versions(moved: Client, transport: Interposed) -> None:
    async def refuse(request: HttpRequest) -> None:
        if request.method == "PUT" and request.path.endswith("/b"):
            raise Forbidden(403, "a policy refuses it")

    transport.interpose = refuse
    report = await StorageMigration(Client(transport), NEW, settled=0).run()
    assert list(report.refused) == ["shop/b"]
    assert report.written == 2
    assert await stored_versions(moved) == ["v1beta1", "v1"]


async def test_definition_that_changes_meanwhile_is_left_alone(moved: Client, transport: Interposed) -> None:
    async def change(request: HttpRequest) -> None:
        if request.method == "PUT" and request.path.endswith("/c"):
            transport.interpose = None
            await moved.apply_all([boxes().crd()], field_manager="tests", force=True)

    transport.interpose = change
    with pytest.raises(UsageError, match=r"boxes\.example\.com has changed meanwhile: run the migration again"):
        await StorageMigration(Client(transport), NEW, settled=0).run()
    assert await stored_versions(moved) == ["v1beta1", "v1"]


async def test_class_of_another_version_than_the_stored_one_is_refused(client: Client, transport: Interposed) -> None:
    await client.apply_all([boxes("v1beta1").crd()], field_manager="tests")
    with pytest.raises(UsageError, match="stores v1beta1, and the class is of v1: apply the new definition first"):
        await StorageMigration(Client(transport), NEW).run()
    assert {each.method for each in transport.requests} == {"GET"}


MIGRATION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "storageversionmigrations.storagemigration.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": "storagemigration.k8s.io",
        "scope": "Cluster",
        "names": {"plural": "storageversionmigrations", "kind": "StorageVersionMigration"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.mark.parametrize(("condition", "written"), [("Succeeded", ["a", "b", "c"]), ("Failed", ["a", "b", "c"])])
async def test_cluster_migrates_if_it_can(
    moved: Client, transport: Interposed, condition: str, written: list[str]
) -> None:
    await moved.apply_all([MIGRATION], field_manager="tests")
    asked: list[Any] = []

    async def migrate(request: HttpRequest) -> None:
        path, _, name = request.path.rpartition("/")
        if request.method == "GET" and path.endswith("/storageversionmigrations"):
            migrations = await moved.resource_for(MIGRATION_OBJECT)
            found = await migrations.get(name)
            asked.append(found.spec.to_dict())
            status = {"conditions": [{"type": condition, "status": "True", "message": "words"}]}
            await migrations.patch(name, {"status": status})

    transport.interpose = migrate
    report = await StorageMigration(Client(transport), NEW, settled=0).run()
    assert asked == [{"resource": {"group": "example.com", "resource": "boxes"}}]
    # Afterwards, only what has managed fields of the old version is written from here.
    assert sorted(writes(transport)) == written
    assert report.stored_versions == ("v1",)
    assert await (await moved.resource_for(MIGRATION_OBJECT)).list() == []
    writes_before = len(writes(transport))
    await StorageMigration(Client(transport), NEW, settled=0).run()
    assert (len(writes(transport)) - writes_before) == (0 if condition == "Succeeded" else 3)


MIGRATION_OBJECT = {"apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration"}


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_objects_are_written_from_here_without_the_migration_of_the_cluster(
    moved: Client, transport: Interposed, method: str
) -> None:
    await moved.apply_all([MIGRATION], field_manager="tests")

    async def interfere(request: HttpRequest) -> None:
        path, _, name = request.path.rpartition("/")
        if request.method == method == "POST" and name == "storageversionmigrations":
            raise Forbidden(403, "may not create")
        if request.method == method == "GET" and path.endswith("/storageversionmigrations"):
            await (await moved.resource_for(MIGRATION_OBJECT)).delete(name)

    transport.interpose = interfere
    lines: list[str] = []
    report = await StorageMigration(Client(transport), NEW, settled=0, tell=lines.append).run()
    assert (report.written, report.stored_versions) == (3, ("v1",))
    assert any("written from here" in line for line in lines)


async def test_run_ends_if_all_of_the_first_page_are_refused(
    moved: Client, transport: Interposed, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_by(monkeypatch, 2)

    async def refuse(request: HttpRequest) -> None:
        if request.method == "PUT":
            raise Forbidden(403, "may not update boxes")

    transport.interpose = refuse
    lines: list[str] = []
    report = await StorageMigration(Client(transport), NEW, settled=0, tell=lines.append).run()
    assert list(report.refused) == ["shop/a", "shop/b"]
    assert (report.last, report.stored_versions) == ("", ("v1beta1", "v1"))
    assert lines[-1] == "all of the first 2 objects are refused: the others stay"
    assert await stored_versions(moved) == ["v1beta1", "v1"]
