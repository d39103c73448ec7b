"""Each alert fires for a manager in trouble, behind a Prometheus. The durations of the rules are shortened.

There are two deployments with the same names, `prod` and `staging`. All that can go wrong goes wrong in `prod`.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import pytest
import yaml
from prometheus_client import CollectorRegistry, start_http_server

from aioinformer import SharedInformerFactory
from aioinformer.cli.controllers.dashboards import alert_rules
from aioinformer.controller import LeaderElection, Manager, Request, Result, TerminalError, Watch, health
from aioinformer.controller.inputs import mapping
from aioinformer.models import apps_v1, core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.serving import WebRequest
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from aioinformer.webhooks import AdmissionRequest

PROMETHEUS: Final = shutil.which("prometheus")
#: Seconds until all alerts must fire. It takes about ten.
PATIENCE: Final = 240
LEASE: Final = {
    "metadata": {"name": "held", "namespace": "default"},
    "spec": {"holderIdentity": "a laptop", "leaseDurationSeconds": 3600, "leaseTransitions": 1},
}
#: Each alert, with the labels of what is in trouble.
EXPECTED: Final[dict[str, dict[str, str]]] = {
    "AioinformerCacheStale": {"resource": "pods"},
    "AioinformerWatchStale": {"manager": "shop", "controller": "writes"},
    "AioinformerCredentialRefused": {},
    "AioinformerRelistsOften": {"resource": "endpoints"},
    "AioinformerObjectsUndecodable": {"resource": "limitranges"},
    "AioinformerNotReady": {"manager": "shop"},
    "AioinformerEventLoopDelayed": {"manager": "blocked"},
    "AioinformerLeaseUnheld": {"name": "default/unheld"},
    "AioinformerNoLeader": {"name": "default/held"},
    "AioinformerSlotsUnowned": {"name": "shared"},
    "AioinformerKeysParked": {"controller": "parks", "reason": "terminal"},
    "AioinformerKeysFail": {"controller": "fails"},
    "AioinformerErrors": {"controller": "fails"},
    "AioinformerWorkerStuck": {"name": "hangs"},
    "AioinformerKeysWait": {"controller": "hangs"},
    "AioinformerControllerLoops": {"controller": "loops"},
    "AioinformerInputFails": {"controller": "parks"},
    "AioinformerChangesLost": {"controller": "parks"},
    "AioinformerHandlerStuck": {"name": "handlers", "resource": "configmaps"},
    "AioinformerHandlerBehind": {"name": "handlers", "resource": "configmaps"},
    "AioinformerHandlerRaises": {"name": "handlers", "resource": "configmaps"},
    "AioinformerWebhookFails": {"webhook": "/validate/configmaps"},
}
#: Those that fire in no healthy deployment, however slow the machine is.
CERTAIN: Final = {
    *("AioinformerCredentialRefused", "AioinformerObjectsUndecodable", "AioinformerKeysParked", "AioinformerErrors"),
    *("AioinformerControllerLoops", "AioinformerInputFails", "AioinformerChangesLost", "AioinformerWebhookFails"),
}


def shortened() -> str:
    """Return the rules with windows of 5 s, a thousandth of each threshold above 1, and nothing to wait for."""
    document = yaml.safe_load(alert_rules())
    for rule in document["groups"][0]["rules"]:
        rule["for"] = "0s"
        rule["expr"] = re.sub(r"(\[|offset )\d+[mh]", r"\g<1>5s", rule["expr"])
        rule["expr"] = re.sub(r"> (\d+)$", lambda match: f"> {int(match[1]) / 1000}", rule["expr"])
    return yaml.safe_dump(document)


class Prometheus:
    """A Prometheus that scrapes some ports, with the shortened rules."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        #: The alerts that have fired: name -> namespaces of the deployments.
        self.fired: dict[str, set[str]] = {}

    @asynccontextmanager
    async def scraping(self, ports: dict[int, str]) -> AsyncIterator[None]:
        """Run it while the block runs, with targets of these namespaces."""
        targets = [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": name, "pod": f"{name}-{port}"}}
            for port, name in ports.items()
        ]
        # A busy machine answers within this time; a window of 5 s has several answers.
        times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"}
        jobs = [{"job_name": "managers", "static_configs": targets}]
        config = {"global": times, "rule_files": ["rules.yaml"], "scrape_configs": jobs}
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        (self.folder / "rules.yaml").write_text(shortened())
        process = await asyncio.create_subprocess_exec(
            str(PROMETHEUS),
            "--config.file=prometheus.yaml",
            "--storage.tsdb.path=data",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--log.level=error",
            cwd=self.folder,
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):  # it could not start
                process.terminate()
            await process.wait()

    async def has_scraped(self, count: int) -> None:
        """Wait until it has read this number of targets."""
        async with aiohttp.ClientSession() as client, asyncio.timeout(PATIENCE):
            while True:
                query = {"query": f"count(up == 1) == {count}"}
                if (await self._get(client, "query", query)).get("result"):
                    return
                await asyncio.sleep(0.1)

    async def until(self, names: set[str]) -> None:
        """Wait until each of these alerts has fired for what is in trouble in `prod`."""
        async with aiohttp.ClientSession() as client, asyncio.timeout(PATIENCE):
            while names - {name for name, where in self.fired.items() if "prod" in where}:
                await asyncio.sleep(0.1)
                for each in (await self._get(client, "alerts")).get("alerts", ()):
                    labels = each["labels"]
                    name = labels["alertname"]
                    if each["state"] == "firing" and EXPECTED[name].items() <= labels.items():
                        self.fired.setdefault(name, set()).add(labels["namespace"])

    async def _get(self, client: aiohttp.ClientSession, path: str, query: dict[str, str] | None = None) -> Any:
        try:
            async with client.get(f"{self.url}/api/v1/{path}", params=query) as answer:
                return json.loads(await answer.read())["data"]
        except (aiohttp.ClientError, ValueError):  # until it is ready
            return {}


