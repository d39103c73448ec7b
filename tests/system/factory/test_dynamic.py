"""DynamicInformers: informers by name, and of custom resources while they are served, on a server in this process."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from aioinformer import DeletedFinalStateUnknown, DynamicInformers
from aioinformer.errors import InformerStopped, NotFound, UnknownOption, UsageError
from aioinformer.metrics import InformerName
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.reflector import Phase
from aioinformer.resources import UnknownResource
from tests.support.api import CONFIGMAPS, DEFINITION, DEFINITIONS, WIDGETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer import HttpTransport, Resource
    from aioinformer.factory import DynamicInformer
    from aioinformer.reflector import ListOptions
    from aioinformer.testing import ApiServer
    from tests.support.api import Api


class Followed:
    """The `begin` function of `follow`: it records notifications ("add w", "update w", "delete w") and informers."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.informers: asyncio.Queue[DynamicInformer] = asyncio.Queue()
        self._changed = asyncio.Event()

    def __call__(self, informer: DynamicInformer) -> None:
        informer.add_event_handler(
            on_add=lambda obj: self._record("add", obj),
            on_update=lambda old, new: self._record("update", new),
            on_delete=lambda obj: self._record("delete", obj),
        )
        self.informers.put_nowait(informer)

    async def until(self, *words: str) -> None:
        async with asyncio.timeout(50):
            while self.received != list(words):
                self._changed.clear()
                await self._changed.wait()

    def _record(self, verb: str, obj: Any) -> None:
        last: Any = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        self.received.append(f"{verb} {last['metadata']['name']}")
        self._changed.set()


async def when(informer: DynamicInformer, holds: Callable[[], bool]) -> None:
    """Return at the first change of state at which a condition holds."""
    changed = asyncio.Event()
    informer.add_state_handler(lambda state: changed.set())
    async with asyncio.timeout(50):
        while not holds():
            changed.clear()
            await changed.wait()


def widget(name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


def definition(*versions: str, kind: str = "Widget", plural: str = "widgets") -> dict[str, Any]:
    made = deepcopy(DEFINITION)
    made["metadata"]["name"] = f"{plural}.example.com"
    made["spec"]["names"] = {"plural": plural, "kind": kind}
    (template,) = made["spec"]["versions"]
    made["spec"]["versions"] = [
        {**deepcopy(template), "name": version, "storage": not number} for number, version in enumerate(versions)
    ]
    return made


@pytest.mark.conformance("FAC-10", "FAC-12")
@pytest.mark.parametrize("name", ["configmaps", "cm", "v1/configmaps"])
async def test_any_name_gets_an_informer_of_mappings(api: Api, dynamic: DynamicInformers, name: str) -> None:
    await api.create("settings", labels={"app": "web"})
    async with dynamic:
        informer = await dynamic.informer(name)
        await informer.wait_for_sync()
        lister = informer.lister()
        assert lister.get("default/settings")["metadata"]["labels"] == {"app": "web"}
        assert [each["metadata"]["name"] for each in lister.list("app=web")] == ["settings"]
        with pytest.raises(NotFound, match='configmaps "default/none" not found'):
            lister.get("default/none")


@pytest.mark.conformance("FAC-10", "FAC-11")
async def test_names_of_one_resource_share_an_informer(api: Api, dynamic: DynamicInformers) -> None:
    early = await dynamic.informer("cm")
    assert await dynamic.wait_for_cache_sync(timeout=0) == {"v1/configmaps": False}
    async with dynamic:
        assert await dynamic.informer("configmaps") is early
        await dynamic.informer("deployments.apps")
        assert await dynamic.wait_for_cache_sync(10) == {"v1/configmaps": True, "apps/v1/deployments": True}
        with pytest.raises(UnknownResource):
            await dynamic.informer("widgets.example.com")
    assert early.is_stopped()
    with pytest.raises(InformerStopped):
        await dynamic.informer("secrets")


async def test_scopes_and_invalid_options(api: Api, dynamic: DynamicInformers) -> None:
    await api.create("web", labels={"app": "web"})
    await api.create("other")
    whole = await dynamic.informer("configmaps", storage="stripped")
    web = await dynamic.informer("cm", label_selector={"app": "web"}, namespace="default")
    with pytest.raises(UsageError, match="enter `async with` of the DynamicInformers"):
        web.lister().list()
    async with dynamic:
        keys = ["v1/configmaps", "v1/configmaps?namespace=default&labelSelector=app=web"]
        assert await dynamic.wait_for_cache_sync(10) == dict.fromkeys(keys, True)
        assert list(dynamic.informers()) == keys
        assert dynamic.is_ready()
        assert [each["metadata"]["name"] for each in web.lister().list()] == ["web"]
        assert await dynamic.informer("v1/configmaps", namespace="default", label_selector="app==web") is web
        assert len(whole.lister().list()) > 1
        with pytest.raises(
            UsageError, match=r"already has an informer with other options: .*storage is 'stripped', not 'dict'"
        ):
            await dynamic.informer("cm", storage="dict")
        with pytest.raises(UnknownOption, match=r"informer\(\) has no option 'selector'"):
            await dynamic.informer("cm", selector="app=web")  # type: ignore[call-arg]
        with pytest.raises(UnknownOption, match=r"follow\(\) has no option 'selector'"):
            dynamic.follow(lambda informer: None, selector="app=web")  # type: ignore[call-arg]
    assert not dynamic.is_ready()


async def test_unlistable_resource_is_refused(dynamic: DynamicInformers) -> None:
    with pytest.raises(UsageError, match="selfsubjectreviews has no verb list, only create"):
        await dynamic.informer("selfsubjectreviews")
    assert dynamic.informers() == {}


@pytest.mark.conformance("FAC-13", "FAC-14")
async def test_metadata_tier_requests_metadata_only(api: Api, dynamic: DynamicInformers, server: ApiServer) -> None:
    await api("POST", CONFIGMAPS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"big": "content"}})
    async with dynamic:
        informer = await dynamic.informer("configmaps", storage="metadata")
        await informer.wait_for_sync()
        kept = informer.lister().get("default/a")
        assert kept["metadata"]["labels"] == {"x": "y"}
        assert "data" not in kept


