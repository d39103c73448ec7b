"""What a process loads: a server that is filled and watched needs nothing about kinds, tables and rules.

The test runs a program in a process of its own, since this one has loaded more.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: In a test that starts a server, fills it in its own process, lists and watches.
MOST_MODULES = 120

LATER = tuple(f"aioinformer.testing.{room}" for room in ("kinds", "rules", "tables", "cel.checking"))

WATCHED = """
import asyncio, json, sys
from aioinformer import SharedInformerFactory
from aioinformer.testing import ApiServer, make_pod, populate
from aioinformer import HttpTransport

def loaded():
    return [name for name in sys.modules if name.startswith("aioinformer.testing")]

async def main():
    async with ApiServer() as server:
        await populate(server, 20)
        async with HttpTransport(server.url) as transport, SharedInformerFactory(transport) as factory:
            pods, lister = factory.core.v1.pods.informer(), factory.core.v1.pods.lister()
            await factory.wait_for_cache_sync()
            assert len(lister.list()) == 20
            read = loaded()
            server.create("configmaps", {"metadata": {"name": "settings"}})
            server.create("pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
            await pods.wait_for("default/web")
            assert lister.namespaced("default").get("web").spec.dns_policy == "ClusterFirst"
    print(json.dumps({"read": read, "written": loaded()}))

asyncio.run(main())
"""


def output_of(program: str) -> Any:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_modules_of_a_server_that_is_populated_and_watched() -> None:
    modules = output_of(WATCHED)
    assert not [name for name in modules["read"] if name.startswith(LATER)]
    assert len(modules["written"]) <= MOST_MODULES
