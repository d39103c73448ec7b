"""A relist of unchanged objects has no visible effect."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache.indices import Index
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


class IndexWork:
    """Counts calls of index methods."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        for name in ("__init__", "evaluate", "add", "put", "remove"):
            monkeypatch.setattr(Index, name, self._counting(name, getattr(Index, name)))

    def _counting(self, name: str, method: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            return method(*arguments, **named)

        return counted


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "pages"])
async def test_relist_of_unchanged_objects_has_no_effect(streaming: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    work = IndexWork(monkeypatch)
    pods = Collection("a", "b", "c")
    informer = SharedIndexInformer(
        pods,
        indexers={"name": lambda pod: [pod.metadata.name], "node": "spec.nodeName"},
        options=ReflectorOptions(streaming_list=streaming, page_size=2),
    )
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        bodies = {record.key: record.raw for record in informer.get_indexer().store.items()}
        received, lists = len(recorder.received), len(pods.requests)
        assert {"__init__", "evaluate", "add"} <= set(work.calls)
        work.calls.clear()

        pods.expire_watches()
        await settled()
        again = pods.requests[lists]
        assert again.send_initial_events if streaming else not again.watch
        assert len(recorder.received) == received
        assert work.calls == []
        for record in informer.get_indexer().store.items():
            assert record.raw is bodies[record.key]
