"""Check that the documented permissions are sufficient, and that each of them is necessary."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from aioinformer import HttpTransport, LeaderElector, RunOptions, SharedInformerFactory
from aioinformer.events import EventBroadcaster, discover_event_sink
from aioinformer.reflector import Phase
from aioinformer.testing import ApiServer
from tests.project.docs.blocks import in_language

if TYPE_CHECKING:
    from pathlib import Path

[BLOCK] = [each for each in in_language("yaml") if "kind: ClusterRole" in each.code and "leases" in each.code]
ROLE, BINDING = yaml.safe_load_all(BLOCK.code)
POD = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main", "image": "example.com/web"}]}}
#: A streaming list needs only the verb "watch"; a relist may need both.
IN_PAGES = RunOptions(streaming_list=False)
USER = "system:serviceaccount:shop:my-controller"


async def control(transport: HttpTransport, patience: float) -> None:
    """Watch pods, lead, and write an Event and its repetition.

    Args:
        transport: of the user.
        patience: seconds for each of these.

    Raises:
        TimeoutError: something of this is forbidden.
    """
    async with AsyncExitStack() as stack:
        factory = await stack.enter_async_context(SharedInformerFactory(transport, options=IN_PAGES))
        pods = factory.core.v1.pods
        lister = pods.lister()
        (await factory.wait_for_cache_sync(timeout=patience)).check()
        async with asyncio.timeout(patience):
            while pods.informer().state.phase is not Phase.WATCHING:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
            for _ in range(2):
                async with LeaderElector(transport, "my-controller", identity="one").leading():
                    await asyncio.sleep(0)
        broadcaster = await stack.enter_async_context(EventBroadcaster(grace=0.2))
        recording = broadcaster.start_recording_to_sink(await discover_event_sink(transport))
        recorder = broadcaster.new_recorder("example.com/my-controller")
        for _ in range(2):
            recorder.event(lister.get("default/web-0"), "Normal", "Started", "it runs")
            async with asyncio.timeout(patience):
                while recording.statistics().waiting:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
        if recording.statistics().refused:
            raise TimeoutError("events were refused")


async def play(rules: list[dict[str, Any]], folder: Path, patience: float) -> None:
    """Run the controller with a role of these rules."""
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all([{**ROLE, "rules": rules}, BINDING]))
    async with ApiServer(authorization_mode="RBAC", tokens={"secret": USER}) as server:
        server.create("pods", POD)
        server.load_manifests(path)
        async with HttpTransport(server.url, token="secret") as transport:
            await control(transport, patience)


async def test_documented_permissions_are_sufficient(tmp_path: Path) -> None:
    await play(ROLE["rules"], tmp_path, 20.0)


@pytest.mark.parametrize(
    ("number", "verb"), [(number, verb) for number, rule in enumerate(ROLE["rules"]) for verb in rule["verbs"]]
)
async def test_each_documented_permission_is_necessary(number: int, verb: str, tmp_path: Path) -> None:
    rules = [dict(rule) for rule in ROLE["rules"]]
    rules[number]["verbs"] = [each for each in rules[number]["verbs"] if each != verb]
    with pytest.raises(TimeoutError):
        await play(rules, tmp_path, 0.5)
