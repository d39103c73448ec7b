"""A replica in a process of its own, of the version of the package that is imported: this one, or an earlier one.

    python replica_of_a_version.py ring|election URL MEMBER

It writes its name and token into each object until SIGTERM, and then stops in order.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import aioinformer
from aioinformer import HttpTransport, LeaderElectionOptions
from aioinformer.controller import Controller, LeaderElection, Manager
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing

TIMES = LeaderElectionOptions(lease_duration=6, renew_deadline=4.0, retry_period=0.2)


async def main(kind: str, url: str, member: str) -> None:
    async def reconcile(request: Any) -> None:
        if request.object is None or (request.object.data or {}).get("by") == member:
            return
        data = {"by": member, "token": str(request.term.token)}
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": data})

    selected: Any = {"label_selector": "app=web"}
    controller = Controller("widgets", core_v1.CONFIG_MAPS, reconcile, informer=selected)
    options: Any = {"leader_election": LeaderElection("widgets", options=TIMES, identity=member)}
    if kind == "ring":
        options = {"ring": ControllerRing("widgets", slots=16, member=member, options=TIMES)}
    async with HttpTransport(url) as transport:
        running = asyncio.ensure_future(Manager("widgets", [controller], client=transport, **options).run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        print(aioinformer.__file__, flush=True)
        await asyncio.wait({running})
        if not running.cancelled():
            running.result()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
