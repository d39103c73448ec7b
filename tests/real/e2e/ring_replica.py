"""A replica of a ring as a process: `python -m tests.real.e2e.ring_replica KUBECONFIG NAMESPACE MEMBER TIMES [BUG]`.

For each change of a ConfigMap with the label `app=web`, it writes who has processed which sequence number, and in which
epoch of the slot. TIMES are the lease duration, the renew deadline and the retry period. BUG is one of
`tests/support/ring_bugs.py`, by its name.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from aioinformer import LeaderElectionOptions, connect
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from typing import Any


async def reconcile(request: Request[core_v1.ConfigMap]) -> None:
    if request.object is None or request.term is None:
        return
    data = request.object.data or {}
    if data.get("done") != data["seq"]:
        wanted = {"done": data["seq"], "by": sys.argv[3], "epoch": str(request.term.token)}
        await request.client.core.v1.configmaps.patch(request.object, {"data": wanted})


def main() -> None:
    kubeconfig, namespace, member, times, *bugs = sys.argv[1:]
    lease, renew, retry = map(float, times.split(","))
    options = LeaderElectionOptions(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    manager = Manager(
        "widgets",
        ring=ControllerRing("widgets", namespace, member=member, options=options),
        namespaces=[namespace],
        grace=2.0,
    )
    manager.controller(core_v1.CONFIG_MAPS, workers=4, informer={"label_selector": "app=web"})(reconcile)

    class Connecting:
        async def __aenter__(self) -> Any:
            self.connection = await connect(kubeconfig=kubeconfig)
            return (await self.connection.__aenter__()).transport

        async def __aexit__(self, *error: object) -> None:
            await self.connection.__aexit__(*error)

    connecting: AbstractAsyncContextManager[Any] = Connecting()
    with ExitStack() as stack:
        if bugs:
            from tests.support.ring_bugs import PLANTED

            next(each for each in PLANTED if each.name == bugs[0]).plant(stack)
        sys.exit(manager.run_as_program(lambda: connecting))


if __name__ == "__main__":
    main()
