"""Measure one Python library that lists and watches pods: print one JSON object with the figures of the harness.

    python python_client.py lightkube|kubernetes_asyncio_raw|kubernetes_asyncio_typed|kubernetes|kopf URL EVENTS

The official client runs its informer. kopf runs its operator in this process, with a handler that keeps the objects,
because the operator does not. The others run the simplest loop that a program would need: list, keep every object in a
dict, watch, replace, call a handler.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import threading
import urllib.request
from contextlib import suppress
from time import perf_counter, process_time
from typing import Any, NoReturn


def rss_kib() -> float:
    """Return the resident memory of the process, after returning unused memory to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


class Measurement:
    """Measures the phases with plain calls, because most of these libraries have no event loop."""

    def __init__(self, url: str, events: int) -> None:
        self.url, self.events = url, events
        self.store: dict[str, Any] = {}
        self.figures: dict[str, float] = {}
        self._seen = 0
        self._before = rss_kib()
        self._wall, self._cpu = perf_counter(), process_time()

    def end_list(self, objects: int) -> None:
        """Add the figures of the first list, and start the events of the server."""
        self.figures["sync_cpu_seconds"] = process_time() - self._cpu
        self.figures["sync_wall_seconds"] = perf_counter() - self._wall
        self.figures["objects"] = objects
        self.figures["kib_per_object"] = (rss_kib() - self._before) / max(1, objects)
        self._wall, self._cpu = perf_counter(), process_time()
        threading.Thread(target=self._go).start()

    def pods(self) -> int:
        """Return the number of pods, for libraries that do not report the end of a list."""
        with urllib.request.urlopen(f"{self.url}/api/v1/pods?limit=1") as response:
            return 1 + int(json.load(response)["metadata"]["remainingItemCount"])

    def _go(self) -> None:
        request = urllib.request.Request(f"{self.url}/go", data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=600):
            pass

    def finish(self) -> NoReturn:
        """Print the figures and end the process: threads and tasks of some libraries do not end by themselves."""
        print(json.dumps(self.figures), flush=True)
        os._exit(0)

    def count_event(self) -> bool:
        """Count one event and return whether it is the last one."""
        self._seen += 1
        if self._seen < self.events:
            return False
        self.figures["watch_us_per_event"] = (process_time() - self._cpu) / self.events * 1e6
        self.figures["watch_events_per_second"] = self.events / (perf_counter() - self._wall)
        return True


def run_lightkube(measurement: Measurement) -> None:
    import httpx2 as httpx
    from lightkube import Client, KubeConfig
    from lightkube.resources.core_v1 import Pod

    context = {"name": "load", "context": {"cluster": "load", "user": "nobody"}}
    config = KubeConfig.from_dict(
        {
            "clusters": [{"name": "load", "cluster": {"server": measurement.url}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [context],
            "current-context": "load",
        }
    )
    client: Any = Client(config=config, trust_env=False, timeout=httpx.Timeout(None))
    pods = client.list(Pod, namespace="*", chunk_size=500)
    store = measurement.store
    for pod in pods:
        store[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
    measurement.end_list(len(store))
    for _, pod in client.watch(Pod, namespace="*", resource_version=pods.resourceVersion):
        store[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        if measurement.count_event():
            return


async def run_kubernetes_asyncio(measurement: Measurement, typed: bool) -> None:
    from kubernetes_asyncio import client, watch

    configuration = client.Configuration()
    configuration.host = measurement.url
    store = measurement.store
    async with client.ApiClient(configuration) as api:
        core = client.CoreV1Api(api)
        token, result_version = "", ""
        while True:
            if typed:
                page = await core.list_pod_for_all_namespaces(limit=500, _continue=token)
                for pod in page.items:
                    store[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
                token, result_version = page.metadata._continue or "", page.metadata.resource_version
            else:
                response = await core.list_pod_for_all_namespaces(limit=500, _continue=token, _preload_content=False)
                document = json.loads(await response.read())
                for pod in document["items"]:
                    store[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = pod
                metadata = document["metadata"]
                token, result_version = metadata.get("continue", ""), metadata["resourceVersion"]
            if not token:
                break
        measurement.end_list(len(store))
        if typed:
            async for event in watch.Watch().stream(core.list_pod_for_all_namespaces, resource_version=result_version):
                pod = event["object"]
                store[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
                if measurement.count_event():
                    return
        response = await core.list_pod_for_all_namespaces(
            watch=True, resource_version=result_version, _preload_content=False
        )
        async for line in response.content:
            pod = json.loads(line)["object"]
            store[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = pod
            if measurement.count_event():
                response.close()
                return


def run_kubernetes(measurement: Measurement, pods: int) -> None:
    from kubernetes import client
    from kubernetes.informer import ADDED, MODIFIED, SharedInformer

    configuration = client.Configuration()
    configuration.host = measurement.url
    core = client.CoreV1Api(client.ApiClient(configuration))
    informer = SharedInformer(core.list_pod_for_all_namespaces)
    done, added = threading.Event(), 0

    def on_added(pod: Any) -> None:
        nonlocal added
        added += 1
        if added == pods:
            measurement.end_list(pods)

    def on_modified(pod: Any) -> None:
        if measurement.count_event():
            done.set()

    informer.add_event_handler(ADDED, on_added)
    informer.add_event_handler(MODIFIED, on_modified)
    informer.start()
    done.wait()


async def run_kopf(measurement: Measurement, pods: int) -> None:
    import kopf

    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # it would also watch namespaces and definitions
    done, store = asyncio.Event(), measurement.store

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=measurement.url)

    @kopf.on.event("pods", registry=registry)
    async def on_event(type: str | None, name: str, namespace: str, body: kopf.Body, **_: Any) -> None:
        store[f"{namespace}/{name}"] = body
        if type is None:
            if len(store) == pods:
                measurement.end_list(pods)
        elif measurement.count_event():
            done.set()

    operator = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True)
    )
    waiting = asyncio.create_task(done.wait())
    await asyncio.wait({operator, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if operator.done():
        operator.result()
    measurement.finish()  # its tasks do not always end when they are cancelled


def main() -> None:
    peer, url, events = sys.argv[1], sys.argv[2], int(sys.argv[3])
    package = {"kubernetes_asyncio_raw": "kubernetes_asyncio", "kubernetes_asyncio_typed": "kubernetes_asyncio"}
    name = package.get(peer, peer)
    __import__(name)
    if name == "kubernetes_asyncio":
        __import__("kubernetes_asyncio.client")
    measurement = Measurement(url, events)
    match peer:
        case "lightkube":
            run_lightkube(measurement)
        case "kubernetes":
            run_kubernetes(measurement, measurement.pods())
        case "kubernetes_asyncio_raw" | "kubernetes_asyncio_typed":
            asyncio.run(run_kubernetes_asyncio(measurement, peer.endswith("typed")))
        case "kopf":
            asyncio.run(run_kopf(measurement, measurement.pods()))
        case _:
            sys.exit(f"unknown library {peer!r}")
    measurement.finish()


if __name__ == "__main__":
    main()
