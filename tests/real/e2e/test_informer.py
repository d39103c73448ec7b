"""Single guarantees of informers, shards, typed objects and Events on a real API server."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import CoreV1Api

from aioinformer import ListWatch, NotFound, Resource, RunOptions, SharedIndexInformer, SharedInformerFactory, connect
from aioinformer.events import CoreEventSink, EventBroadcaster, SeriesEventSink, discover_event_sink
from aioinformer.reflector import ListPager, Phase, ShardedListWatch, shard_selectors
from tests.real.e2e.witnesses import CONFIG_MAPS
from tests.support.model_stubs import MODULES, constants, misfits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.reflector import InformerState
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
        RunOptions(),
        RunOptions(streaming_list=False, page_size=3),
        RunOptions(streaming_list=False, list_resource_version="0"),
    ],
    ids=["streaming list", "pages of three", "list from the watch cache"],
)
async def test_cache_equals_the_server(
    operator: Operator, transport: Transport, namespace: str, options: RunOptions
) -> None:
    await create_configmaps(operator, namespace, *(f"map-{number}" for number in range(8)))
    async with SharedIndexInformer(ListWatch(transport, CONFIG_MAPS, namespace), options=options) as informer:
        await informer.wait_for_sync()
        assert sorted(each.data["of"] for each in informer.lister().list()) == [f"map-{number}" for number in range(8)]


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
        gadget = await gadgets.wait_for("default/first", timeout=50)
    assert gadget is not None
    assert gadget["spec"]["size"] == 3


class States:
    """The states that an informer reports from now on."""

    def __init__(self, informer: SharedIndexInformer[Any]) -> None:
        self._queue: asyncio.Queue[InformerState] = asyncio.Queue()
        informer.add_state_handler(self._queue.put_nowait)

    async def until(self, phase: Phase) -> InformerState:
        """Wait for the next state with this phase."""
        async with asyncio.timeout(200):
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


@pytest.mark.conformance("SHD-01", "SHD-02")
async def test_server_and_client_agree_on_shards(cluster: RealCluster, operator: Operator) -> None:
    body = {"metadata": {"generateName": "shards-"}}
    namespace = (await operator.create("/api/v1/namespaces", body))["metadata"]["name"]
    for number in range(30):
        await operator.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": f"map-{number}"}})
    seen: list[str] = []
    left_out = 0
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        for shard in shard_selectors(3):
            lister_watcher = ShardedListWatch(connection.transport, CONFIG_MAPS, shard, namespace)
            listed = {each.metadata.name for each in await ListPager(lister_watcher).list()}
            async with SharedIndexInformer(lister_watcher) as informer:
                await informer.wait_for_sync()
                assert {each.metadata.name for each in informer.lister().list()} == listed
            left_out += lister_watcher.left_out
            seen += listed
    assert sorted(seen) == sorted(f"map-{number}" for number in range(30))
    # A server that knows shards leaves out the objects of the others; of another one, each client does that twice.
    is_selected = (await operator.features()).get("ShardedListAndWatch", False)
    assert left_out == (0 if is_selected else 2 * 2 * 30)


@pytest.mark.parametrize("module", MODULES)
async def test_objects_are_of_the_stated_types(cluster: RealCluster, module: str) -> None:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        for name, kind in constants(module).items():
            resource = getattr(importlib.import_module(f"aioinformer.models.{module}"), name)
            if "list" not in resource.verbs:
                continue
            try:
                objects = await connection.client.resource(resource).list()
            except NotFound:
                continue  # an alpha or beta version that is not served
            for obj in objects:
                assert list(misfits(obj, module, kind)) == [], obj


@pytest.mark.conformance("EV-03", "EV-10", "EV-13")
@pytest.mark.parametrize("sink_class", [CoreEventSink, SeriesEventSink])
async def test_repetitions_are_one_event_in_either_api(
    cluster: RealCluster, operator: Operator, sink_class: type[CoreEventSink | SeriesEventSink]
) -> None:
    body = {"metadata": {"generateName": "events-"}}
    namespace = (await operator.create("/api/v1/namespaces", body))["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}"
    made = await operator.create(f"{path}/configmaps", {"metadata": {"name": "it"}})
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made["metadata"]}
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        assert isinstance(await discover_event_sink(connection.transport), SeriesEventSink)
        async with EventBroadcaster(grace=30.0) as broadcaster:
            recording = broadcaster.start_recording_to_sink(sink_class(connection.transport))
            recorder = broadcaster.new_recorder("example.com/recorder", "recorder-0")
            for _ in range(4):
                recorder.eventf(about, "Warning", "Tested", "%s", "ä" * 600, action="Test", annotations={"a": "1"})
                while recording.statistics().waiting:
                    await wait_for_one_request(operator)
    assert recording.statistics().refused == 0
    [event] = (await operator.request("GET", f"{path}/events"))[1]["items"]
    assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
    counts = event.get("count") if sink_class is CoreEventSink else event["series"]["count"]
    assert (counts, event["action"], event["metadata"]["annotations"]) == (4, "Test", {"a": "1"})


async def wait_for_one_request(operator: Operator) -> None:
    """Let other tasks run for the duration of one request."""
    await operator.request("GET", "/version")