@pytest.mark.conformance("FAC-10")
async def test_namespace_and_tweak_limit_the_lists(api: Api, transport: HttpTransport) -> None:
    await api.create("a", labels={"app": "web"})
    await api.create("b")
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    elsewhere = {"metadata": {"name": "c", "labels": {"app": "web"}}}
    status, _ = await api("POST", "/api/v1/namespaces/other/configmaps", elsewhere)
    assert status == 201

    def only_web(options: ListOptions) -> None:
        options.label_selector = "app=web"

    async with DynamicInformers(transport, namespace="default", tweak_list_options=only_web) as dynamic:
        informer = await dynamic.informer("configmaps")
        await informer.wait_for_sync()
        assert informer.get_store().list_keys() == ["default/a"]
        await (await dynamic.informer("namespaces")).wait_for_sync()


@pytest.mark.conformance("MET-02", "MET-03")
async def test_name_has_metrics_and_is_released_on_exit(api: Api, transport: HttpTransport) -> None:
    await api.create("a")
    registry = CollectorRegistry()
    labels = {"name": "any", "group": "", "version": "v1", "resource": "configmaps"}
    metrics = PrometheusMetrics(registry)
    async with DynamicInformers(transport, namespace="default", name=InformerName("any"), metrics=metrics) as dynamic:
        informer = await dynamic.informer("configmaps")
        await informer.wait_for_sync()
        assert registry.get_sample_value("informer_store_items", labels) == 1
        with pytest.raises(UsageError, match="in use"):
            InformerName("any")
    with InformerName("any"):
        assert registry.get_sample_value("informer_store_items", labels) is None


async def test_metrics_need_no_name(transport: HttpTransport) -> None:
    informers = DynamicInformers(transport, metrics=PrometheusMetrics(CollectorRegistry()))
    assert informers.snapshot()["name"].startswith("default")


async def test_custom_resources_follow_their_definitions(api: Api, dynamic: DynamicInformers) -> None:
    followed = Followed()
    dynamic.follow(followed)
    async with dynamic, asyncio.timeout(50):
        await api("POST", DEFINITIONS, DEFINITION)
        informer = await followed.informers.get()
        await informer.wait_for_sync()
        await api("POST", WIDGETS, widget("w"))
        await followed.until("add w")
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        await followed.until("add w", "delete w")
        await when(informer, lambda: not informer.served)
        assert informer.state.phase is Phase.NOT_FOUND
        await api("POST", DEFINITIONS, DEFINITION)
        await api("POST", WIDGETS, widget("again"))
        await followed.until("add w", "delete w", "add again")
        assert informer.served
        assert followed.informers.empty()
        assert set(dynamic.informers()) == {"example.com/v1/widgets"}


