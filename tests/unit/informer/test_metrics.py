"""Metrics of informers: their names, values and lifetime."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import DynamicInformers, ListWatch, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import TransportError, UsageError
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.metrics import InformerName, InformerStatistics
from aioinformer.prometheus import PrometheusMetrics
from tests.support.cluster import Cluster
from tests.support.collection import PODS, Collection, Response, line
from tests.support.limits import measure_slices
from tests.support.queues import QUEUES
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.informer import QueueName


LABELS = {"name": "shop", "group": "", "version": "v1", "resource": "pods"}


@pytest.fixture
def shop() -> Iterator[InformerName]:
    with InformerName("shop") as name:
        yield name


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def measured(shop: InformerName, registry: CollectorRegistry) -> dict[str, Any]:
    """The options of an informer of pods with metrics."""
    return {"identifier": shop.with_resource(PODS), "metrics": PrometheusMetrics(registry)}


def names(registry: CollectorRegistry) -> set[str]:
    """Return the values of the label `name` in a scrape."""
    return set(re.findall(r'informer_healthy{.*name="([^"]*)"', generate_latest(registry).decode()))


@pytest.mark.conformance("MET-02", "MET-04", "WEAK-04")
@pytest.mark.parametrize("queue", QUEUES)
async def test_scrape_has_informer_metrics_with_names_of_client_go(
    measured: dict[str, Any], registry: CollectorRegistry, queue: QueueName
) -> None:
    async def slow(obj: Any) -> None:
        await asyncio.sleep(1000)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(name, LABELS)

    pods = Collection()
    for name in "ab":
        pods.put(name, "secret-namespace", metadata={"labels": {"secret": "label"}}, data="secret-value")
    async with informer_of(pods, options=RunOptions(queue=queue), on_add=slow, **measured):
        pods.put("c")
        await asyncio.sleep(20)
        assert (shown("reflector_watches_total"), shown("reflector_items_per_watch_sum")) == (0, 1)
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
        assert b"secret" not in generate_latest(registry)


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
async def test_informer_without_reserved_name_has_no_metrics(
    measured: dict[str, Any], shop: InformerName, registry: CollectorRegistry
) -> None:
    first = SharedIndexInformer(Collection("a"), **measured)
    taken = measured | {"identifier": shop.with_resource(PODS)}
    async with informer_of("a", **taken) as (_, second, _), informer_of("a") as (_, third, _):
        assert registry.get_sample_value("informer_store_items", LABELS) == 0
    assert first.statistics().objects == 0
    for informer in (second, third):
        with pytest.raises(UsageError, match="pass metrics, or an identifier"):
            informer.statistics()
    del first
    gc.collect()
    assert b"shop" not in generate_latest(registry)  # metrics do not keep an informer in memory


@pytest.mark.conformance("MET-02")
@pytest.mark.parametrize("queue", QUEUES)
async def test_queued_counts_waiting_deltas(
    shop: InformerName, queue: QueueName, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure_slices(monkeypatch, lambda: 0.0)  # all changes are received in one slice
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(
        pods, options=RunOptions(queue=queue), identifier=shop.with_resource(PODS)
    )
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
        waiting = [3, 2, 1] if queue == "in_order" else [2, 1, 0]  # the version waits, too
        assert queued == waiting
        assert informer.statistics().queued == 0


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


async def test_factories_without_name_are_called_default(registry: CollectorRegistry) -> None:
    metrics = PrometheusMetrics(registry)
    factories = [SharedInformerFactory(Cluster(), metrics=metrics) for _ in range(3)]
    factories += [SharedInformerFactory(Cluster(), name="shop", metrics=metrics) for _ in range(2)]
    for factory in factories:
        factory.core.v1.pods.informer()
    assert names(registry) == {"default", "default-2", "default-3", "shop", "shop-2"}
    assert [factory.snapshot()["name"] for factory in factories[:3]] == ["default", "default-2", "default-3"]
    await factories[1].shutdown()
    assert names(registry) == {"default", "default-3", "shop", "shop-2"}
    async with DynamicInformers(Cluster(), metrics=metrics) as fourth:
        await fourth.informer(PODS)
        assert names(registry) == {"default", "default-2", "default-3", "shop", "shop-2"}
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


async def test_informer_works_if_its_metrics_raise(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def register(self, source: Any) -> None:
            raise UsageError("taken")

    async with SharedIndexInformer(Collection("a"), metrics=Broken()) as informer:
        await informer.wait_for_sync()
    assert "the metrics provider raised" in caplog.text


async def test_scrape_has_health_errors_and_age(measured: dict[str, Any], registry: CollectorRegistry) -> None:
    def fail(obj: Any) -> Any:
        return 1 / 0

    def shown(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, LABELS | labels)

    informer = SharedIndexInformer(
        Collection("a", "b"), transform=lambda obj: obj if obj.metadata.name == "a" else None, **measured
    )
    registration = informer.add_event_handler(on_add=fail)
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


async def test_multi_namespace_informer_sums_its_namespaces(measured: dict[str, Any]) -> None:
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(
        lambda namespace: Collection("a"), ["one", "two"], **measured
    )
    async with informer:
        await informer.wait_for_sync()
        numbers = informer.statistics()
    assert isinstance(numbers, InformerStatistics)
    assert (numbers.lists.count, numbers.listed, numbers.queued) == (2, 2, 0)


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
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, options=RunOptions(queue=queue), name="pods")
    now = 0.0
    monkeypatch.setattr("aioinformer.informer.process_loop.perf_counter", lambda: now)

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
    [
        (Collection.expire_watches, "expired"),
        (break_lines, "broken"),
        (fail, "error"),
        (restore, "restored"),
        (refuse, "refused"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_relist_is_counted_by_reason(
    happens: Callable[[Collection], None], reason: str, measured: dict[str, Any], registry: CollectorRegistry
) -> None:
    def relists(reason: str) -> float | None:
        return registry.get_sample_value("reflector_relists_total", LABELS | {"reason": reason})

    async with informer_of("a", "b", "c", **measured) as (pods, informer, _):
        assert (relists("first"), relists(reason)) == (1, 0)
        happens(pods)
        await asyncio.sleep(60)
        assert informer.state.healthy
        assert (relists("first"), relists(reason)) == (1, 1)
        pods.put("d")
        await asyncio.sleep(1)
        happens(pods)
        await asyncio.sleep(120)
        assert relists(reason) == 2


async def test_failed_attempts_are_no_relists(measured: dict[str, Any]) -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(5))
    async with informer_of(pods, **measured) as (_, informer, _):
        statistics = informer.statistics()
    assert statistics.relists == {"first": 1}
    assert statistics.lists.count == 6


async def test_lists_in_place_of_a_watch_are_counted_as_polling(measured: dict[str, Any]) -> None:
    pods = Collection("a")
    for _ in range(6):
        page = Response()
        page.feed(json.dumps({"kind": "PodList", "metadata": {}, "items": []}).encode())
        page.end()
        pods.refuse(405, "MethodNotAllowed")  # a watch, or a streaming list
        pods.refusals.append(page)
    async with informer_of(pods, **measured) as (_, informer, _):
        await asyncio.sleep(20)
        statistics = informer.statistics()
        assert informer.state.phase == "polling"
        assert informer.reflectors()[""].attempts == 0
    assert statistics.relists["polling"] >= 2
