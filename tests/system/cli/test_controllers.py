"""`aioinformer check` and `run`: the manifest of a manager is sufficient, and a manager runs until a signal."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml

from aioinformer.cli.controllers.needs import needs
from aioinformer.controller import Controller, Manager, Request
from aioinformer.models import apps_v1, core_v1
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.shell import Shell


PROGRAM = """
from aioinformer import Resource
from aioinformer.controller import LeaderElection, Manager, Watch
from aioinformer.models import core_v1

CRONS = Resource("example.com", "v1", "crons", kind="Cron")
manager = Manager("widgets", leader_election=LeaderElection("widgets-lease", namespace="ops"))


@manager.controller(
    core_v1.CONFIG_MAPS,
    owns=[core_v1.SECRETS],
    watches=[Watch(core_v1.NODES, to=lambda node: [])],
    writes={core_v1.SECRETS: ("create", "patch"), core_v1.CONFIG_MAPS: ("patch",)},
)
async def widgets(request):
    if request.object is not None and not request.object.data:
        await request.client.core.v1.configmaps.patch(request.object, {"data": {"seen": "yes"}})
        print("patched", request.key, flush=True)


with_a_missing_kind = Manager("crons")


@with_a_missing_kind.controller(CRONS)
async def crons(request): ...


number = 3
"""

LEVELS = """
import logging

from aioinformer.controller import Manager, Retry
from aioinformer.models import core_v1

manager = Manager("levels")


@manager.controller(core_v1.CONFIG_MAPS)
async def levels(request):
    logging.getLogger("of.the.user").debug("a detail")
    if request.attempt == 1:
        raise Retry("dns answers 500")
    print("done", flush=True)
"""


ACCOUNT = "system:serviceaccount:ops:widgets"


RESOURCES = """
import asyncio
import contextlib

from aioinformer.controller import Manager
from aioinformer.models import core_v1


@contextlib.asynccontextmanager
async def session(manager):
    print("enters", flush=True)
    yield "resource"
    print("leaves", flush=True)


manager = Manager("resources", lifespan=session)


@manager.controller(core_v1.CONFIG_MAPS, writes={})
async def maps(request):
    pass


@manager.background(writes={core_v1.SECRETS: ("delete",), core_v1.PODS: ("patch",)})
async def sweep(run):
    run.log.info("sweeps with %s", run.state)
    await asyncio.Event().wait()


@manager.background
async def refresh(run):
    pass
