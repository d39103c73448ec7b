"""The metric of relists counts by reason, and not by attempts."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from aioinformer.errors import TransportError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.metrics import InformerName
from aioinformer.prometheus import PrometheusMetrics
from tests.support.collection import PODS, Collection, Response, line
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

LABELS = {"name": "shop", "group": "", "version": "v1", "resource": "pods"}
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
