"""Metrics of informers: their names, values and lifetime."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer.errors import TransportError, UsageError
from aioinformer.factory.dynamic import DynamicInformers
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.factory.multi_namespace import MultiNamespaceInformer
from aioinformer.informer.pipeline import QueueKind
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.metrics import InformerName, InformerStatistics
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.reflector.listwatch import ListWatch
from tests.support.cluster import Cluster
from tests.support.collection import PODS, Collection, Response, line
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.informer.pipeline import QueueName


LABELS = {"name": "shop", "group": "", "version": "v1", "resource": "pods"}


@pytest.fixture
def shop() -> Iterator[InformerName]:
    with InformerName("shop") as name:
        yield name


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.mark.conformance("MET-02", "MET-04", "WEAK-04")
@pytest.mark.parametrize("queue", QueueKind)
async def test_scrape_has_informer_metrics_with_names_of_client_go(
    shop: InformerName, registry: CollectorRegistry, queue: QueueKind
) -> None:
    metrics = PrometheusMetrics(registry)

    async def slow(obj: Any) -> None:
        await asyncio.sleep(1000)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(name, LABELS)

    async with informer_of(
        "a", "b", queue=queue, identifier=shop.with_resource(PODS), metrics=metrics, on_add=slow
    ) as (pods, _, _):
        pods.put("c")
        await asyncio.sleep(20)
        pods.end_watches()
        await settled()
        assert shown("informer_store_items") == 3
        assert shown("informer_store_resource_version") == 3
        assert shown("informer_queued_items") == 0
        assert shown("informer_pending_notifications") == 3
        assert shown("informer_processing_latency_seconds_count") == 2
        assert (shown("reflector_lists_total"), shown("reflector_items_per_list_sum")) == (1, 2)
        assert (shown("reflector_watches_total"), shown("reflector_items_per_watch_sum")) == (1, 1)
        assert shown("reflector_watch_duration_seconds_sum") == pytest.approx(20, abs=0.01)
        assert shown("reflector_short_watches_total") == 0


@pytest.mark.conformance("MET-04")
@pytest.mark.parametrize(
    ("version", "number"),
    [("", 0.0), ("42", 42.0), ("1234567890123456789", 567890123456789.0), ("0x2a", None), ("४२", None), ("-1", None)],
)
async def test_version_number_has_at_most_fifteen_digits(
    shop: InformerName, version: str, number: float | None
) -> None:
    informer = SharedIndexInformer(Collection(), identifier=shop.with_resource(PODS))
    informer.get_indexer().bookmark(version)
    assert informer.statistics().version_number == number


@pytest.mark.conformance("MET-03")
async def test_informer_without_reserved_name_has_no_metrics(shop: InformerName, registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry)
    first = SharedIndexInformer(Collection("a"), identifier=shop.with_resource(PODS), metrics=metrics)
    second = SharedIndexInformer(Collection("a"), identifier=shop.with_resource(PODS), metrics=metrics)
    third = SharedIndexInformer(Collection("a"))
    async with second, third:
        await settled()
        assert registry.get_sample_value("informer_store_items", LABELS) == 0
    assert first.statistics().objects == 0
    for informer in (second, third):
        with pytest.raises(UsageError, match="pass metrics, or an identifier"):
            informer.statistics()


@pytest.mark.conformance("MET-02")
@pytest.mark.parametrize("queue", QueueKind)
async def test_queued_counts_waiting_deltas(shop: InformerName, queue: QueueKind) -> None:
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, queue=queue, identifier=shop.with_resource(PODS))
    queued: list[int] = []

    def look(obj: Any) -> list[str]:
        queued.append(informer.statistics().queued)
        return []

    informer.add_indexers({"look": look})
    async with informer:
        await informer.wait_for_sync()
        queued.clear()
        with pods.at_once():
            for name in "bcd":
                pods.put(name)
        await settled()
        waiting = [3, 2, 1] if queue is QueueKind.IN_ORDER else [2, 1, 0]  # the version waits, too
        assert queued == waiting
        assert informer.statistics().queued == 0


@pytest.mark.conformance("MET-07")
async def test_released_informer_is_not_exported(shop: InformerName, registry: CollectorRegistry) -> None:
    informer = SharedIndexInformer(
        Collection("a"), identifier=shop.with_resource(PODS), metrics=PrometheusMetrics(registry)
    )
    async with informer:
        await informer.wait_for_sync()
    before = registry.get_sample_value("informer_store_items", LABELS)
    shop.release()
    assert (before, registry.get_sample_value("informer_store_items", LABELS)) == (1, None)


async def test_metrics_do_not_keep_an_informer_in_memory(shop: InformerName, registry: CollectorRegistry) -> None:
    SharedIndexInformer(Collection(), identifier=shop.with_resource(PODS), metrics=PrometheusMetrics(registry))
    gc.collect()
    assert b"shop" not in generate_latest(registry)


@pytest.mark.conformance("FAC-01", "MET-07")
async def test_shutdown_of_a_factory_releases_its_name(registry: CollectorRegistry) -> None:
    class Unreachable:
        async def request(self, *args: Any, **kwargs: Any) -> Any:
            raise OSError

    name = InformerName("shop")
    factory = SharedInformerFactory(Unreachable(), name=name, metrics=PrometheusMetrics(registry))
    factory.core.v1.pods.informer()
    factory.apps.v1.deployments.informer()
    text = generate_latest(registry).decode()
    assert 'informer_store_items{group="",name="shop",resource="pods",version="v1"}' in text
    assert 'informer_store_items{group="apps",name="shop",resource="deployments",version="v1"}' in text
    await factory.shutdown()
    InformerName("shop").release()
    assert "shop" not in generate_latest(registry).decode()


def names(registry: CollectorRegistry) -> set[str]:
    """Return the values of the label `name` in a scrape."""
    return set(re.findall(r'informer_healthy{.*name="([^"]*)"', generate_latest(registry).decode()))


async def test_factories_without_name_are_called_default(registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry)
    factories = [SharedInformerFactory(Cluster(), metrics=metrics) for _ in range(3)]
    for factory in factories:
        factory.core.v1.pods.informer()
    assert names(registry) == {"default", "default-2", "default-3"}
    assert [factory.snapshot()["name"] for factory in factories] == ["default", "default-2", "default-3"]
    await factories[1].shutdown()
    assert names(registry) == {"default", "default-3"}
    async with DynamicInformers(Cluster(), metrics=metrics) as fourth:
        await fourth.informer(PODS)
        assert names(registry) == {"default", "default-2", "default-3"}
    for factory in factories:
        await factory.shutdown()


async def test_single_informer_with_metrics_needs_no_name(registry: CollectorRegistry) -> None:
    informer = SharedIndexInformer(
        ListWatch(Cluster(), PODS, "team", label_selector="app=web"), metrics=PrometheusMetrics(registry)
    )
    async with informer:
        assert names(registry) == {"default"}
        assert 'scope="namespace=team&labelSelector=app=web"' in generate_latest(registry).decode()
    assert names(registry) == set()
    InformerName("default").release()


async def test_name_in_use_gets_a_number(registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry)
    first = SharedInformerFactory(Cluster(), name="shop", metrics=metrics)
    second = SharedInformerFactory(Cluster(), name="shop", metrics=metrics)
    first.core.v1.pods.informer()
    second.core.v1.pods.informer()
    assert names(registry) == {"shop", "shop-2"}
    await first.shutdown()
    await second.shutdown()


async def test_name_without_reference_is_free() -> None:
    SharedInformerFactory(Cluster(), name="forgotten")
    gc.collect()
    with InformerName("forgotten"):
        pass


async def test_each_scope_of_a_resource_is_a_series(registry: CollectorRegistry) -> None:
    factory = SharedInformerFactory(Cluster(), metrics=PrometheusMetrics(registry), name="shop")
    factory.core.v1.pods.informer()
    factory.core.v1.pods.informer(label_selector="app=web")
    labels = LABELS | {"scope": "labelSelector=app=web"}
    assert registry.get_sample_value("informer_store_items", LABELS) == 0
    assert registry.get_sample_value("informer_store_items", labels) == 0
    assert registry.get_sample_value("informer_phase", labels | {"phase": "new"}) == 1
    await factory.shutdown()


async def test_without_metrics_nothing_is_counted(shop: InformerName) -> None:
    factory = SharedInformerFactory(Cluster(), name=shop)
    informer = factory.core.v1.pods.informer()
    with pytest.raises(UsageError, match="counts nothing"):
        informer.statistics()
    await factory.shutdown()


async def test_informer_works_if_its_metrics_raise(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def register(self, source: Any) -> None:
            raise UsageError("taken")

    async with SharedIndexInformer(Collection("a"), metrics=Broken()) as informer:
        await informer.wait_for_sync()
    assert "the metrics provider raised" in caplog.text


async def test_scrape_has_health_errors_and_age(shop: InformerName, registry: CollectorRegistry) -> None:
    pods = Collection("a", "b")

    def refuse(obj: Any) -> Any:
        if obj.metadata.name == "b":
            raise ValueError
        return obj

    def on_add(obj: Any) -> None:
        raise ValueError

    def shown(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, LABELS | labels)

    metrics = PrometheusMetrics(registry)
    informer = SharedIndexInformer(pods, transform=refuse, identifier=shop.with_resource(PODS), metrics=metrics)
    registration = informer.add_event_handler(on_add=on_add)
    assert (shown("informer_healthy"), shown("informer_phase", phase="new")) == (0, 1)
    assert shown("informer_last_event_age_seconds") is None
    async with informer:
        await registration.wait_for_sync()
        assert (shown("informer_healthy"), shown("informer_phase", phase="degraded")) == (0, 1)
        assert shown("informer_phase", phase="new") == 0
        assert (shown("informer_undecodable_objects"), shown("informer_skipped_objects_total")) == (1, 1)
        assert shown("informer_handler_errors_total") == 1
        age = shown("informer_last_event_age_seconds")
        assert age is not None
        assert 0 <= age < 60
        informer.remove_event_handler(registration)
        assert shown("informer_handler_errors_total") == 1
    assert shown("informer_phase", phase="stopped") == 1


async def test_multi_namespace_informer_sums_its_namespaces(shop: InformerName) -> None:
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(
        lambda namespace: Collection("a"),
        ["one", "two"],
        identifier=shop.with_resource(PODS),
        metrics=PrometheusMetrics(CollectorRegistry()),
    )
    async with informer:
        await informer.wait_for_sync()
        numbers = informer.statistics()
    assert isinstance(numbers, InformerStatistics)
    assert (numbers.lists.count, numbers.listed, numbers.queued) == (2, 2, 0)


async def test_no_content_of_objects_is_in_metrics(shop: InformerName, registry: CollectorRegistry) -> None:
    pods = Collection()
    pods.put("secret-name", "secret-namespace", metadata={"labels": {"secret": "label"}}, data="secret-value")
    async with informer_of(pods, identifier=shop.with_resource(PODS), metrics=PrometheusMetrics(registry)):
        assert b"secret" not in generate_latest(registry)


@pytest.mark.conformance("RF-16")
@pytest.mark.parametrize(
    ("queue", "size", "each", "slow"),
    [("delta", 40, 0.2, True), ("in_order", 40, 0.2, True), ("delta", 5, 0.5, False), ("delta", 40, 0.01, False)],
)
async def test_slow_batch_is_logged_if_the_queue_is_long(
    queue: QueueName,
    size: int,
    each: float,
    slow: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO", "aioinformer.informer")
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, queue=queue, name="pods")
    now = 0.0
    monkeypatch.setattr("aioinformer.informer.controller.perf_counter", lambda: now)

    def by_size(obj: Any) -> list[str]:
        nonlocal now
        now += each
        return []

    informer.add_indexers({"size": by_size})
    async with informer:
        await informer.wait_for_sync()
        caplog.clear()
        with pods.at_once():
            for number in range(size):
                pods.put(f"pod-{number}")
        await settled()
    lines = [record.getMessage() for record in caplog.records if record.name == "aioinformer.informer"]
    assert bool(lines) == slow
    assert all(re.fullmatch(r"pods: processing took \d\.\d s for a batch of \d\d", line) for line in lines)


FAILED = line("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})


def expire(pods: Collection) -> None:
    pods.expire_watches()


def break_lines(pods: Collection) -> None:
    for delay in (0, 5):  # the first time, the watch is only opened again
        asyncio.get_running_loop().call_later(delay, pods.send, b"{broken}\n")


def fail(pods: Collection) -> None:
    pods.send(FAILED)
    pods.end_watches()


def restore(pods: Collection) -> None:
    pods.version = 1
    for obj in pods.objects.values():
        obj["metadata"]["resourceVersion"] = "1"
    pods.send(line("BOOKMARK", {"metadata": {"resourceVersion": "1"}}))


def refuse(pods: Collection) -> None:
    pods.refuse(403, "Forbidden")
    pods.end_watches()


@pytest.mark.parametrize(
    ("happens", "reason"),
    [(expire, "expired"), (break_lines, "broken"), (fail, "error"), (restore, "restored"), (refuse, "refused")],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_relist_is_counted_by_reason(happens: Callable[[Collection], None], reason: str) -> None:
    pods, registry = Collection("a", "b", "c"), CollectorRegistry()

    def relists(reason: str) -> float | None:
        return registry.get_sample_value("reflector_relists_total", LABELS | {"reason": reason})

    with InformerName("shop") as shop:
        informer: SharedIndexInformer[Any] = SharedIndexInformer(
            pods, identifier=shop.with_resource(PODS), metrics=PrometheusMetrics(registry)
        )
        async with informer:
            await informer.wait_for_sync()
            await settled()
            assert (relists("first"), relists(reason)) == (1, None)
            happens(pods)
            await asyncio.sleep(60)
            assert informer.state.healthy
            assert (relists("first"), relists(reason)) == (1, 1)
            pods.put("d")
            await asyncio.sleep(1)
            happens(pods)
            await asyncio.sleep(120)
            assert relists(reason) == 2


async def test_failed_attempts_are_not_counted() -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(5))
    with InformerName("shop") as shop:
        metrics = PrometheusMetrics(CollectorRegistry())
        informer: SharedIndexInformer[Any] = SharedIndexInformer(
            pods, identifier=shop.with_resource(PODS), metrics=metrics
        )
        async with informer:
            await informer.wait_for_sync()
            statistics = informer.statistics()
    assert statistics.relists == {"first": 1}
    assert statistics.lists.count == 6


async def test_lists_in_place_of_a_watch_count_as_polling() -> None:
    pods = Collection("a")
    page = json.dumps({"kind": "PodList", "metadata": {}, "items": []}).encode()
    with InformerName("shop") as shop:
        metrics = PrometheusMetrics(CollectorRegistry())
        informer: SharedIndexInformer[Any] = SharedIndexInformer(
            pods, identifier=shop.with_resource(PODS), metrics=metrics
        )
        for _ in range(6):
            pods.refuse(405, "MethodNotAllowed")  # a watch, or a streaming list
            pods.refusals.append(_answer(page))
        async with informer:
            await asyncio.sleep(20)
            statistics = informer.statistics()
            assert informer.state.phase == "polling"
            assert informer.reflectors()[""].attempts == 0
    assert statistics.relists["polling"] >= 2


def _answer(body: bytes) -> Any:
    response = Response()
    response.feed(body)
    response.end()
    return response