async def test_custom_resource_may_return_with_another_scope(api: Api, transport: HttpTransport) -> None:
    followed = Followed()
    dynamic = DynamicInformers(transport, namespace="default")
    dynamic.follow(followed)
    everywhere = definition("v1")
    everywhere["spec"]["scope"] = "Cluster"
    async with dynamic, asyncio.timeout(50):
        await api("POST", DEFINITIONS, DEFINITION)
        informer = await followed.informers.get()
        await informer.wait_for_sync()
        await api("POST", WIDGETS, widget("w"))
        await followed.until("add w")
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        await when(informer, lambda: not informer.served)
        await api("POST", DEFINITIONS, everywhere)
        await api("POST", "/apis/example.com/v1/widgets", widget("everywhere"))
        await followed.until("add w", "delete w", "add everywhere")
        assert informer.lister().get("everywhere")["metadata"]["name"] == "everywhere"


async def test_custom_resource_that_becomes_namespaced_is_read_in_the_namespace_alone(
    api: Api, transport: HttpTransport
) -> None:
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    followed = Followed()
    dynamic = DynamicInformers(transport, namespace="default")
    dynamic.follow(followed)
    everywhere = definition("v1")
    everywhere["spec"]["scope"] = "Cluster"
    async with dynamic, asyncio.timeout(50):
        await api("POST", DEFINITIONS, everywhere)
        informer = await followed.informers.get()
        await informer.wait_for_sync()
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        await when(informer, lambda: not informer.served)
        await api("POST", DEFINITIONS, DEFINITION)
        await api("POST", WIDGETS.replace("/default/", "/other/"), widget("elsewhere"))
        await api("POST", WIDGETS, widget("w"))
        await followed.until("add w")
        assert informer.lister().list() == [informer.lister().namespaced("default").get("w")]


async def test_follow_existing_definitions_that_are_wanted(api: Api, dynamic: DynamicInformers) -> None:
    await api("POST", DEFINITIONS, definition("v1", kind="Gadget", plural="gadgets"))
    await api("POST", DEFINITIONS, definition("v1"))
    followed = Followed()

    def wanted(resource: Resource[Any]) -> bool:
        return resource.kind == "Widget"

    dynamic.follow(followed, wanted, storage="dict")
    async with dynamic, asyncio.timeout(50):
        informer = await followed.informers.get()
        await informer.wait_for_sync()
        assert set(dynamic.informers()) == {"example.com/v1/widgets"}


async def test_another_version_replaces_an_unserved_one(api: Api, dynamic: DynamicInformers) -> None:
    await api("POST", DEFINITIONS, definition("v1beta1", "v1"))
    await api("POST", WIDGETS.replace("v1", "v1beta1"), {**widget("w"), "apiVersion": "example.com/v1beta1"})
    followed = Followed()
    dynamic.follow(followed)
    async with dynamic, asyncio.timeout(50):
        old = await followed.informers.get()
        await followed.until("add w")
        _, now = await api("GET", f"{DEFINITIONS}/widgets.example.com")
        beta, stable = now["spec"]["versions"]
        beta |= {"served": False, "storage": False}
        stable |= {"storage": True}
        await api("PUT", f"{DEFINITIONS}/widgets.example.com", now)
        new = await followed.informers.get()
        await new.wait_for_sync()
        assert (old.resource.version, new.resource.version) == ("v1beta1", "v1")
        assert (old.served, new.served) == (False, True)
        assert new.get_store().list_keys() == ["default/w"]


async def test_dynamic_informers_follow_and_run_once(dynamic: DynamicInformers) -> None:
    dynamic.follow(lambda informer: None)
    with pytest.raises(UsageError, match="follow"):
        dynamic.follow(lambda informer: None)
    async with dynamic:
        with pytest.raises(UsageError, match="can be entered once"):
            await dynamic.__aenter__()
