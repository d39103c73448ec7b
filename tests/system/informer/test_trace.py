"""Traces: an operation that takes long is logged with its steps."""

from __future__ import annotations

import logging

import pytest

from aioinformer import Client, HttpTransport, ListWatch, RunOptions, SharedIndexInformer
from aioinformer.logs import Trace
from aioinformer.models.core_v1 import CONFIG_MAPS
from aioinformer.reflector import ListPager
from aioinformer.testing import ApiServer

LOGGER = logging.getLogger("aioinformer.reflector")


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer")


def test_slow_operation_is_logged_with_the_time_of_each_step(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace(LOGGER, "pods: list", clock)
    clock.now += 2
    trace.step("20 objects listed")
    clock.now += 9.5
    trace.step("queued")
    trace.log_if_long(12)
    trace.log_if_long(10)
    assert caplog.messages == ["pods: list took 11.5 s: 20 objects listed +2.0 s, queued +9.5 s"]
    assert [record.name for record in caplog.records] == [LOGGER.name]


def test_list_without_an_end_is_reported_at_doubled_numbers_of_pages(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace(LOGGER, "pods: list", clock)
    for _ in range(41_000):
        clock.now += 0.01
        trace.count(500)
        trace.count(pages=1)
    what = "pods: list has not ended after {} pages with {} objects in {} s: does the server repeat continue tokens?"
    expected = [(5000, 50), (10_000, 100), (20_000, 200), (40_000, 400)]
    assert caplog.messages == [what.format(pages, 500 * pages, seconds) for pages, seconds in expected]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


@pytest.mark.parametrize(("pages", "seconds"), [(4999, 100.0), (6000, 9.0)])
def test_list_with_few_pages_or_little_time_is_not_reported(
    caplog: pytest.LogCaptureFixture, pages: int, seconds: float
) -> None:
    clock = Clock()
    trace = Trace(LOGGER, "pods: list", clock)
    for _ in range(pages):
        clock.now += seconds / pages
        trace.count(1, pages=1)
    assert caplog.messages == []


@pytest.mark.parametrize("lister", ["informer", "pager", "client"])
async def test_each_kind_of_list_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, lister: str
) -> None:
    monkeypatch.setattr("aioinformer.logs._MANY_PAGES", 5)
    monkeypatch.setattr("aioinformer.logs._LONG_LIST", 0.0)
    async with ApiServer() as server, HttpTransport(server.url) as transport:
        for number in range(12):
            server.create("configmaps", {"metadata": {"name": f"a{number}", "namespace": "default"}})
        if lister == "informer":
            options = RunOptions(streaming_list=False, page_size=1)
            async with SharedIndexInformer(ListWatch(transport, CONFIG_MAPS), options=options) as informer:
                await informer.wait_for_sync()
        elif lister == "pager":
            await ListPager(ListWatch(transport, CONFIG_MAPS), page_size=1).list()
        else:
            await Client(transport).core.v1.configmaps.list(page_size=1)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2
    for line, pages in zip(warnings, (5, 10), strict=True):
        assert f"has not ended after {pages} pages with {pages} objects" in line
