"""The metrics of a manager, as Prometheus reads them over HTTP."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest

from aioinformer import Client, HttpTransport
from aioinformer.controller import LeaderElection, Manager, Request, Result, Retry, TerminalError, Watch
from aioinformer.controller.program import run_as_program
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.workqueue import WorkQueue
from tests.support.scraped import Scraped

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()


async def test_manager_exports_results_parked_keys_and_durations(api_server: ApiServer, scraped: Scraped) -> None:
    manager = Manager("shop", client=api_server.url, metrics=scraped.metrics, failure_events=False)
    failed: set[str] = set()

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request[Any]) -> Result | None:
        match request.name.partition("-")[0]:
            case "secretive":
                raise TerminalError("the password hunter2 is wrong")
            case "told":
                return Result(parked="hunter2 again")
            case "flaky" if request.name not in failed:
                failed.add(request.name)
                raise Retry("once")
            case "later":
                return Result(after=3600)
            case "writer":
                await request.client.core.v1.secrets.create({"metadata": {"name": "made", "namespace": "default"}})
        return None

    async with manager:
        await scraped.reaches(1, "controller_phase", controller="maps", phase="working")
        for name in ("secretive-1", "secretive-2", "told", "flaky", "later", "writer", "plain"):
            api_server.create("configmaps", config_map(name))
        total = {"controller": "maps"}
        await scraped.reaches(3, "controller_runtime_reconcile_total", result="success", **total)
        await scraped.reaches(8, "controller_runtime_reconcile_time_seconds_count", **total)
        assert scraped("controller_runtime_reconcile_total", result="parked", **total) == 3
        assert scraped("controller_runtime_reconcile_total", result="requeue_after", **total) == 1
        assert scraped("controller_runtime_reconcile_total", result="error", **total) == 1
        assert scraped("controller_runtime_reconcile_errors_total", **total) == 1
        assert scraped("controller_runtime_max_concurrent_reconciles", **total) == 4
        assert scraped("controller_runtime_active_workers", **total) == 0
        # The failed attempt of `flaky` is no end: the change is answered by the next one.
        assert scraped("controller_change_to_end_seconds_count", **total) == 7
        assert scraped("controller_parked_keys", reason="terminal", **total) == 2
        assert scraped("controller_waiting_keys", **total) == 1
        assert scraped("controller_oldest_key_seconds", **total) == 0
        assert scraped("manager_ready", manager="shop") == 1
        assert scraped("workqueue_work_duration_seconds_count", name="maps") == 8
        assert scraped("rest_client_requests_total", code="201", method="POST", host=api_server.url[7:]) == 1
        answered = scraped("rest_client_request_duration_seconds_count", verb="POST", host=api_server.url[7:])
        assert answered == 1
    assert scraped("manager_ready", manager="shop") is None


async def test_oldest_key_and_own_write_waits_are_exported(api_server: ApiServer, scraped: Scraped) -> None:
    manager = Manager("shop", client=api_server.url, metrics=scraped.metrics)
    go = asyncio.Event()

    def refuse(obj: Any) -> list[str]:
        raise KeyError("hunter2")

    @manager.controller(core_v1.CONFIG_MAPS, workers=1, watches=[Watch(core_v1.SERVICES, to=refuse)])
    async def maps(request: Request[Any]) -> None:
        if request.object and not (request.object.data or {}).get("done"):
            await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"done": "yes"}})
            await go.wait()

    async with manager:
        await scraped.reaches(1, "controller_phase", controller="maps", phase="working")
        for name in "ab":
            api_server.create("configmaps", config_map(name))
        api_server.create("services", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"ports": []}})
        await scraped.reaches(1, "controller_runtime_active_workers", controller="maps")
        await scraped.until(lambda: scraped("controller_oldest_key_seconds", controller="maps"))
        await scraped.until(lambda: "controller_input_errors_total{" in generate_latest(scraped.registry).decode())
        page = await page_of(scraped)
        assert "hunter2" not in page
        assert re.search(r'controller_input_errors_total{.*input="[^"]*services[^"]*",manager="shop"} 1.0', page)
        go.set()
        await scraped.reaches(0, "controller_runtime_active_workers", controller="maps")
        await scraped.reaches(0, "controller_own_writes", controller="maps")


async def page_of(scraped: Scraped) -> str:
    """Return the text that Prometheus scrapes, made in another thread."""
    return (await asyncio.to_thread(generate_latest, scraped.registry)).decode()


async def test_leader_is_exported_until_it_stops(api_server: ApiServer, scraped: Scraped) -> None:
    election = LeaderElection("shop", "default")
    manager = Manager("shop", client=api_server.url, metrics=scraped.metrics, leader_election=election, health_port=0)

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request[Any]) -> None: ...

    async with manager:
        await scraped.reaches(1, "leader_election_master_status", name="default/shop")
        assert scraped("leader_election_slowpath_total", name="default/shop") is not None
        assert 'leader_election_master_status{name="default/shop"} 1.0' in await page_of(scraped)
        standby = Manager(
            "other", client=api_server.url, metrics=(other := Scraped()).metrics, leader_election=election
        )
        async with standby:
            await other.reaches(0, "leader_election_master_status", name="default/shop")
    assert scraped("leader_election_master_status", name="default/shop") is None


async def test_two_managers_of_one_name_need_two_registries(api_server: ApiServer, scraped: Scraped) -> None:
    async with Manager("shop", client=api_server.url, metrics=scraped.metrics):
        with pytest.raises(UsageError, match="name='shop' is in use"):
            async with Manager("shop", client=api_server.url, metrics=scraped.metrics):
                pass
    async with Manager("shop", client=api_server.url, metrics=scraped.metrics):
        assert scraped("manager_ready", manager="shop") == 1


async def test_requests_of_two_transports_for_a_server_are_added(api_server: ApiServer, scraped: Scraped) -> None:
    async with HttpTransport(api_server.url) as one, HttpTransport(api_server.url) as two:
        for number, transport in enumerate((one, two)):
            async with Manager(f"shop-{number}", client=transport, metrics=scraped.metrics) as manager:
                assert manager.ready()
                await Client(transport).core.v1.namespaces.get("default")
    assert scraped("rest_client_requests_total", code="200", method="GET", host=api_server.url[7:]) == 2


class Program:
    """A manager as `run_as_program` needs it."""

    name = "shop"
    client: Any = None
    stop_report: Any = None

    def __init__(self, metrics: Any) -> None:
        self.metrics = metrics
        self.during: Any = None

    async def run(self, *, signals: bool) -> None:
        self.during = self.metrics

    def report(self) -> dict[str, Any]:
        return {}


def run(program: Program) -> None:
    assert run_as_program(program, None, "") == 0


@pytest.mark.behaviour("C-190")
def test_program_without_metrics_exports_them_to_the_registry_of_the_process() -> None:
    first = Program(None)
    run(first)
    assert first.during.registry is REGISTRY
    assert first.metrics is None
    second = Program(None)
    run(second)
    assert second.during.registry is REGISTRY
    own = Program(PrometheusMetrics(CollectorRegistry()))
    run(own)
    assert own.during is own.metrics is not None
    refused = Program(False)
    run(refused)
    assert refused.during is False


def test_providers_of_a_registry_export_the_same_sources() -> None:
    registry = CollectorRegistry()
    providers = [PrometheusMetrics(registry), PrometheusMetrics(registry)]
    queues: list[WorkQueue[str]] = [
        WorkQueue(f"orders-{number}", metrics=each) for number, each in enumerate(providers)
    ]
    text = generate_latest(registry).decode()
    assert all(f'workqueue_depth{{name="{each.name}"}} 0.0' in text for each in queues)
    with pytest.raises(UsageError, match="name='orders-0' is in use"):
        WorkQueue("orders-0", metrics=providers[1])

    registry.unregister(providers[0])
    WorkQueue("orders-2", metrics=(later := PrometheusMetrics(registry)))
    assert later is not providers[0]
    assert "orders-0" not in generate_latest(registry).decode()


def test_names_of_another_collector_leave_a_program_without_metrics(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    Gauge("manager_ready", "of another program", registry=registry)
    monkeypatch.setattr(PrometheusMetrics.__init__, "__defaults__", (registry,))
    program = Program(None)
    run(program)
    assert program.during is None
    assert "there are no metrics: Duplicated timeseries" in caplog.text
    assert "pass metrics=PrometheusMetrics(CollectorRegistry())" in caplog.text


SHARED = """
import asyncio

