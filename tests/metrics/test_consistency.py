"""A streaming list is compared with a list at its version, on request."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import OptionError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.pager import ENVIRONMENT_VARIABLE, InconsistentList
from tests.shell.collection import Collection, cut
from tests.shell.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.reflector.options import ListOptions

RAISE = ReflectorOptions(consistency_check="raise")
REPORT = ReflectorOptions(consistency_check="report")


class Lying(Collection):
    """Its lists are not what it streams: they lack one object, have one more, and one that is not the same."""

    def _page(self, options: ListOptions) -> bytes:
        document = json.loads(super()._page(options))
        items = [item for item in document["items"] if item["metadata"]["name"] != "a"]
        for item in items:
            if item["metadata"]["name"] == "b":
                item["data"] = "secret"
        extra = {"metadata": {"name": "x", "namespace": "default", "uid": "uid-x", "resourceVersion": "1"}}
        return json.dumps({**document, "items": [*items, extra]}).encode()


@pytest.mark.conformance("CON-01")
async def test_what_differs_ends_the_informer_and_is_told_by_key(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Lying("a", "b", "c"), options=RAISE)
    with pytest.raises(InconsistentList) as raised:
        await informer.run()
    error = raised.value
    assert (error.version, error.missing) == ("3", ("default/a",))
    assert (error.unexpected, error.different) == (("default/x",), ("default/b",))
    assert "secret" not in str(error) + caplog.text
    assert str(informer.state) == "stopped: crashed: InconsistentList"


@pytest.mark.conformance("CON-01")
async def test_what_differs_is_reported_and_the_informer_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception] = []
    informer = SharedIndexInformer(Lying("a", "b", "c"), options=REPORT, watch_error_handler=failures.append)
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
async def test_what_is_the_same_is_listed_once_at_the_version_of_the_stream_and_goes_on(page_size: int) -> None:
    pods = Collection("a", "b", "c")
    options = ReflectorOptions(consistency_check="raise", page_size=page_size)

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


class Unforeseen(Collection):
    """Whoever asks for a list at a version is raised something that is no error of this package."""

    async def request(self, options: ListOptions) -> Any:
        if options.resource_version_match == "Exact":
            raise ZeroDivisionError
        return await super().request(options)


@pytest.mark.parametrize("options", [RAISE, REPORT])
async def test_a_list_that_fails_in_a_way_that_nobody_foresaw_compares_nothing_and_ends_nothing(
    options: ReflectorOptions, caplog: pytest.LogCaptureFixture
) -> None:
    async with SharedIndexInformer(Unforeseen("a"), options=options) as informer:
        await asyncio.sleep(60)
        assert str(informer.state) == "watching"
    assert "version 1 could not be compared: every list failed" in caplog.text


@pytest.mark.conformance("CON-01")
async def test_nothing_is_compared_unless_it_is_asked_for() -> None:
    pods = Lying("a", "b")
    async with SharedIndexInformer(pods):
        await asyncio.sleep(10)
    assert [request.watch for request in pods.requests] == [True]


@pytest.mark.conformance("CON-01")
@pytest.mark.parametrize(
    ("value", "option", "outcome"),
    [
        ("true", "", "raises"),
        ("1", "", "raises"),
        ("report", "", "reports"),
        ("false", "", "nothing"),
        ("true", "off", "nothing"),
    ],
)
async def test_the_environment_asks_for_it_where_options_say_nothing(
    value: str, option: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
    failures: list[Exception] = []
    informer = SharedIndexInformer(
        Lying("a"), options=ReflectorOptions(consistency_check=option), watch_error_handler=failures.append
    )
    running = asyncio.create_task(informer.run())
    await settled()
    crashed = running.done() and isinstance(running.exception(), InconsistentList)
    running.cancel()
    assert {"raises": (True, 0), "reports": (False, 1), "nothing": (False, 0)}[outcome] == (crashed, len(failures))


@pytest.mark.parametrize("said", ["yes", "Raise"])
def test_what_else_the_option_says_is_refused(said: str) -> None:
    with pytest.raises(OptionError, match='consistency_check must be "off", "report" or "raise"'):
        ReflectorOptions(consistency_check=said)


async def test_what_else_the_environment_says_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "perhaps")
    with pytest.raises(OptionError, match=ENVIRONMENT_VARIABLE):
        await SharedIndexInformer(Collection()).run()


class Flaky(Collection):
    """The first lists of it fail."""

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
async def test_a_list_that_fails_is_tried_again_every_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer.reflector")
    pods = Flaky("a", failures=3)
    async with SharedIndexInformer(pods, options=RAISE):
        await asyncio.sleep(2.5)
        before = caplog.text
        await asyncio.sleep(1)
    assert "are as in a list" not in before
    assert "1 objects are as in a list at version 1" in caplog.text


@pytest.mark.conformance("CON-02")
@pytest.mark.parametrize(("failures", "expired", "lists"), [(1, True, 1), (1000, False, 60)])
async def test_a_version_that_is_forgotten_or_cannot_be_listed_is_given_up(
    failures: int, expired: bool, lists: int
) -> None:
    pods = Flaky("a", failures=failures, expired=expired)
    async with SharedIndexInformer(pods, options=RAISE) as informer:
        await asyncio.sleep(70)
        assert not informer.is_stopped()
    assert sum(not request.watch for request in pods.requests) == lists


@pytest.mark.conformance("CON-02")
async def test_a_stream_without_a_version_of_a_state_is_not_compared() -> None:
    pods = Lying()
    pods.version = 0
    async with SharedIndexInformer(pods, options=RAISE):
        await asyncio.sleep(10)
    assert all(request.watch for request in pods.requests)


async def test_an_object_that_does_not_decode_in_the_stream_is_left_out() -> None:
    pods = Collection("a", "b")

    def picky(obj: Any) -> Any:
        if obj.metadata.name == "a":
            raise ValueError
        return obj

    async with SharedIndexInformer(pods, options=RAISE, transform=picky) as informer:
        await asyncio.sleep(10)
        assert not informer.is_stopped()
        assert informer.skipped == 1
