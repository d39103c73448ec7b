"""`aioinformer uninstall --dry-run`: what a manager has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import Client, HttpTransport
from aioinformer.cli.controllers.uninstall import left_by
from aioinformer.controller import Manager
from aioinformer.models import core_v1
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Shell

PROGRAM = """
from aioinformer.controller import LeaderElection, Manager
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.webhooks import WebhookServer

manager = Manager(
    "widgets", leader_election=LeaderElection("widgets", "default"), webhooks=WebhookServer("widgets", "default")
)
sharing = Manager("sharing", ring=ControllerRing("web", "default"))


@manager.controller(core_v1.CONFIG_MAPS, name="maps", owns=[core_v1.SECRETS])
async def maps(request): ...
"""


@pytest.fixture(autouse=True)
async def left(shell: Shell, server: ApiServer) -> None:
    """Leave objects of two managers, and of others, in the cluster."""
    (shell.home / "program.py").write_text(PROGRAM)
    named = {"name": "widgets", "namespace": "default"}
    server.create("leases", {"metadata": named})
    server.create("leases", {"metadata": {**named, "name": "other"}})
    server.create("secrets", {"metadata": {**named, "name": "widgets-webhook-ca"}, "data": {"tls.key": "c2VjcmV0"}})
    service = {"service": {"name": "widgets", "namespace": "default", "path": "/validate/widgets.example.com"}}
    hooks = configuration("ValidatingWebhookConfiguration", webhook("a", service), name="widgets.default")
    server.create("validatingwebhookconfigurations", hooks)
    others = configuration(
        "MutatingWebhookConfiguration", webhook("a", {"url": "https://other"}), name="widgets.default"
    )
    server.create("mutatingwebhookconfigurations", others)
    label = {"aioinformer/ring": "web"}
    server.create("leases", {"metadata": {**named, "name": "web-a", "labels": label}})
    server.create("configmaps", {"metadata": {**named, "name": "web-ring", "labels": label}})
    server.create("configmaps", {"metadata": {**named, "name": "web-copy"}})
    async with HttpTransport(server.url) as transport:
        client = Client(transport, namespace="default")
        held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.com/a"]}}
        child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child"}, "data": {"key": "dmFsdWU="}}
        foreign = {**held, "metadata": {"name": "b"}, "data": {"k": "v"}}
        await client.core.v1.configmaps.apply(held, field_manager="maps")
        await client.core.v1.secrets.apply(child, field_manager="maps")
        await client.core.v1.configmaps.apply(foreign, field_manager="others")
        for reporter in ("widgets", "other"):
            about = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
            event = {"metadata": {"name": f"a.{reporter}"}, "involvedObject": about, "reportingComponent": reporter}
            await client.core.v1.events.create({**event, "reportingInstance": "host", "reason": "Failing"})


async def test_objects_of_controllers_and_of_the_manager_are_listed(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("uninstall", "program:manager", "--dry-run", "--kubeconfig", kubeconfig)
    assert finished.lines == [
        "configmaps/a -n default: controller maps has set its finalizer example.com/a",
        "secrets/child -n default: controller maps has set fields",
        "leases.coordination.k8s.io/widgets -n default: the Lease of the leader election",
        "secrets/widgets-webhook-ca -n default: the CA of the webhooks",
        "validatingwebhookconfigurations.admissionregistration.k8s.io/widgets.default: "
        "calls the webhooks: delete it before the manager",
        "events/a.widgets -n default: recorded by the manager; it expires by itself",
    ]
    assert finished.code == 0
    assert "manager widgets has left 6 objects; nothing was removed" in finished.stderr


async def test_objects_of_a_ring_have_its_label(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("uninstall", "program:sharing", "--dry-run", "--kubeconfig", kubeconfig)
    assert finished.lines == [
        "leases.coordination.k8s.io/web-a -n default: ring web: the Lease of a replica",
        "configmaps/web-ring -n default: ring web: which replica owns which slot",
    ]


async def test_without_dry_run_nothing_is_asked(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("uninstall", "program:manager", "--kubeconfig", kubeconfig)
    assert (finished.code, finished.lines) == (2, [])
    assert "pass --dry-run: the command lists what is left, and removes nothing" in finished.stderr


async def test_listing_sends_no_write(server: ApiServer) -> None:
    manager = Manager("widgets")
    manager.controller(core_v1.CONFIG_MAPS, name="maps")(_nothing)
    before = len(server.requests)
    async with HttpTransport(server.url) as transport:
        assert [each.name async for each in left_by(manager, transport)] == ["a", "a.widgets"]
    assert {each.method for each in list(server.requests)[before:]} == {"GET"}


async def _nothing(request: object) -> None: ...
