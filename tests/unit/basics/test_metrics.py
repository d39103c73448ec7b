"""Metrics: names of informers, the identities made from them, and work queues in Prometheus."""

from __future__ import annotations

import asyncio
import gc

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import RateLimitingQueue
from aioinformer.errors import UsageError
from aioinformer.metrics import InformerName
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.workqueue import DelayingQueue, WorkQueue


@pytest.mark.conformance("MET-05")
@pytest.mark.parametrize("name", ["", "shop"])
def test_name_must_be_unique_and_not_empty(name: str) -> None:
    with InformerName("shop"), pytest.raises(UsageError, match=f"name=[\"']{name}[\"']"):
        InformerName(name)


@pytest.mark.conformance("MET-05")
def test_released_name_can_be_used_again() -> None:
    first = InformerName("shop")
    first.release()
    first.release()
    with InformerName("shop") as second:
        first.release()  # does not release the second
        with pytest.raises(UsageError, match="in use"):
            InformerName("shop")
        assert second.with_resource(core_v1.PODS).reserved


@pytest.mark.conformance("MET-06")
def test_first_identity_of_name_and_resource_is_reserved(caplog: pytest.LogCaptureFixture) -> None:
    with InformerName("shop") as shop, InformerName("office") as office:
        identities = [name.with_resource(core_v1.PODS) for name in (shop, shop, office)]
        identities.append(shop.with_resource(core_v1.NODES))
        assert [identity.reserved for identity in identities] == [True, False, True, True]
        assert "v1/pods of shop has no metrics" in caplog.text


@pytest.mark.conformance("MET-07")
def test_release_of_a_name_releases_its_identities() -> None:
    shop = InformerName("shop")
    pods = shop.with_resource(core_v1.PODS)
    shop.release()
    assert not pods.reserved
    assert not shop.with_resource(core_v1.NODES).reserved


@pytest.mark.conformance("MET-07")
def test_released_identity_can_be_reserved_again() -> None:
    with InformerName("shop") as shop:
        first = shop.with_resource(core_v1.PODS)
        first.release()
        second = shop.with_resource(core_v1.PODS)
        first.release()
        assert (first.reserved, second.reserved) == (False, True)


@pytest.mark.conformance("WQ-14")
async def test_scrape_has_queue_metrics_with_names_of_client_go() -> None:
    registry = CollectorRegistry()
    queue: DelayingQueue[str] = DelayingQueue("orders", metrics=PrometheusMetrics(registry))
    for item in "abc":
        queue.add(item)
    queue.add_after("d", 60)
    await asyncio.sleep(2)
    await queue.get()
    queue.done(await queue.get())
    await asyncio.sleep(3)

    def shown(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "orders", **labels})

    assert shown("depth") == 1
    assert shown("adds_total") == 3
    assert shown("retries_total") == 1
    assert shown("queue_duration_seconds_count") == 2
    assert shown("queue_duration_seconds_sum") == pytest.approx(4)
    assert [shown("queue_duration_seconds_bucket", le=le) for le in ("1.0", "10.0", "+Inf")] == [0, 2, 2]
    assert shown("work_duration_seconds_count") == 1
    assert shown("unfinished_work_seconds") == pytest.approx(3)
    assert shown("longest_running_processor_seconds") == pytest.approx(3)


@pytest.mark.conformance("WQ-14")
def test_queue_without_name_is_not_exported() -> None:
    registry = CollectorRegistry()
    queue: RateLimitingQueue[str] = RateLimitingQueue(metrics=PrometheusMetrics(registry))
    queue.add("a")
    assert registry.get_sample_value("workqueue_depth", {"name": ""}) is None


def test_name_of_a_queue_is_free_after_its_shutdown() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    first: WorkQueue[str] = WorkQueue("orders", metrics=metrics)
    with pytest.raises(UsageError, match="'orders' is in use"):
        WorkQueue("orders", metrics=metrics)
    first.add("a")
    first.shut_down()
    second: WorkQueue[str] = WorkQueue("orders", metrics=metrics)
    del first
    gc.collect()
    second.add("a")
    second.add("b")
    assert registry.get_sample_value("workqueue_depth", {"name": "orders"}) == 2


def test_metrics_do_not_keep_a_queue_in_memory() -> None:
    registry = CollectorRegistry()
    WorkQueue("orders", metrics=PrometheusMetrics(registry))
    gc.collect()
    assert b'name="orders"' not in generate_latest(registry)