from prometheus_client import REGISTRY, generate_latest

from aioinformer import SharedInformerFactory
from aioinformer.controller import Manager
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.workqueue import WorkQueue

metrics = PrometheusMetrics()
own = WorkQueue("orders", metrics=metrics)
manager = Manager("shop", client="{url}")


@manager.controller(core_v1.CONFIG_MAPS)
async def orders(request):
    async with SharedInformerFactory("{url}", metrics=metrics) as factory:
        factory.core.v1.secrets.informer()
        await factory.wait_for_cache_sync()
        print(generate_latest(REGISTRY).decode())
    manager.stop()


manager.main()
"""


async def test_program_that_exports_a_queue_of_the_same_name_still_runs(api_server: ApiServer) -> None:
    api_server.create("configmaps", config_map("one"))
    program = SHARED.replace("{url}", api_server.url)
    ran = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE, stderr=PIPE)
    output, errors = (each.decode() for each in await ran.communicate())
    assert ran.returncode == 0, errors
    assert "manager shop: some metrics are missing: name='orders' is in use" in errors
    assert "Traceback" not in errors
    assert 'manager_ready{manager="shop"} 1.0' in output
    [requests] = re.findall(r'^rest_client_requests_total{code="200",.*method="GET"} (.*)$', output, re.MULTILINE)
    assert float(requests) >= 2, "of both transports"


async def test_manager_without_a_program_collects_only_what_is_asked_for(api_server: ApiServer) -> None:
    for option in (None, False):
        async with Manager("quiet", client=api_server.url, metrics=option) as manager:
            assert manager.ready()
    assert "quiet" not in generate_latest(REGISTRY).decode()
    with pytest.raises(UsageError, match="metrics must be a provider such as PrometheusMetrics"):
        Manager("quiet", metrics=True)  # type: ignore[arg-type]


@pytest.mark.behaviour("C-190")
async def test_counters_begin_with_0(api_server: ApiServer, scraped: Scraped) -> None:
    manager = Manager("shop", client=api_server.url, metrics=scraped.metrics)
    watch = Watch(core_v1.SERVICES, to=lambda obj: [])

    @manager.controller(core_v1.CONFIG_MAPS, watches=[watch])
    async def maps(request: Request[Any]) -> None: ...

    async with manager:
        await scraped.reaches(1, "controller_phase", controller="maps", phase="working")
        for result in ("success", "requeue_after", "retry_after", "conflict", "error", "timeout", "stale"):
            assert scraped("controller_runtime_reconcile_total", controller="maps", result=result) == 0
        for name in ("input_errors", "lost_changes"):
            assert scraped(f"controller_{name}_total", controller="maps", input=str(watch)) == 0
        assert scraped("controller_self_caused_runs_total", controller="maps") == 0
        for code in ("401", "<error>"):
            host = api_server.url[7:]
            assert scraped("rest_client_requests_total", code=code, method="GET", host=host) == 0
        relists = [
            line for line in (await page_of(scraped)).splitlines() if line.startswith("reflector_relists_total{")
        ]
        assert {'reason="silent"', 'reason="expired"'} <= {part for each in relists for part in re.split("[{,}]", each)}