"""


@pytest.fixture
async def secured() -> AsyncIterator[ApiServer]:
    async with ApiServer(authorization_mode="RBAC") as running:
        running.create("namespaces", {"metadata": {"name": "ops"}})
        yield running


@pytest.fixture(autouse=True)
def program(shell: Shell) -> None:
    (shell.home / "program.py").write_text(PROGRAM)
    (shell.home / "levels.py").write_text(LEVELS)
    (shell.home / "resources.py").write_text(RESOURCES)


def documents(lines: list[str]) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all("\n".join(lines)))


def rules(lines: list[str], kind: str) -> dict[str, list[str]]:
    """Return the verbs by resource of the only role of a kind."""
    [role] = [each for each in documents(lines) if each["kind"] == kind]
    return {each["resources"][0]: each["verbs"] for each in role["rules"]}


@pytest.mark.behaviour("C-127")
async def test_log_level_hides_what_is_below(shell: Shell) -> None:
    finished = await shell.run("check", "program:manager", "--log-level", "error")

    assert (finished.code, finished.stderr) == (0, "")


@pytest.mark.behaviour("C-90")
async def test_manifest_permits_what_inputs_and_writes_need(shell: Shell) -> None:
    finished = await shell.run("check", "program:manager")

    assert finished.code == 0
    assert "no cluster was looked at" in finished.stderr
    assert rules(finished.lines, "ClusterRole") == {
        "configmaps": ["get", "list", "watch", "patch"],
        "configmaps/finalizers": ["update"],
        "events": ["create", "patch"],
        "nodes": ["list", "watch"],
        "secrets": ["get", "list", "watch", "create", "patch"],
    }
    kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert [each["kind"] for each in documents(finished.lines)] == kinds
    assert rules(finished.lines, "Role") == {"leases": ["get", "watch", "update"]}


@pytest.mark.behaviour("C-90", "C-150")
async def test_check_has_the_writes_of_background_tasks_and_enters_nothing(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("check", "resources:manager", "--kubeconfig", kubeconfig)

    assert rules(finished.lines, "ClusterRole") == {
        "configmaps": ["list", "watch"],
        "events": ["create", "patch"],
        "pods": ["get", "list", "patch"],
        "pods/status": ["patch"],
        "secrets": ["get", "list", "delete"],
    }
    assert "Background task refresh does not declare its writes; pass writes= to it" in finished.stderr
    assert "enters" not in "".join(finished.lines)


@pytest.mark.behaviour("C-150", "C-153")
@pytest.mark.parametrize("option", ["", "--dry-run"])
async def test_run_enters_the_lifespan_and_leaves_it(shell: Shell, kubeconfig: Path, option: str) -> None:
    options = [option] if option else []
    command = await shell.start("run", "resources:manager", "--kubeconfig", kubeconfig, *options)
    await command.says("sweep: sweeps with resource")
    finished = await command.finish(signal.SIGTERM)

    assert (finished.code, finished.lines) == (0, ["enters", "leaves"])
    assert "background task refresh has returned" in finished.stderr


@pytest.mark.behaviour("C-90")
async def test_manifest_in_json_has_the_same_objects(shell: Shell) -> None:
    as_yaml = await shell.run("check", "program:manager")
    as_json = await shell.run("check", "program:manager", "-o", "json")

    listed = json.loads("\n".join(as_json.lines))
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == documents(as_yaml.lines)


@pytest.mark.behaviour("C-90")
def test_verb_includes_the_status_of_the_own_resource_alone() -> None:
    async def reconcile(request: Request[Any]) -> None: ...

    own = Manager("m", [Controller("c", apps_v1.DEPLOYMENTS, reconcile, writes={apps_v1.DEPLOYMENTS: ("patch",)})])
    assert ("deployments/status", ("patch",)) in [(rule.what, rule.verbs) for rule in needs(own)]
    for verbs, expected in {
        ("patch",): {"deployments": ["get", "list", "patch"]},
        ("status/patch",): {"deployments": ["get", "list"], "deployments/status": ["patch"]},
        ("scale/patch",): {"deployments": ["get", "list"], "deployments/scale": ["patch"]},
    }.items():
        manager = Manager("m", [Controller("c", core_v1.NODES, reconcile, writes={apps_v1.DEPLOYMENTS: verbs})])
        found = {rule.what: list(rule.verbs) for rule in needs(manager) if rule.what.startswith("deployments")}
        assert found == expected


@pytest.mark.behaviour("C-91")
def test_events_about_cluster_scoped_objects_are_in_default() -> None:
    async def reconcile(request: Request[Any]) -> None: ...

    manager = Manager("m", [Controller("c", core_v1.NODES, reconcile)], namespaces=["shop"])
    places = {rule.namespace for rule in needs(manager) if rule.what == "events"}
    assert places == {"shop", "default"}
    namespaced = Manager("m", [Controller("c", core_v1.PODS, reconcile)], namespaces=["shop"])
    assert {rule.namespace for rule in needs(namespaced)} == {"shop"}


@pytest.mark.behaviour("C-91")
async def test_namespaces_make_roles_instead_of_cluster_roles(shell: Shell) -> None:
    finished = await shell.run("check", "program:manager", "-n", "shop,prod", "--service-account", "ops/robot")

    found = documents(finished.lines)
    roles = {each["metadata"]["namespace"]: str(each) for each in found if each["kind"] == "Role"}
    assert sorted(roles) == ["ops", "prod", "shop"]
    assert "secrets" in roles["shop"]
    assert "nodes" not in roles["shop"]
    assert rules(finished.lines, "ClusterRole") == {"nodes": ["list", "watch"]}
    subjects = {str(each["subjects"]) for each in found if "subjects" in each}
    assert subjects == {"[{'kind': 'ServiceAccount', 'name': 'robot', 'namespace': 'ops'}]"}


@pytest.mark.behaviour("C-92")
async def test_review_names_what_is_forbidden_until_it_is_applied(
    shell: Shell, secured: ApiServer, tmp_path: Path
) -> None:
    kubeconfig = secured.kubeconfig(tmp_path / "kubeconfig")
    arguments = ("check", "program:manager", "--kubeconfig", kubeconfig, "--as", ACCOUNT)

    before = await shell.run(*arguments)
    assert before.code == 1
    assert f"{ACCOUNT} may not list, watch nodes in the cluster: controller widgets watches them" in before.stderr

    for document in documents(before.lines):
        plural = f"{document['kind'].lower()}s"
        secured.create(plural, document, document["metadata"].get("namespace", ""))
    after = await shell.run(*arguments)
    assert (after.code, after.lines) == (0, before.lines)
    assert "the cluster has all that manager widgets needs" in after.stderr


@pytest.mark.behaviour("C-93")
async def test_review_names_kinds_that_are_not_served(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("check", "program:with_a_missing_kind", "--kubeconfig", kubeconfig)

    assert finished.code == 1
    assert "example.com/v1/crons is not served; apply its CustomResourceDefinition" in finished.stderr
    assert "Controller crons does not declare its writes" in finished.stderr


async def test_cluster_that_is_named_and_not_there_is_an_error(shell: Shell, unused_tcp_port: int) -> None:
    finished = await shell.run("check", "program:manager", "--server", f"http://127.0.0.1:{unused_tcp_port}")

    assert finished.code == 1
    assert finished.lines
    assert "the cluster could not be checked" in finished.stderr


async def test_review_that_is_refused_is_an_error(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    async with ApiServer(authorization_mode="RBAC", tokens={"secret": "someone"}) as server:
        finished = await shell.run(
            *("check", "program:manager", "--server", server.url, "--token-file", tmp_path / "token", "--as", ACCOUNT)
        )

    assert finished.code == 1
    assert "the cluster could not be checked: 403 Forbidden" in finished.stderr
    assert "report it" not in finished.stderr


@pytest.mark.parametrize("command", ["check", "run"])
async def test_module_that_raises_is_shown_with_its_frames(shell: Shell, command: str) -> None:
    (shell.home / "broken.py").write_text("import helping\n\nhelping.divide(1)\n")
    (shell.home / "helping.py").write_text("def divide(number):\n    return number / 0\n")

    finished = await shell.run(command, "broken:manager")

    assert (finished.code, finished.lines) == (2, [])
    frames = [line.strip() for line in finished.stderr.splitlines() if line.startswith("  File")]
    assert [frame.rpartition("/")[2] for frame in frames] == [
        'broken.py", line 3, in <module>',
        'helping.py", line 2, in divide',
    ]
    assert "    return number / 0" in finished.stderr
    assert "module broken cannot be imported: ZeroDivisionError: division by zero" in finished.stderr


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("program", "write MODULE:NAME, such as widgets:manager"),
        ("program.py:manager", "write the module, program:manager"),
        ("nothing:manager", "there is no module 'nothing'"),
        ("program:nothing", "module program has no nothing; it has program:manager"),
        ("program:number", "program:number is of type int, and not a Manager; it has program:manager"),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
async def test_wrong_place_gets_a_remedy(shell: Shell, command: str, place: str, message: str) -> None:
    finished = await shell.run(command, place)

    assert (finished.code, finished.lines) == (2, [])
    assert message in finished.stderr


@pytest.fixture
def kubeconfig(server: ApiServer, kubeconfig: Path) -> Path:
    """The kubeconfig of a server with objects."""
    for namespace in ("ops", "shop"):
        server.create("namespaces", {"metadata": {"name": namespace}})
        server.create("configmaps", {"metadata": {"name": "one", "namespace": namespace}}, namespace)
    return kubeconfig


@pytest.mark.behaviour("C-94")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_manager_runs_until_a_signal(shell: Shell, kubeconfig: Path, number: signal.Signals) -> None:
    command = await shell.start("run", "program:manager", "-n", "shop", "--kubeconfig", kubeconfig, "--log-format=json")
    line = await command.line()
    finished = await command.finish(number)

    assert (finished.code, line, finished.lines) == (0, "patched shop/one", ["patched shop/one"])
    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert any(number.name in each["message"] and each["level"] == "info" for each in records)


async def test_signal_before_the_manager_runs_ends_with_0(shell: Shell, kubeconfig: Path) -> None:
    (shell.home / "early.py").write_text(
        "import os, signal\n\nos.kill(os.getpid(), signal.SIGTERM)\nfrom program import manager\n"
    )
    finished = await shell.run("run", "early:manager", "--kubeconfig", kubeconfig)
    assert (finished.code, finished.lines, finished.stderr) == (0, [], "")


async def test_signal_before_the_review_ends_with_1(shell: Shell, kubeconfig: Path) -> None:
    (shell.home / "early.py").write_text(
        "import os, signal\n\nos.kill(os.getpid(), signal.SIGINT)\nfrom program import manager\n"
    )
    finished = await shell.run("check", "early:manager", "--kubeconfig", kubeconfig)
    assert finished.code == 1
    assert "interrupted before the cluster was checked" in finished.stderr


@pytest.mark.behaviour("C-81", "C-190")
async def test_probes_listen_at_the_health_port(shell: Shell, kubeconfig: Path, unused_tcp_port: int) -> None:
    options = ("--kubeconfig", kubeconfig, "--health-port", str(unused_tcp_port))
    command = await shell.start("run", "program:manager", *options)
    await command.line()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as client:
        for path in ("/livez", "/readyz"):
            async with client.get(path) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
        async with client.get("/metrics") as response:
            text = await response.text()
    assert 'manager_ready{manager="widgets"} 1.0\n' in text
    assert "process_resident_memory_bytes " in text  # of the process, as exporters of other programs have it
    assert (await command.finish(signal.SIGTERM)).code == 0


NO_PROMETHEUS = """
import sys

