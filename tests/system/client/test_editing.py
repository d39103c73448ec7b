"""Edits: a change of what was read, as a minimal patch, again after a conflict."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from aioinformer import (
    ApiNotFound,
    Client,
    Conflict,
    HttpTransport,
    Resource,
    SharedInformerFactory,
    UsageError,
    evolve,
)
from aioinformer.client import (
    add_finalizer,
    is_condition_true,
    remove_condition,
    remove_finalizer,
    set_condition,
    set_controller_reference,
)
from aioinformer.crds import custom_resource
from aioinformer.errors import OptionError
from aioinformer.resources import ObjectReference
from tests.support.bench import CONFIG_MAPS, WIDGETS, WithUUID, definition
from tests.system.client.counting import Counting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.testing import ApiServer
    from aioinformer.transport import HttpRequest


@pytest.fixture
async def counting(own_server: ApiServer, client: Client) -> AsyncIterator[Counting]:
    async with HttpTransport(own_server.url, token="token") as transport:
        yield Counting(transport)


@pytest.fixture
def edits(counting: Counting) -> Client:
    return Client(counting, namespace="shop", field_manager="tests")


def labelled(**labels: str | None) -> Callable[[Any], Any]:
    return lambda obj: obj.evolve({"metadata": {"labels": labels}})


async def config_map(client: Client, name: str = "a", **data: str) -> Any:
    return await client.core.v1.configmaps.create({"metadata": {"name": name}, "data": data})


async def test_edit_sends_the_difference_and_the_version(client: Client, edits: Client, counting: Counting) -> None:
    old = await config_map(client, x="1", y="2")
    new = await edits.core.v1.configmaps.edit(old, lambda each: each.evolve({"data": {"x": "3", "y": None}}))
    assert new.data == {"x": "3"}
    assert counting.methods == ["PATCH"]
    assert counting.body() == {
        "metadata": {"resourceVersion": old.metadata.resource_version},
        "data": {"x": "3", "y": None},
    }


async def test_edit_without_a_change_sends_nothing(client: Client, edits: Client, counting: Counting) -> None:
    old = await config_map(client, x="1")
    config_maps = edits.core.v1.configmaps
    assert await config_maps.edit(old, lambda each: each) is old
    assert await config_maps.edit(old, lambda each: each.evolve({"data": {"x": "1"}})) is old
    assert counting.requests == []


async def test_edit_of_an_old_version_is_repeated_from_the_live_object(
    client: Client, edits: Client, counting: Counting
) -> None:
    old = await config_map(client, x="1")
    await client.core.v1.configmaps.patch(old, {"data": {"x": "2"}})
    seen = []

    def change(each: Any) -> Any:
        seen.append(each.data["x"])
        return each.evolve({"metadata": {"labels": {"seen": each.data["x"]}}})

    new = await edits.core.v1.configmaps.edit(old, change)
    assert (seen, new.metadata.labels) == (["1", "2"], {"seen": "2"})
    assert counting.methods == ["PATCH", "GET", "PATCH"]


async def test_live_object_that_needs_no_change_ends_the_edit(
    client: Client, edits: Client, counting: Counting
) -> None:
    old = await config_map(client, x="1")
    live = await client.core.v1.configmaps.patch(old, {"metadata": {"labels": {"a": "b"}}})
    assert await edits.core.v1.configmaps.edit(old, labelled(a="b")) == live
    assert counting.methods == ["PATCH", "GET"]


async def test_conflict_in_each_attempt_is_raised(
    client: Client, edits: Client, counting: Counting, own_server: ApiServer
) -> None:
    old = await config_map(client, x="0")

    def interfere(request: HttpRequest) -> None:
        if request.method == "PATCH":
            own_server.patch("configmaps", "a", {"data": {"x": str(len(counting.requests))}}, "shop")

    counting.before = interfere
    with pytest.raises(Conflict):
        await edits.core.v1.configmaps.edit(old, labelled(a="b"), attempts=3)
    assert counting.methods == ["PATCH", "GET"] * 2 + ["PATCH"]


async def test_another_object_of_the_same_name_is_not_edited(client: Client, edits: Client, counting: Counting) -> None:
    old = await config_map(client, x="1")
    await client.core.v1.configmaps.delete(old)
    with pytest.raises(ApiNotFound):
        await edits.core.v1.configmaps.edit(old, labelled(a="b"))
    await config_map(client, x="1")
    with pytest.raises(Conflict):
        await edits.core.v1.configmaps.edit(old, labelled(a="b"))
    assert (await client.core.v1.configmaps.get("a")).metadata.labels is None


async def test_edit_by_name_reads_the_live_object(client: Client, edits: Client, counting: Counting) -> None:
    await config_map(client, x="1")
    assert (await edits.core.v1.configmaps.edit("a", labelled(a="b"))).metadata.labels == {"a": "b"}
    assert (await edits.core.v1.configmaps.edit("shop/a", labelled(a="c"))).metadata.labels == {"a": "c"}
    assert counting.methods == ["GET", "PATCH"] * 2


async def test_client_edits_objects_of_any_resource(client: Client, edits: Client, counting: Counting) -> None:
    old = await config_map(client, x="1")
    assert (await edits.edit(old, labelled(a="b"))).metadata.labels == {"a": "b"}
    again = await edits.edit(old, lambda each: evolve(each, "data.x", "2"), attempts=2)
    assert (again.data, again.metadata.labels) == ({"x": "2"}, {"a": "b"})
    with pytest.raises(UsageError, match="does not state apiVersion"):
        await edits.edit({"metadata": {"name": "a"}}, labelled(a="b"))


async def test_change_may_be_a_coroutine_and_return_plain_data(client: Client, edits: Client) -> None:
    old = await config_map(client, x="1")

    async def change(each: Any) -> Any:
        return {**each.to_dict(), "data": {"x": "2"}}

    assert (await edits.core.v1.configmaps.edit(old, change)).data == {"x": "2"}


@pytest.mark.parametrize("storage", ["metadata", "projection"])
async def test_object_of_a_cache_that_stores_parts_is_read_first(
    client: Client, edits: Client, counting: Counting, own_server: ApiServer, storage: Any
) -> None:
    old = await pod(client)
    both = await client.core.v1.pods.edit(old, lambda each: add_finalizer(each, "example.com/other"))
    await client.core.v1.pods.status.edit(both, lambda each: set_condition(each, "Other", True, "There"))
    async with HttpTransport(own_server.url, token="token") as transport, SharedInformerFactory(transport) as factory:
        informer = factory.core.v1.pods.informer(storage=storage, fields=["spec.nodeName"])
        await factory.wait_for_cache_sync(timeout=50)
        cached: Any = informer.lister().get("shop/web")
    new = await edits.core.v1.pods.edit(cached, lambda each: add_finalizer(each, "example.com/a"))
    assert list(new.metadata.finalizers or ()) == ["example.com/other", "example.com/a"]
    stored = await edits.core.v1.pods.status.edit(cached, lambda each: set_condition(each, "Ready", True, "Started"))
    assert is_condition_true(stored, "Other")
    assert is_condition_true(stored, "Ready")
    assert counting.methods == ["GET", "PATCH", "GET", "PATCH"]
    await client.core.v1.pods.edit("web", lambda each: each.evolve("metadata.finalizers", None))
    await client.core.v1.pods.delete("web", grace=0)
    await pod(client)
    with pytest.raises(Conflict, match="another object has the name now"):
        await edits.core.v1.pods.edit(cached, labelled(a="b"))


# Status.


async def pod(client: Client) -> Any:
    spec = {"containers": [{"name": "main", "image": "example.com/web"}]}
    return await client.core.v1.pods.create({"metadata": {"name": "web"}, "spec": spec})


async def test_status_is_edited_through_its_subresource(client: Client, edits: Client, counting: Counting) -> None:
    old = await pod(client)
    await client.core.v1.pods.patch(old, {"metadata": {"labels": {"a": "b"}}})

    def start(each: Any) -> Any:
        return set_condition(each, "Ready", True, "Started")

    ready = await edits.core.v1.pods.status.edit(old, start)
    assert is_condition_true(ready, "Ready")
    path = "/api/v1/namespaces/shop/pods/web"
    assert [request.path for request in counting.requests] == [f"{path}/status", path, f"{path}/status"]
    assert counting.body().keys() == {"metadata", "status"}
    assert await edits.core.v1.pods.status.edit(ready, start) is ready


async def test_change_of_what_the_request_does_not_store_is_refused(
    client: Client, edits: Client, counting: Counting
) -> None:
    old = await pod(client)
    with pytest.raises(UsageError, match="status of v1/pods is a subresource"):
        await edits.core.v1.pods.edit(old, lambda each: set_condition(each, "Ready", True, "Started"))
    with pytest.raises(UsageError, match="the function changed 'metadata'"):
        await edits.core.v1.pods.status.edit(old, lambda each: add_finalizer(each, "example.com/a"))
    assert counting.requests == []


async def test_scale_is_edited_in_its_own_form(client: Client, edits: Client) -> None:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.com/web"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await client.apps.v1.deployments.create({"metadata": {"name": "web"}, "spec": spec})
    scale: Any = await edits.apps.v1.deployments.scale.edit("web", lambda each: evolve(each, "spec.replicas", 3))
    assert scale.spec.replicas == 3
    stored = await client.apps.v1.deployments.scale.get("web")
    assert stored.spec is not None
    assert stored.spec.replicas == 3


# Models of one's own.


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class Settings(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str]


async def test_model_of_ones_own_keeps_what_it_does_not_know(client: Client, edits: Client) -> None:
    await config_map(client, x="1")
    await client.core.v1.configmaps.edit("a", labelled(a="b"))
    resource: Resource[Any] = Resource("", "v1", "configmaps", "ConfigMap")
    settings = edits.resource(resource, decoder=Settings).namespaced("shop")
    old = await settings.get("a")
    new = await settings.edit(old, lambda each: msgspec.structs.replace(each, data={"x": "2"}))
    assert (type(new), new.data) == (Settings, {"x": "2"})
    assert (await client.core.v1.configmaps.get("a")).metadata.labels == {"a": "b"}


class Size(msgspec.Struct, frozen=True):
    size: int = 1


class Sized(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: Size = Size()


async def test_client_edits_objects_of_declared_classes(client: Client, edits: Client) -> None:
    sized = custom_resource(Sized, "example.com", "v1")
    await client.apply_all([sized.crd()])
    made = await edits.resource(sized).create({"metadata": {"name": "a"}})
    await edits.resource(sized).patch("a", {"metadata": {"labels": {"a": "b"}}})
    edited = await edits.edit(made, lambda each: evolve(each, "spec.size", each.spec.size + 1))
    assert (type(edited), edited.spec) == (Sized, Size(2))


# Mistakes.


class WithData(WithUUID):
    data: dict[str, str]


async def test_uid_may_be_a_uuid(client: Client, edits: Client) -> None:
    await config_map(client, size="1")
    identified: Any = edits.resource(msgspec.structs.replace(CONFIG_MAPS, decoder=WithData))
    behind = await identified.get("a")
    await client.core.v1.configmaps.patch("a", {"data": {"colour": "red"}})
    await identified.edit(behind, lambda obj: msgspec.structs.replace(obj, data={**obj.data, "size": "2"}))
    assert (await client.core.v1.configmaps.get("a")).data == {"colour": "red", "size": "2"}


class Nameless(msgspec.Struct):
    """Metadata without uid and version."""

    name: str
    namespace: str


class Narrow(msgspec.Struct):
    metadata: Nameless
    data: dict[str, str] = {}


@pytest.mark.parametrize("replaced", [False, True])
async def test_class_without_a_version_overwrites_nothing_that_it_has_not_seen(
    client: Client, edits: Client, counting: Counting, own_server: ApiServer, replaced: bool
) -> None:
    await config_map(client, size="1")
    seen: list[str] = []

    def grow(obj: Narrow) -> Narrow:
        if not seen and replaced:
            own_server.delete("configmaps", "a", "shop")
            own_server.create("configmaps", {"metadata": {"name": "a"}, "data": {"size": "7"}}, "shop")
        elif not seen:
            own_server.patch("configmaps", "a", {"data": {"size": "7"}}, "shop")
        seen.append(obj.data["size"])
        return msgspec.structs.replace(obj, data={"size": f"{obj.data['size']}0"})

    narrow: Any = edits.resource(msgspec.structs.replace(CONFIG_MAPS, decoder=Narrow))
    if replaced:
        with pytest.raises(Conflict):
            await narrow.edit("a", grow)
    else:
        await narrow.edit("a", grow)
    assert seen == (["1"] if replaced else ["1", "7"])
    assert own_server.get("configmaps", "a", "shop")["data"] == {"size": "7" if replaced else "70"}


async def test_function_that_returns_no_state_of_the_object_is_refused(client: Client, edits: Client) -> None:
    old = await config_map(client, x="1")
    config_maps = edits.core.v1.configmaps
    mistakes: list[tuple[Any, str]] = [
        (lambda each: None, "returned None"),
        (lambda each: each.evolve({"metadata": {"name": "b"}}), r"another metadata\.name"),
        (lambda each: {"metadata": {"name": "a", "namespace": "shop"}}, r"another metadata\.uid"),
        (lambda each: {**each.to_dict(), "kind": "Secret"}, "another kind"),
        ({"data": {}}, "expected a function"),
    ]
    for change, hint in mistakes:
        with pytest.raises(UsageError, match=hint):
            await config_maps.edit(old, change)
    with pytest.raises(UsageError, match=r"no metadata\.resourceVersion"):
        await config_maps.edit(cast("Any", {"metadata": {"name": "a"}}), labelled())
    with pytest.raises(OptionError, match="attempts must be"):
        await config_maps.edit(old, labelled(), attempts=0)


@pytest.mark.behaviour("C-108")
async def test_status_that_the_server_ignores_is_an_error(client: Client, own_server: ApiServer) -> None:
    own_server.create("customresourcedefinitions", definition())
    widgets = client.resource(WIDGETS)
    made = await widgets.create({"metadata": {"name": "web"}, "spec": {"size": 1}})
    with pytest.raises(UsageError, match=r"example.com/v1/widgets.*use status\.edit\(\)"):
        await widgets.edit(made, lambda each: each.evolve({"spec": {"size": 2}, "status": {"size": 1}}))
    stored = await widgets.get("web")
    assert stored.to_dict()["spec"] == {"size": 2}
    written = await widgets.status.edit(stored, lambda each: each.evolve({"status": {"size": 1}}))
    await widgets.edit(written, lambda each: each.evolve({"spec": {"size": 3}}))
    own_server.patch(
        "customresourcedefinitions", "widgets.example.com", {"spec": definition(subresource=False)["spec"]}
    )
    whole = await widgets.edit("web", lambda each: each.evolve({"status": {"size": 2}}))
    assert whole["status"] == {"size": 2}


@pytest.mark.behaviour("C-105")
async def test_part_of_an_object_is_never_written_as_the_whole(client: Client, own_server: ApiServer) -> None:
    await config_map(client, x="1")
    async with HttpTransport(own_server.url, token="token") as transport, SharedInformerFactory(transport) as factory:
        informer = factory.core.v1.configmaps.informer(
            transform=lambda each: evolve(each, {"data": None}) if each.data else each
        )
        await factory.wait_for_cache_sync(timeout=50)
        part: Any = informer.lister().get("shop/a")
    for each in (part, part.evolve({"data": {"y": "2"}}), pickle.loads(pickle.dumps(part))):
        with pytest.raises(UsageError, match="only a part of it"):
            await client.core.v1.configmaps.replace(each)
        for function in (add_finalizer, remove_finalizer):
            with pytest.raises(UsageError, match="only a part of it"):
                function(each, "example.com/a")
        with pytest.raises(UsageError, match="only a part of it"):
            set_condition(each, "Ready", True, "There")
        with pytest.raises(UsageError, match="only a part of it"):
            remove_condition(each, "Ready")
        with pytest.raises(UsageError, match="only a part of it"):
            set_controller_reference(each, ObjectReference("v1", "ConfigMap", "owner", "shop", "1"))
    edited = await client.core.v1.configmaps.edit(part, lambda each: add_finalizer(each, "example.com/a"))
    assert (edited.data, edited.metadata.finalizers) == ({"x": "1"}, ("example.com/a",))


@pytest.mark.behaviour("C-105")
async def test_list_of_a_mapping_is_written_from_the_live_object(
    client: Client, edits: Client, counting: Counting
) -> None:
    made = await config_map(client)
    live = await client.core.v1.configmaps.edit(made, lambda each: add_finalizer(each, "example.com/other"))
    mine = {"data": {}, "metadata": {**live.to_dict()["metadata"], "finalizers": []}}
    config_maps: Any = edits.core.v1.configmaps
    new = await config_maps.edit(mine, lambda each: add_finalizer(each, "example.com/a"))
    assert list(new.metadata.finalizers) == ["example.com/other", "example.com/a"]
    await config_maps.edit({**mine, **new.to_dict()}, lambda each: evolve(each, {"data": {"y": "1"}}))
    assert counting.methods == ["GET", "PATCH", "PATCH"]
