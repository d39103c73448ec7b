"""A replica of a ring as a process of its own: `python ring_replica.py KUBECONFIG NAMESPACE MEMBER`.

For each ConfigMap with the label `app=web`, it writes who has processed which sequence number, and in which epoch of
the slot.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aioinformer import LeaderElectionOptions
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.transport.auth.credentials import connect

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from typing import Any

TIMES = LeaderElectionOptions(lease_duration=4, renew_deadline=2.5, retry_period=0.5)


async def reconcile(request: Request[core_v1.ConfigMap]) -> None:
    if request.object is None or request.term is None:
        return
    data = dict(request.object.data or {})
    wanted = {"done": data.get("seq", ""), "by": sys.argv[3], "epoch": str(request.term.token)}
    if any(data.get(name) != value for name, value in wanted.items()):
        await request.client.core.v1.configmaps.patch(request.object, {"data": wanted})


def main() -> None:
    kubeconfig, namespace, member = sys.argv[1:]
    manager = Manager(
        "widgets",
        ring=ControllerRing("widgets", namespace, member=member, options=TIMES),
        namespaces=[namespace],
        grace=2.0,
    )
    manager.controller(core_v1.CONFIG_MAPS, informer={"label_selector": "app=web"})(reconcile)

    class Connecting:
        async def __aenter__(self) -> Any:
            self.connection = await connect(kubeconfig=kubeconfig)
            return (await self.connection.__aenter__()).transport

        async def __aexit__(self, *error: object) -> None:
            await self.connection.__aexit__(*error)  # type: ignore[arg-type]

    connecting: AbstractAsyncContextManager[Any] = Connecting()
    sys.exit(manager.run_as_program(lambda: connecting))


if __name__ == "__main__":
    main()
