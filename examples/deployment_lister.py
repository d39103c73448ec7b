"""A lister from a factory: it reads the cache and sends no request.

python examples/deployment_lister.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse

from aioinformer import NotFound, SharedInformerFactory, meta_namespace_key_func

import cluster


async def main(arguments: argparse.Namespace) -> None:
    async with (
        cluster.connect(arguments) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        deployments = factory.apps.v1.deployments.lister()
        factory.start()
        await factory.wait_for_cache_sync()

        # Reads are plain calls on local memory, without await.
        for deployment in sorted(deployments.list(), key=meta_namespace_key_func):
            if deployment.spec and deployment.spec.template.spec:
                containers = deployment.spec.template.spec.containers
                images = ", ".join(container.image or "?" for container in containers)
                replicas = deployment.spec.replicas
                print(f"{meta_namespace_key_func(deployment)}: {replicas} of {images}")

        print(f"{len(deployments.list('!canary'))} deployments without the label canary")
        try:
            deployments.namespaced("default").get("no-such-deployment")
        except NotFound as error:
            print(error)


if __name__ == "__main__":
    cluster.run(main, __doc__)
