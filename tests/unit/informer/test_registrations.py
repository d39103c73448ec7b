"""Handlers that are added late or removed early, and when each of them has synced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")

#: Yield to the loop as often as possible.
FINE = ReflectorOptions(slice_seconds=1e-9)


@pytest.mark.conformance("SI-20")
async def test_late_handler_gets_the_cache_as_initial_list() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    first, late = Recorder(), Recorder()
    informer.add_event_handler(first)
    async with informer:
        await settled()
        pods.put("a")
        pods.delete("b")
        await settled()
        before = list(first.received)
        informer.add_event_handler(late)
        pods.put("c")
        await settled()
    assert late.received == ["add! a 3", "add c 5"]
    assert first.received == [*before, "add c 5"]


@pytest.mark.conformance("SI-20", "SI-21", "SI-35")
@pytest.mark.parametrize("turns", range(0, 120, 3))
async def test_handler_added_during_a_list_gets_each_object_once(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(300)))
    informer = SharedIndexInformer(pods, options=FINE)
    async with informer:
        for _ in range(turns):
            await asyncio.sleep(0)
        late = Recorder()
        registration = informer.add_event_handler(late)
        await registration.wait_for_sync()
        assert late.received == [f"add! p{number} {number + 1}" for number in range(300)]


@pytest.mark.conformance("SI-20")
@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_handler_added_during_changes_gets_valid_history(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(100)))
    informer = SharedIndexInformer(pods, options=FINE)
    async with informer:
        await settled()
        with pods.at_once():
            for number in range(100):
                pods.put(f"p{number}")
        for _ in range(turns):
            await asyncio.sleep(0)
        late = Recorder()
        informer.add_event_handler(late)
        await settled()
    for number in range(100):
        received = [words for words in late.received if words.split()[1] == f"p{number}"]
        whole = [f"add! p{number} {number + 1}", f"update p{number} {number + 1} {number + 101}"]
        assert received in (whole, [f"add! p{number} {number + 101}"])


@pytest.mark.conformance("SI-20")
async def test_handler_added_by_a_predicate_gets_the_object_once() -> None:
    pods = Collection()
    informer = SharedIndexInformer(pods)
    late = Recorder()

    def join(obj: Any) -> bool:
        if obj is not None:
            informer.add_event_handler(late)
        return obj is not None

    async with informer:
        waiting = asyncio.ensure_future(informer.wait_for("default/a", join))
        await settled()
        pods.put("a")
        await waiting
        await settled()
    assert late.received == ["add! a 1"]


@pytest.mark.conformance("SI-18")
async def test_handler_may_be_registered_twice() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    first = informer.add_event_handler(recorder)
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        informer.remove_event_handler(first)
        pods.put("b")
        await settled()
    assert recorder.received == ["add! a 1", "add! a 1", "add b 2"]


@pytest.mark.conformance("SI-22")
async def test_handler_removed_before_the_start_is_not_called() -> None:
    informer = SharedIndexInformer(Collection("a"))
    recorder = Recorder()
    informer.remove_event_handler(informer.add_event_handler(recorder))
    async with informer:
        await settled()
    assert recorder.received == []


@pytest.mark.conformance("SI-22")
async def test_handlers_removed_at_once_do_not_delay_the_stop() -> None:
    loop = asyncio.get_running_loop()
    informer = SharedIndexInformer(Collection("a"), shutdown_grace=60)
    async with informer:
        await settled()
        for _ in range(3):
            informer.remove_event_handler(informer.add_event_handler(Recorder()))
        stop = loop.time()
    assert loop.time() == stop


@pytest.mark.conformance("SI-22", "SI-06")
async def test_removal_finishes_the_call_and_drops_the_rest() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    finished: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(10)
        finished.append(obj.metadata.name)

    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
        informer.remove_event_handler(registration)
        await asyncio.sleep(60)
    assert finished == ["a"]


@pytest.mark.conformance("SI-22")
async def test_handler_may_remove_itself() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    received: list[str] = []

    def on_add(obj: Any) -> None:
        received.append(obj.metadata.name)
        informer.remove_event_handler(registration)

    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
    assert received == ["a"]


@pytest.mark.conformance("SI-22")
async def test_redundant_removal_does_nothing() -> None:
    pods = Collection("a")
    informer, other = SharedIndexInformer(pods), SharedIndexInformer(Collection("a"))
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    async with informer:
        await settled()
        other.remove_event_handler(registration)
        pods.put("b")
        await settled()
        assert recorder.received == ["add! a 1", "add b 2"]
        informer.remove_event_handler(registration)
        informer.remove_event_handler(registration)
    informer.remove_event_handler(registration)


async def test_removing_an_invalid_registration_raises() -> None:
    with pytest.raises(UsageError, match="the result of add_event_handler, not Recorder"):
        SharedIndexInformer(Collection()).remove_event_handler(Recorder())  # type: ignore[arg-type]


@pytest.mark.conformance("SI-19", "ARC-09")
async def test_stopped_informer_refuses_handlers() -> None:
    informer = SharedIndexInformer(Collection())
    async with informer:
        await settled()
    with pytest.raises(InformerStopped, match="because it has stopped already"):
        informer.add_event_handler(Recorder())


@pytest.mark.conformance("SI-15")
async def test_nothing_has_synced_before_the_start() -> None:
    informer = SharedIndexInformer(Collection())
    registration = informer.add_event_handler(Recorder())
    await settled()
    assert not informer.has_synced()
    assert not registration.has_synced()


@pytest.mark.conformance("SI-13", "SI-14", "ST-01", "FAC-09")
async def test_handler_syncs_after_the_initial_list() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    slow = informer.add_event_handler(Recorder(pace=10))
    quick = informer.add_event_handler(Recorder())
    async with informer:
        await settled()
        assert (informer.has_synced(), quick.has_synced(), slow.has_synced()) == (True, True, False)
        await asyncio.sleep(15)
        assert not slow.has_synced()
        await asyncio.sleep(10)
        assert slow.has_synced()
        pods.put("c")
        await settled()
        assert slow.has_synced()


@pytest.mark.conformance("SI-14", "ST-01")
async def test_handler_of_an_empty_collection_syncs_at_once() -> None:
    informer = SharedIndexInformer(Collection())
    registration = informer.add_event_handler(Recorder())
    async with informer:
        await registration.wait_for_sync()
        assert informer.has_synced()


@pytest.mark.conformance("SI-14")
async def test_late_handler_syncs_after_its_own_initial_list() -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with informer:
        await informer.wait_for_sync()
        registration = informer.add_event_handler(Recorder(pace=10))
        await settled()
        assert not registration.has_synced()
        await asyncio.sleep(10)
        assert registration.has_synced()


async def test_removal_fails_waits_for_the_handler() -> None:
    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(Recorder(pace=3600))
    async with informer:
        waiting = asyncio.ensure_future(registration.wait_for_sync())
        await settled()
        informer.remove_event_handler(registration)
        with pytest.raises(InformerStopped, match="removed"):
            await waiting


@pytest.mark.parametrize(
    "functions",
    [
        {"on_add": lambda obj, initial: None},
        {"on_add": lambda: None},
        {"on_update": lambda new: None},
        {"on_delete": lambda old, new: None},
    ],
)
async def test_function_with_another_signature_is_refused(functions: dict[str, Any]) -> None:
    informer = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match=rf"handler\.{next(iter(functions))}\(.*cannot be called with its arguments: "):
        informer.add_event_handler(**functions)
