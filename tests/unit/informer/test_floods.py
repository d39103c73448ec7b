"""Functions that raise for each object log few lines."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


def decoder(body: bytes) -> Any:
    raise ValueError


def index(pod: Any) -> list[str]:
    return [pod.metadata.labels["owner"]]


@pytest.mark.parametrize(
    "options",
    [{"indexers": {"owner": index}}, {"transform": index}, {"decoder": decoder}, {}],
    ids=["index function", "transform", "decoder", "handler"],
)
async def test_function_that_raises_for_each_object_logs_few_lines(
    caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    caplog.set_level("INFO")
    pods = Collection(*(f"p{number}" for number in range(300)))
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, **options)
    if not options:
        informer.add_event_handler(on_add=index)
    async with informer:
        await settled()
        assert sum(record.exc_info is not None for record in caplog.records) == ("decoder" not in options)
        assert len(caplog.records) < 20
        before = len(caplog.records)
        for number in range(200):
            pods.put(f"q{number}")
            await settled()
        assert len(caplog.records) == before
    if "decoder" not in options:
        assert "raised 499 more errors within 60 s" in caplog.text


async def test_doubled_number_of_undecodable_objects_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, transform=index, indexers={"owner": index})
    async with informer:
        for number in range(9):
            await settled()
            pods.put(f"p{number}")
        await settled()
    logged = [record.getMessage() for record in caplog.records if "degraded" in record.getMessage()]
    assert [line.split(": ")[2].split()[0] for line in logged] == ["1", "2", "4", "8"]
