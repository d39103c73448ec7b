"""The consistency check: a streaming list is compared with a list at its version, if the environment asks for it."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import OptionError
from aioinformer.reflector import ENVIRONMENT_VARIABLE, InconsistentList
from tests.support.collection import Collection, cut
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.reflector import ListOptions


@pytest.fixture(autouse=True)
def raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "raise")


class InconsistentCollection(Collection):
    """Lists differ from the stream: one object is missing, one is unexpected, and one has other data."""

    def _page(self, options: ListOptions) -> bytes:
        document = json.loads(super()._page(options))
        items = [item for item in document["items"] if item["metadata"]["name"] != "a"]
        for item in items:
            if item["metadata"]["name"] == "b":
                item["data"] = "secret"
        extra = {"metadata": {"name": "x", "namespace": "default", "uid": "uid-x", "resourceVersion": "1"}}
        return json.dumps({**document, "items": [*items, extra]}).encode()


@pytest.mark.conformance("CON-01")
async def test_difference_stops_the_informer_and_names_keys(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(InconsistentCollection("a", "b", "c"))
    with pytest.raises(InconsistentList) as raised:
        await informer.run()
    error = raised.value
    assert (error.version, error.missing) == ("3", ("default/a",))
    assert (error.unexpected, error.different) == (("default/x",), ("default/b",))
    assert "secret" not in str(error) + caplog.text
    assert str(informer.state) == "stopped: crashed: InconsistentList"


@pytest.mark.conformance("CON-01")
async def test_difference_is_reported_and_the_informer_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "report")
    failures: list[Exception] = []
    informer = SharedIndexInformer(InconsistentCollection("a", "b", "c"))
    informer.set_watch_error_handler(failures.append)
    async with informer:
        await settled()
        assert informer.has_synced()
        assert not informer.is_stopped()
    assert [type(failure) for failure in failures] == [InconsistentList]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "informer of pods: a streaming list and a list at its version 3 differ. only in the stream: default/a; "
        "only in the list: default/x; different: default/b"
    ]


@pytest.mark.conformance("CON-01")
@pytest.mark.parametrize("page_size", [2, 0])
async def test_equal_list_is_read_once_at_the_version_of_the_stream(page_size: int) -> None:
    pods = Collection("a", "b", "c")
    options = RunOptions(page_size=page_size)

    def changed(pod: Any) -> Any:
        return {**pod.to_dict(), "seen": True}

    async with SharedIndexInformer(pods, options=options, transform=changed, storage="dict") as informer:
        await settled()
        assert len(informer.get_store().list_keys()) == 3
        assert not informer.is_stopped()
        pods.end_watches()
        await asyncio.sleep(60)
    lists = [request for request in pods.requests if not request.watch]
    assert (lists[0].resource_version, lists[0].resource_version_match, lists[0].limit) == ("3", "Exact", page_size)
    assert len(lists) == (2 if page_size else 1)


@pytest.mark.conformance("CON-01")
async def test_lists_are_not_compared_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    pods = InconsistentCollection("a", "b")
    async with SharedIndexInformer(pods):
        await asyncio.sleep(10)
    assert [request.watch for request in pods.requests] == [True]


@pytest.mark.conformance("CON-01")
@pytest.mark.parametrize(
    ("value", "outcome"), [("true", "raises"), ("1", "raises"), ("report", "reports"), ("false", "nothing")]
)
async def test_environment_variable_selects_what_follows(
    value: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
    failures: list[Exception] = []
    informer = SharedIndexInformer(InconsistentCollection("a"))
    informer.set_watch_error_handler(failures.append)
    running = asyncio.create_task(informer.run())
    await settled()
    crashed = running.done() and isinstance(running.exception(), InconsistentList)
    running.cancel()
    assert {"raises": (True, 0), "reports": (False, 1), "nothing": (False, 0)}[outcome] == (crashed, len(failures))


async def test_invalid_environment_variable_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "perhaps")
    with pytest.raises(OptionError, match=ENVIRONMENT_VARIABLE):
        await SharedIndexInformer(Collection()).run()


class FlakyCollection(Collection):
    """The first lists fail."""

    def __init__(self, *names: str, failures: int, expired: bool = False) -> None:
        super().__init__(*names)
        self.failures = failures
        self.expired = expired

    async def request(self, options: ListOptions) -> Any:
        if not options.watch and self.failures:
            self.failures -= 1
            if self.expired:
                self.refuse(410, "Expired")
            else:
                self.refusals.append(cut())
        return await super().request(options)


@pytest.mark.conformance("CON-02")
async def test_failed_list_is_retried_every_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer.reflector")
    pods = FlakyCollection("a", failures=3)
    async with SharedIndexInformer(pods):
        await asyncio.sleep(2.5)
        before = caplog.text
        await asyncio.sleep(1)
    assert "equals a list" not in before
    assert "the streaming list of 1 objects equals a list at version 1" in caplog.text


@pytest.mark.conformance("CON-02")
@pytest.mark.parametrize(("failures", "expired", "lists"), [(1, True, 1), (1000, False, 60)])
async def test_comparison_ends_if_the_version_cannot_be_listed(failures: int, expired: bool, lists: int) -> None:
    pods = FlakyCollection("a", failures=failures, expired=expired)
    async with SharedIndexInformer(pods) as informer:
        await asyncio.sleep(70)
        assert not informer.is_stopped()
    assert sum(not request.watch for request in pods.requests) == lists


@pytest.mark.conformance("CON-02")
async def test_stream_without_version_is_not_compared() -> None:
    pods = InconsistentCollection()
    pods.version = 0
    async with SharedIndexInformer(pods):
        await asyncio.sleep(10)
    assert all(request.watch for request in pods.requests)
