"""Measure single requests over HTTPS on a connection that is kept: a get, a create and a status patch of a pod.

Each subject sends the same JSON, reads the whole answer, and looks at one field in its status. All have a timeout of
30 s for each request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aiohttp
from clients import Stopwatch
from harness import Offer, Question, Requirement, run
from pods import pod

from aioinformer import Client, HttpTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness import Figures

_SERIES, _CALLS = 50, 25
_TIMEOUT = 30.0

_POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **pod(7, 7)}
_NAMESPACE, _NAME = _POD["metadata"]["namespace"], _POD["metadata"]["name"]
_CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T18:00:00Z", "reason": "Started"}
_PATCH = {"status": {"phase": "Running", "conditions": [_CONDITION]}}


async def _cost(call: Callable[[], Awaitable[str]]) -> float:
    """Return the microseconds of CPU of a call, in the fastest series: other processes slow down the rest."""
    series = []
    for _ in range(_SERIES):
        watch = Stopwatch()
        for _ in range(_CALLS):
            assert await call() == "Running"
        series.append(watch.cpu / _CALLS * 1e6)
    return min(series)


async def _figures(calls: dict[str, Callable[[], Awaitable[str]]]) -> Figures:
    return {f"{name}_us": await _cost(call) for name, call in calls.items()}


async def measure_client(url: str) -> Figures:
    """Measure the client of this package."""
    async with HttpTransport(url, token="token", ssl=False) as transport:
        pods: Any = Client(transport).core.v1.pods

        async def get() -> str:
            return str((await pods.get(_NAME, namespace=_NAMESPACE)).status.phase)

        async def create() -> str:
            return str((await pods.create(_POD)).status.phase)

        async def patch() -> str:
            return str((await pods.status.patch(_NAME, _PATCH, namespace=_NAMESPACE)).status.phase)

        return await _figures({"get": get, "create": create, "patch_status": patch})


async def measure_kubernetes_asyncio(url: str) -> Figures:
    """Measure the typed calls of kubernetes_asyncio."""
    from kubernetes_asyncio import client

    configuration = client.Configuration(host=url)
    configuration.verify_ssl = False
    configuration.api_key["BearerToken"] = "Bearer token"
    async with client.ApiClient(configuration) as api_client:
        api: Any = client.CoreV1Api(api_client)

        async def get() -> str:
            return str((await api.read_namespaced_pod(_NAME, _NAMESPACE, _request_timeout=_TIMEOUT)).status.phase)

        async def create() -> str:
            made = await api.create_namespaced_pod(_NAMESPACE, _POD, _request_timeout=_TIMEOUT)
            return str(made.status.phase)

        async def patch() -> str:
            patched = await api.patch_namespaced_pod_status(
                _NAME,
                _NAMESPACE,
                _PATCH,
                _request_timeout=_TIMEOUT,
                _content_type="application/merge-patch+json",
            )
            return str(patched.status.phase)

        return await _figures({"get": get, "create": create, "patch_status": patch})


async def measure_aiohttp(url: str) -> Figures:
    """Measure aiohttp alone, with the JSON of the standard library."""
    headers = {"Authorization": "Bearer token", "Accept": "application/json"}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    collection = f"{url}/api/v1/namespaces/{_NAMESPACE}/pods"
    path = f"{collection}/{_NAME}"
    patch_type = {"Content-Type": "application/merge-patch+json"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:

        async def get() -> str:
            async with session.get(path) as response:
                return str((await response.json())["status"]["phase"])

        async def create() -> str:
            async with session.post(collection, json=_POD) as response:
                return str((await response.json())["status"]["phase"])

        async def patch() -> str:
            async with session.patch(f"{path}/status", data=json.dumps(_PATCH), headers=patch_type) as response:
                return str((await response.json())["status"]["phase"])

        return await _figures({"get": get, "create": create, "patch_status": patch})


def _limit(what: str, figure: str, base: str, at_most: float) -> Requirement:
    return Requirement(f"{what}: CPU of a call, ratio to {base}", "client", figure, at_most, base)


_VERBS = {"a get": "get_us", "a create": "create_us", "a patch of the status": "patch_status_us"}
QUESTION = Question(
    "writing",
    "How much do a get, a create and a status patch of a pod cost over HTTPS?",
    {"client": measure_client, "kubernetes_asyncio": measure_kubernetes_asyncio, "aiohttp": measure_aiohttp},
    Offer(pods=1, events=0, program="answering_server.py"),
    requirements=[
        *(_limit(what, figure, "kubernetes_asyncio", 1 / 3) for what, figure in _VERBS.items()),
        *(_limit(what, figure, "aiohttp", 1.5) for what, figure in _VERBS.items()),
    ],
    rounds=3,
    seconds=150.0,
)

if __name__ == "__main__":
    run(QUESTION)
