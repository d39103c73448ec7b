"""The uses of the example controllers, on any API server: create objects, and wait for what becomes of them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import yaml

from aioinformer import ApiNotFound, Resource, SharedInformerFactory, connect
from aioinformer.errors import Invalid
from aioinformer.models import apps_v1, core_v1, rbac_v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer import Client, SharedIndexInformer

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMESPACE = "default"
#: Seconds for one wait: the garbage collector of a real cluster finds a new resource within 30 s.
PATIENCE = 120.0


#: A step of a task takes so many seconds on a busy machine, although the code does not block.
_BUSY = 2.0


def complaints(stderr: str) -> list[str]:
    """Return the lines of stderr, without the warnings about short blocks of the event loop."""
    blocks = re.compile(r" blocked the event loop for (\d+\.\d+) s with ")
    return [line for line in stderr.splitlines() if not ((block := blocks.search(line)) and float(block[1]) < _BUSY)]


class User:
    """Uses a server while a controller runs: creates objects, and waits for what the controller makes of them.

    Attributes:
        client: of the server.
        url: of the program, if it is a service.
    """

    def __init__(self, client: Client, factory: SharedInformerFactory, url: str = "") -> None:
        self.client = client
        self.url = url
        self._factory = factory

    async def create(self, resource: Resource[Any], body: dict[str, Any]) -> None:
        """Create an object. A server needs a moment until it serves a resource that was just defined."""
        namespace = NAMESPACE if resource.namespaced else ""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.resource(resource).create(body, namespace=namespace)
                    return
                except ApiNotFound:
                    await asyncio.sleep(0.1)

    async def until(self, resource: Resource[Any], condition: Callable[[list[Any]], Any]) -> list[Any]:
        """Wait until the objects of a resource fulfil a condition, and return them."""
        informer: SharedIndexInformer[Any] = self._factory.for_resource(resource).informer()
        changed = asyncio.Event()
        registration = informer.add_event_handler(
            on_add=lambda obj: changed.set(),
            on_update=lambda old, new: changed.set(),
            on_delete=lambda obj: changed.set(),
        )
        self._factory.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await informer.wait_for_sync()
                while not condition(found := informer.lister().list()):
                    changed.clear()
                    await changed.wait()
        finally:
            informer.remove_event_handler(registration)
        return found


async def widgets(user: User) -> None:
    resource = Resource[Any]("example.com", "v1", "widgets", "Widget")
    objects = user.client.resource(resource).namespaced(NAMESPACE)

    def colours(found: list[Any]) -> list[str]:
        mine = sorted(
            (each for each in found if each.metadata.name.startswith("web-")), key=lambda each: each.metadata.name
        )
        return [each.data["colour"] for each in mine]

    await user.create(resource, {"metadata": {"name": "web"}, "spec": {"size": 3}})
    await user.until(core_v1.CONFIG_MAPS, lambda found: colours(found) == ["grey"] * 3)
    await user.until(resource, lambda found: found[0].get("status", {}).get("size") == 3)
    await user.client.core.v1.configmaps.delete(f"{NAMESPACE}/web-1")
    await objects.patch("web", {"spec": {"size": 2, "colour": "blue"}})
    await user.until(core_v1.CONFIG_MAPS, lambda found: colours(found) == ["blue"] * 2)
    await user.until(resource, lambda found: found[0]["status"]["observedGeneration"] == 2)
    await objects.delete("web")
    await user.until(resource, lambda found: not found)
    await user.until(core_v1.CONFIG_MAPS, lambda found: not colours(found))


async def website(user: User) -> None:
    resource = Resource[Any]("example.com", "v1", "websites", "Website")
    objects = user.client.resource(resource).namespaced(NAMESPACE)

    def mine(found: list[Any]) -> list[Any]:
        return [each for each in found if each.metadata.name == "shop"]

    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await objects.create({"metadata": {"name": "shop"}, "spec": {"text": "open", "replicas": -1}})
            except ApiNotFound:
                await asyncio.sleep(0.1)
            except Invalid:
                break
    await user.create(resource, {"metadata": {"name": "shop"}, "spec": {"text": "open", "host": "shop.example.com"}})
    [found] = await user.until(apps_v1.DEPLOYMENTS, mine)
    assert (found.spec.replicas, found.spec.template.spec.containers[0].image) == (1, "nginx:1.29")
    await user.until(core_v1.SERVICES, mine)
    await user.until(
        resource, lambda found: found[0].get("status", {}).get("conditions", [{}])[0].get("reason") == "Pods"
    )
    await objects.patch("shop", {"spec": {"text": "closed", "replicas": 2}})
    await user.until(
        core_v1.CONFIG_MAPS, lambda found: [each.data for each in mine(found)] == [{"index.html": "closed"}]
    )
    await user.until(apps_v1.DEPLOYMENTS, lambda found: [each.spec.replicas for each in mine(found)] == [2])
    await objects.delete("shop")
    await user.until(resource, lambda found: not found)
    await user.until(core_v1.CONFIG_MAPS, lambda found: not mine(found))


async def sample_controller(user: User) -> None:
    resource = Resource[Any]("samplecontroller.example.com", "v1", "foos", "Foo")
    objects = user.client.resource(resource).namespaced(NAMESPACE)

    def deployments(found: list[Any]) -> dict[str, int]:
        return {each.metadata.name: each.spec.replicas for each in found if each.metadata.owner_references}

    await user.create(resource, {"metadata": {"name": "foo"}, "spec": {"deploymentName": "nginx", "replicas": 1}})
    await user.until(apps_v1.DEPLOYMENTS, lambda found: deployments(found) == {"nginx": 1})
    await user.client.apps.v1.deployments.patch(f"{NAMESPACE}/nginx", {"spec": {"replicas": 7}})
    await user.until(apps_v1.DEPLOYMENTS, lambda found: deployments(found) == {"nginx": 1})
    await objects.patch("foo", {"spec": {"deploymentName": "web", "replicas": 2}})
    await user.until(apps_v1.DEPLOYMENTS, lambda found: deployments(found) == {"web": 2})
    await user.until(resource, lambda found: "availableReplicas" in found[0].get("status", {}))
    await objects.delete("foo")
    await user.until(apps_v1.DEPLOYMENTS, lambda found: deployments(found) == {})


async def replicas(user: User) -> None:
    resource = Resource[Any]("example.com", "v1", "podsets", "PodSet")
    objects = user.client.resource(resource).namespaced(NAMESPACE)
    most = 0

    def count(found: list[Any]) -> int:
        nonlocal most
        names = [each.metadata.name for each in found if not each.metadata.deletion_timestamp]
        most = max(most, sum(name.startswith("web-") for name in names))
        return sum(name.startswith("web-") for name in names)

    containers = [{"name": "main", "image": "example.com/none"}]
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 0},
    }
    await user.create(resource, {"metadata": {"name": "web"}, "spec": {"replicas": 7, "template": template}})
    await user.until(core_v1.PODS, lambda found: count(found) == 7)
    await user.until(resource, lambda found: found[0].get("status", {}).get("replicas") == 7)
    assert most == 7
    await objects.patch("web", {"spec": {"replicas": 2}})
    await user.until(core_v1.PODS, lambda found: count(found) == 2)
    [pod, *_] = await user.until(core_v1.PODS, lambda found: len(found) == 2)
    await user.client.core.v1.pods.delete(pod, grace=0)
    await user.until(core_v1.PODS, lambda found: pod.metadata.uid not in {each.metadata.uid for each in found})
    await user.until(core_v1.PODS, lambda found: count(found) == 2)
    await objects.delete("web")
    await user.until(core_v1.PODS, lambda found: count(found) == 0)


async def namespace_provisioner(user: User) -> None:
    resource = Resource[Any]("example.com", "v1", "tenants", "Tenant", namespaced=False)
    objects = user.client.resource(resource)
    await user.create(resource, {"metadata": {"name": "shop"}, "spec": {"pods": 5, "admins": ["jane"]}})
    await user.until(resource, lambda found: found[0].get("status", {}).get("conditions"))
    binding = await user.client.resource(rbac_v1.ROLE_BINDINGS).get("shop/tenant-admins")
    assert [each.name for each in binding.subjects or ()] == ["jane"]
    await objects.patch("shop", {"spec": {"pods": 9}})
    await user.until(
        core_v1.RESOURCE_QUOTAS,
        lambda found: [each.spec.hard["pods"] for each in found if each.metadata.namespace == "shop"] == ["9"],
    )
    await objects.delete("shop")
    await user.until(core_v1.NAMESPACES, lambda found: "shop" not in {each.metadata.name for each in found})


async def fastapi_controller(user: User) -> None:
    deployments = user.client.apps.v1.deployments.namespaced(NAMESPACE)
    labels = {"app": "shop"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "shop:1.0"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await deployments.create({"metadata": {"name": "shop", "labels": {"example.com/deliver": "yes"}}, "spec": spec})

    def image(found: list[Any]) -> Any:
        return next(each for each in found if each.metadata.name == "shop").spec.template.spec.containers[0].image

    await user.until(apps_v1.DEPLOYMENTS, image)
    async with aiohttp.ClientSession() as session:
        for probe in ("livez", "readyz"):
            async with session.get(f"{user.url}/{probe}") as answer:
                assert (answer.status, await answer.text()) == (200, "ok")
    url = f"{user.url}/images/{NAMESPACE}/shop"
    async with aiohttp.ClientSession() as session, session.post(url, json={"image": "shop:1.2"}) as answer:
        assert answer.status == 202
    await user.until(apps_v1.DEPLOYMENTS, lambda found: image(found) == "shop:1.2")
    await deployments.patch(
        "shop", [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "x"}], "json"
    )
    await user.until(apps_v1.DEPLOYMENTS, lambda found: image(found) == "shop:1.2")
    await deployments.delete("shop", propagation="Background")


#: What a user does with each program.
USES: dict[str, Callable[[User], Awaitable[None]]] = {
    "widgets.py": widgets,
    "website.py": website,
    "sample_controller.py": sample_controller,
    "replicas.py": replicas,
    "namespace_provisioner.py": namespace_provisioner,
    "fastapi_controller.py": fastapi_controller,
}


async def play(name: str, kubeconfig: Path, port: int, account: Path | None = None) -> None:
    """Install the definition of an example, run the program, use it, and stop it with SIGTERM.

    Args:
        name: of the file.
        kubeconfig: of an administrator.
        port: a free one, for services.
        account: the kubeconfig of the program; by default, the same.
    """
    async with await connect(kubeconfig=str(kubeconfig)) as cluster, SharedInformerFactory(cluster) as factory:
        manifest = (EXAMPLES / name).with_suffix(".yaml")
        if manifest.exists():
            definition = yaml.safe_load(manifest.read_text())
            await (await cluster.client.resource_for(definition)).create(definition)
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", *_command(name, port)),
            env={**os.environ, "KUBECONFIG": str(account or kubeconfig)},
            stderr=asyncio.subprocess.PIPE,
        )
        user = User(cluster.client, factory, f"http://127.0.0.1:{port}")
        running = asyncio.create_task(program.communicate(), name=f"program {name}")
        using = asyncio.create_task(_use(name, user), name=f"user of {name}")
        try:
            await asyncio.wait({using, running}, return_when=asyncio.FIRST_COMPLETED)
            using.cancel()
            await asyncio.wait({using})
            if not running.done():
                program.send_signal(signal.SIGTERM)
            await asyncio.wait({running}, timeout=50)
        finally:
            if program.returncode is None:
                program.kill()
            await running
    errors = running.result()[1].decode()
    assert not using.cancelled(), errors
    if failure := using.exception():
        raise AssertionError(errors) from failure
    assert [line for line in complaints(errors) if re.search(" WARNING | ERROR |Traceback", line)] == [], errors
    assert program.returncode in ((-signal.SIGTERM, 0) if "fastapi" in name else (0,)), errors


def _command(name: str, port: int) -> list[str]:
    if "fastapi" not in name:
        return [str(EXAMPLES / name)]
    options = ["--app-dir", str(EXAMPLES), "--port", str(port), "--log-level", "warning"]
    return ["-m", "uvicorn", *options, f"{Path(name).stem}:app"]


async def _use(name: str, user: User) -> None:
    if "fastapi" in name:
        await _ready(user.url)
    await USES[name](user)


async def _ready(url: str) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(50):
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)