def named(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def manager_of(server: ApiServer, metrics: PrometheusMetrics, port: int, go: asyncio.Event, *, sick: bool) -> Manager:
    """Return a manager whose controllers fail in all ways, or work."""
    manager = Manager("shop", client=server.url, metrics=metrics, health_port=port, health_host="127.0.0.1", grace=0)

    def lose(obj: Any) -> list[str]:
        if sick:
            raise KeyError(obj.metadata.name)
        return []

    @manager.controller(core_v1.CONFIG_MAPS, watches=[Watch(core_v1.NAMESPACES, to=lose)])
    async def parks(request: Request[Any]) -> Result | None:
        if sick and request.name == "one":
            raise TerminalError("the colour is not known")
        return Result(parked="waits for approval")

    @manager.controller(core_v1.SECRETS)
    async def fails(request: Request[Any]) -> None:
        if sick:
            raise RuntimeError("no")

    @manager.controller(core_v1.SERVICES, workers=1)
    async def hangs(request: Request[Any]) -> None:
        if sick:
            await asyncio.Event().wait()

    @manager.controller(core_v1.SERVICE_ACCOUNTS)
    async def loops(request: Request[Any]) -> None:
        if sick and request.object is not None:
            changed = {"metadata": {"annotations": {"time": str(time.time_ns())}}}
            await request.client.core.v1.serviceaccounts.patch(str(request.key), changed)

    @manager.controller(core_v1.RESOURCE_QUOTAS)
    async def writes(request: Request[Any]) -> None:
        await go.wait()
        changed = {"metadata": {"labels": {"seen": "yes"}}}
        await request.client.core.v1.resourcequotas.patch(str(request.key), changed)

    @manager.controller(core_v1.LIMIT_RANGES)
    async def reads(request: Request[Any]) -> None: ...

    @manager.controller(core_v1.PODS, watches=[Watch(core_v1.ENDPOINTS, to=lambda obj: [])])
    async def follows(request: Request[Any]) -> None: ...

    @manager.controller(core_v1.NODES)
    async def waits(request: Request[Any]) -> None: ...

    @manager.validate(core_v1.CONFIG_MAPS)
    async def check(request: AdmissionRequest[Any]) -> None:
        if sick:
            raise RuntimeError("no")

    return manager


async def does_nothing(request: Request[Any]) -> None: ...


async def review(manager: Manager) -> None:
    """Ask the webhook of a manager all the time."""
    sent = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "operation": "CREATE",
        "name": "one",
        "namespace": "default",
        "userInfo": {"username": "jane"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap", **named("one")},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}).encode()

    async def read() -> bytes:
        return body

    while True:
        await manager.admission.respond(WebRequest("POST", "/validate/configmaps", read=read))
        await asyncio.sleep(0.2)


def blocked(url: str, metrics: PrometheusMetrics, stopped: threading.Event) -> None:
    """Run a manager whose reconciler blocks the event loop, in a thread of its own."""
    manager = Manager("blocked", client=url, metrics=metrics)

    @manager.controller(apps_v1.DEPLOYMENTS)
    async def blocks(request: Request[Any]) -> Result:
        time.sleep(0.7)  # noqa: ASYNC251 - as a program with this mistake does
        return Result(after=0.02)

    async def run() -> None:
        async with manager:
            while not stopped.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.05)

    asyncio.run(run())


@asynccontextmanager
async def trouble(
    server: ApiServer, metrics: PrometheusMetrics, manager: Manager, go: asyncio.Event, prometheus: Prometheus
) -> AsyncIterator[None]:
    """While the block runs, let all go wrong that can, except for the event loop."""
    async with AsyncExitStack() as stack:
        enter: Callable[..., Any] = stack.enter_async_context
        server.load("leases", [LEASE])
        await enter(server.fault("unauthorized", resources=("nodes",)))
        await enter(manager)
        for name, options in (
            ("held", {"leader_election": LeaderElection("held")}),
            ("unheld", {"leader_election": LeaderElection("unheld")}),
            ("shared", {"ring": "shared"}),
        ):
            other: Any = Manager(name, client=server.url, metrics=metrics, **options)
            other.controller(core_v1.CONFIG_MAPS if name == "held" else core_v1.NODES, name=name)(does_nothing)
            await enter(other)
        reviews = asyncio.create_task(review(manager))
        stack.callback(reviews.cancel)
        factory = await enter(SharedInformerFactory(server.url, metrics=metrics, name="handlers"))
        informer = factory.core.v1.configmaps.informer()

        async def hang(obj: Any) -> None:
            await asyncio.Event().wait()

        def fail(obj: Any) -> None:
            raise KeyError(obj.metadata.name)

        informer.add_event_handler(on_add=hang)
        informer.add_event_handler(on_add=fail)
        await factory.wait_for_cache_sync()
        for number in range(20):
            server.create("configmaps", named(f"map-{number}"))
        await prometheus.has_scraped(3)  # counters that are 0
        await enter(server.fault("forbidden", resources=("pods",)))
        await enter(server.fault("watch_close", resources=("pods",)))
        await enter(server.fault("error_event", resources=("endpoints",), times=1, status=410, reason="Expired"))
        await enter(server.fault("undecodable_object", resources=("limitranges",)))
        await enter(server.fault("slow_reader", resources=("resourcequotas",), backlog=1000))
        go.set()
        yield


@pytest.mark.behaviour("C-191")
@pytest.mark.skipif(PROMETHEUS is None, reason="needs Debian's package prometheus")
async def test_each_alert_fires_for_a_manager_in_trouble(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "_RETRIES", 1)  # instead of a minute
    monkeypatch.setattr(health, "_BEAT", 0.1)
    rules = {each["alert"] for each in yaml.safe_load(alert_rules())["groups"][0]["rules"]}
    prometheus = Prometheus(tmp_path, unused_tcp_port_factory())
    sick, well = unused_tcp_port_factory(), unused_tcp_port_factory()
    blocking = CollectorRegistry()
    httpd, served = start_http_server(0, "127.0.0.1", registry=blocking)
    ports = {sick: "prod", well: "staging", httpd.server_port: "prod"}
    go, stopped = asyncio.Event(), threading.Event()
    async with ApiServer() as prod, ApiServer() as staging:
        for server in (prod, staging):
            for resource in ("configmaps", "secrets", "serviceaccounts", "resourcequotas", "limitranges"):
                server.create(resource, {"metadata": {"name": "one", "namespace": "default"}})
            for name in ("one", "two"):
                server.create("services", {**named(name), "spec": {"ports": [{"port": 80}]}})
        spec: dict[str, Any] = {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}},
        }
        spec["template"]["spec"] = {"containers": [{"name": "main", "image": "example.com/web"}]}
        prod.create("deployments.apps", {"metadata": {"name": "one", "namespace": "default"}, "spec": spec})
        thread = threading.Thread(target=blocked, args=(prod.url, PrometheusMetrics(blocking), stopped))
        thread.start()
        try:
            metrics, others = PrometheusMetrics(CollectorRegistry()), PrometheusMetrics(CollectorRegistry())
            healthy = manager_of(staging, others, well, go, sick=False)
            failing = manager_of(prod, metrics, sick, go, sick=True)
            async with prometheus.scraping(ports), healthy, trouble(prod, metrics, failing, go, prometheus):
                try:
                    await prometheus.until(rules)
                except TimeoutError:
                    pytest.fail(f"not fired for prod: {sorted(rules - set(prometheus.fired))}")
        finally:
            stopped.set()
            await asyncio.to_thread(thread.join)
            httpd.shutdown()
            httpd.server_close()
            served.join()
    assert not {name for name, where in prometheus.fired.items() if "staging" in where} & CERTAIN
