"""Single guarantees of an informer on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import CoreV1Api, V1ConfigMap, V1ObjectMeta

from aioinformer import ListWatch, Phase, ReflectorOptions, Resource, SharedIndexInformer, SharedInformerFactory
from aioinformer.transport.auth.credentials import connect
from tests.real.e2e.witnesses import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import InformerState
    from aioinformer.transport import Transport
    from tests.support.real_cluster import Operator, RealCluster

GADGETS: Resource[Any] = Resource("e2e.example.com", "v1", "gadgets", kind="Gadget")


@pytest.fixture
async def transport(cluster: RealCluster) -> AsyncIterator[Transport]:
    """Provide a transport of the administrator."""
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        yield connection.transport


@pytest.fixture
async def namespace(operator: Operator) -> str:
    """Create a namespace for the test."""
    body = {"metadata": {"generateName": "informer-"}}
    name: str = (await operator.create("/api/v1/namespaces", body))["metadata"]["name"]
    return name


async def create_configmaps(operator: Operator, namespace: str, *names: str, **labels: str) -> None:
    for name in names:
        body = {"metadata": {"name": name, "labels": labels}, "data": {"of": name}}
        await operator.create(f"/api/v1/namespaces/{namespace}/configmaps", body)


@pytest.mark.parametrize(
    "options",
    [
        ReflectorOptions(),
        ReflectorOptions(streaming_list=False, page_size=3),
        ReflectorOptions(streaming_list=False, list_resource_version="0"),
    ],
    ids=["streaming list", "pages of three", "list from the watch cache"],
)
async def test_cache_equals_the_server(
    operator: Operator, transport: Transport, namespace: str, options: ReflectorOptions
) -> None:
    await create_configmaps(operator, namespace, *(f"map-{number}" for number in range(8)))
    async with SharedIndexInformer(ListWatch(transport, CONFIG_MAPS, namespace), options=options) as informer:
        await informer.wait_for_sync()
        assert sorted(each.data["of"] for each in informer.lister().list()) == [f"map-{number}" for number in range(8)]


async def test_own_write_is_visible_after_waiting_for_its_version(cluster: RealCluster, namespace: str) -> None:
    async with (
        await connect(kubeconfig=cluster.kubeconfig) as connection,
        SharedInformerFactory(connection.api_client, namespace=namespace) as factory,
    ):
        core = CoreV1Api(connection.api_client)
        informer = factory.core.v1.configmaps.informer()
        await factory.wait_for_cache_sync()
        for value in map(str, range(5)):
            body = V1ConfigMap(metadata=V1ObjectMeta(name=f"own-{value}"), data={"value": value})
            made = await core.create_namespaced_config_map(namespace, body)
            await informer.wait_for_resource_version(made.metadata.resource_version)
            assert informer.lister().namespaced(namespace).get(f"own-{value}").data == {"value": value}


async def test_cached_object_is_accepted_as_a_request_body(
    operator: Operator, cluster: RealCluster, namespace: str
) -> None:
    await create_configmaps(operator, namespace, "original")
    async with (
        await connect(kubeconfig=cluster.kubeconfig) as connection,
        SharedInformerFactory(connection.api_client, namespace=namespace) as factory,
    ):
        lister = factory.core.v1.configmaps.lister()
        await factory.wait_for_cache_sync()
        cached: Any = lister.namespaced(namespace).get("original")
        core = CoreV1Api(connection.api_client)
        answer = await core.replace_namespaced_config_map("original", namespace, cached)
    assert answer.metadata.resource_version == cached.metadata.resource_version


async def test_server_without_streaming_lists_is_listed_in_pages(
    operator: Operator, transport: Transport, namespace: str
) -> None:
    await create_configmaps(operator, namespace, "a", "b")
    await operator.act("restart-apiserver", "--feature-gates=WatchList=false")
    try:
        async with SharedIndexInformer(ListWatch(transport, CONFIG_MAPS, namespace)) as informer:
            await informer.wait_for_sync()
            keys = informer.get_store().list_keys()
    finally:
        await operator.act("restart-apiserver")
    assert sorted(keys) == [f"{namespace}/a", f"{namespace}/b"]


async def test_selectors_are_applied_by_the_server(operator: Operator, transport: Transport, namespace: str) -> None:
    await create_configmaps(operator, namespace, "a", "b", tier="web")
    await create_configmaps(operator, namespace, "c", tier="db")
    selection = ListWatch(transport, CONFIG_MAPS, namespace, "tier=web", "metadata.name!=b")
    async with SharedIndexInformer(selection) as informer:
        await informer.wait_for_sync()
        assert informer.get_store().list_keys() == [f"{namespace}/a"]


async def test_metadata_only_informer_receives_no_data(
    operator: Operator, transport: Transport, namespace: str
) -> None:
    await create_configmaps(operator, namespace, "a", tier="web")
    selection = ListWatch(transport, CONFIG_MAPS, namespace, metadata_only=True)
    async with SharedIndexInformer(selection) as informer:
        await informer.wait_for_sync()
        known = informer.lister().namespaced(namespace).get("a")
    assert known.metadata.labels == {"tier": "web"}
    assert not known.data


async def test_forbidden_informer_reports_it_and_recovers(operator: Operator, cluster: RealCluster) -> None:
    async with await connect(kubeconfig=cluster.restricted_kubeconfig) as connection:
        informer = SharedIndexInformer(ListWatch(connection.transport, CONFIG_MAPS))
        states = States(informer)
        async with informer:
            forbidden = await states.until(Phase.FORBIDDEN)
            await allow_reading_configmaps(operator)
            await states.until(Phase.WATCHING)
    assert "configmaps is forbidden" in forbidden.reason


async def test_informer_waits_for_a_resource_that_is_not_served_yet(operator: Operator, transport: Transport) -> None:
    async with SharedInformerFactory(transport) as factory:
        gadgets = factory.informer_for(GADGETS)
        states = States(gadgets)
        factory.start()
        await states.until(Phase.NOT_FOUND)
        await define_gadgets(operator)
        await factory.wait_for_cache_sync()
        await operator.create(
            GADGETS.path("default"),
            {"apiVersion": GADGETS.api_version, "kind": "Gadget", "metadata": {"name": "first"}, "spec": {"size": 3}},
        )
        gadget = await gadgets.wait_for("default/first", timeout=30)
    assert gadget is not None
    assert gadget["spec"]["size"] == 3


class States:
    """The states that an informer reports from now on."""

    def __init__(self, informer: SharedIndexInformer[Any]) -> None:
        self._queue: asyncio.Queue[InformerState] = asyncio.Queue()
        informer.add_state_handler(self._queue.put_nowait)

    async def until(self, phase: Phase) -> InformerState:
        """Wait for the next state with this phase."""
        async with asyncio.timeout(60):
            while (state := await self._queue.get()).phase is not phase:
                pass
        return state


async def allow_reading_configmaps(operator: Operator) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    await operator.create(f"{rbac}/clusterroles", {"metadata": {"name": "readers"}, "rules": [rule]})
    group = "rbac.authorization.k8s.io"
    await operator.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": "readers"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "readers"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}],
        },
    )


async def define_gadgets(operator: Operator) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await operator.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": GADGETS.group_resource},
            "spec": {
                "group": GADGETS.group,
                "scope": "Namespaced",
                "names": {"kind": GADGETS.kind, "plural": GADGETS.plural},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
            },
        },
    )
