"""A lister from a factory: what the cache knows is read without asking the server.

python examples/deployment_lister.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse

from aioinformer import NotFound, SharedInformerFactory

import cluster


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport, SharedInformerFactory(transport) as factory:
        deployments = factory.apps.v1.deployments.lister()
        factory.start()
        await factory.wait_for_cache_sync()

        # From here on reads are plain calls on local memory: there is nothing to await.
        for deployment in sorted(deployments.list(), key=lambda each: (each.metadata.namespace, each.metadata.name)):
            ready = deployment.status.ready_replicas or 0
            print(
                f"{deployment.metadata.namespace}/{deployment.metadata.name}: {ready}/{deployment.spec.replicas} ready"
            )

        print(f"{len(deployments.list('app'))} of them have the label app")
        try:
            deployments.namespaced("default").get("no-such-deployment")
        except NotFound as error:
            print(error)


if __name__ == "__main__":
    cluster.run(main, __doc__)