sys.modules.pop("aioinformer.prometheus", None)
sys.modules["prometheus_client"] = None
from program import manager
"""


@pytest.mark.behaviour("C-190")
async def test_without_prometheus_client_the_path_says_what_to_install(
    shell: Shell, kubeconfig: Path, unused_tcp_port: int
) -> None:
    (shell.home / "without.py").write_text(NO_PROMETHEUS)
    options = ("--kubeconfig", kubeconfig, "--health-port", str(unused_tcp_port))
    command = await shell.start("run", "without:manager", *options)
    await command.says("there are no metrics: aioinformer.prometheus needs prometheus-client")
    await command.line()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as client:
        async with client.get("/metrics") as response:
            assert response.status == 404
            assert "install aioinformer[prometheus]" in await response.text()
        async with client.get("/livez") as response:
            assert response.status == 200
    assert (await command.finish(signal.SIGTERM)).code == 0


@pytest.mark.behaviour("C-127")
@pytest.mark.parametrize(("level", "shown"), [("debug", {"debug", "info", "warning"}), ("WARNING", {"warning"})])
async def test_log_level_is_an_option(shell: Shell, kubeconfig: Path, level: str, shown: set[str]) -> None:
    options = ("--kubeconfig", kubeconfig, "--log-format", "json", "--log-level", level)
    command = await shell.start("run", "levels:manager", *options)
    await command.line()
    finished = await command.finish(signal.SIGTERM)

    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert {each["level"] for each in records} - {"error"} == shown


@pytest.mark.behaviour("C-127")
async def test_lines_of_attempts_have_controller_and_key_in_json(shell: Shell, kubeconfig: Path) -> None:
    command = await shell.start("run", "levels:manager", "-n", "shop", "--kubeconfig", kubeconfig, "--log-format=json")
    await command.line()
    finished = await command.finish(signal.SIGTERM)

    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert {
        (each["level"], each["controller"], each["key"]) for each in records if "dns answers 500" in each["message"]
    } == {("warning", "levels", "shop/one")}


async def test_dry_run_writes_nothing(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    command = await shell.start("run", "program:manager", "--kubeconfig", kubeconfig, "--dry-run")
    await command.says("dry run: patch configmaps shop/one")
    finished = await command.finish(signal.SIGTERM)

    assert finished.code == 0
    assert "data" not in server.get("configmaps", "one", "shop")
    assert not server.list("leases", "ops")
    assert "  + data.seen\n" in finished.stderr


async def test_dry_run_shows_values_on_request(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    refused = await shell.run("run", "program:manager", "--kubeconfig", kubeconfig, "--show-values")
    assert refused.code == 2
    assert "--show-values needs --dry-run" in refused.stderr
    options = "--kubeconfig", kubeconfig, "--dry-run", "--show-values"
    command = await shell.start("run", "program:manager", *options)
    await command.says('  + data.seen: "')
    assert (await command.finish(signal.SIGTERM)).code == 0


async def test_no_cluster_is_an_error(shell: Shell) -> None:
    finished = await shell.run("run", "program:manager")

    assert (finished.code, finished.lines) == (2, [])
    assert "no cluster found" in finished.stderr
