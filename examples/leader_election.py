"""Leader election: one of several candidates is active. When it stops, another one takes over.

Here, three candidates compete in one process. The program cancels each leader after a second, as a
rolling update does: its work ends, it releases the lease, and the next candidate leads at once.
Each term has a number that is higher than all before. Use it as a fencing token.

python examples/leader_election.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio

from aioinformer import LeaderElector
from aioinformer.leaderelection import LeadershipLost, Term
from aioinformer.transport import Transport

import cluster

CANDIDATES = 3


async def compete(transport: Transport, identity: str, leads: asyncio.Queue[str]) -> None:
    elector = LeaderElector(
        transport,
        "aioinformer-example",
        identity=identity,
        on_new_leader=lambda leader: print(f"{identity} sees {leader or 'no leader'}"),
    )

    async def work(term: Term) -> None:
        print(f"{identity} leads term {term.token}")
        leads.put_nowait(identity)
        try:
            while True:
                term.check()  # before each step that only the leader may take
                await asyncio.sleep(0.2)
        finally:
            print(f"{identity} has ended its work")

    while True:
        try:
            await elector.run(work)
        except LeadershipLost as error:
            print(error)


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport, asyncio.TaskGroup() as tasks:
        leads: asyncio.Queue[str] = asyncio.Queue()
        names = [f"candidate-{number}" for number in range(1, CANDIDATES + 1)]
        candidates = {
            name: tasks.create_task(compete(transport, name, leads), name=name) for name in names
        }
        for _ in names:
            leader = await leads.get()
            await asyncio.sleep(1)
            candidates[leader].cancel()


if __name__ == "__main__":
    cluster.run(main, __doc__)
