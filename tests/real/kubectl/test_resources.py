"""`kubectl get` of each resource that a server serves: it is always answered."""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import TYPE_CHECKING

import pytest

from tests.real.kubectl.conftest import environment, for_namespace
from tests.real.kubectl.running import Kubectl
from tests.real.kubectl.script import write_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FORMS = {
    "default": [],
    "wide": ["-o", "wide"],
    "yaml": ["-o", "yaml", "--show-managed-fields"],
    "json": ["-o", "json"],
    "name": ["-o", "name"],
    "columns": ["-o", "custom-columns=NAME:.metadata.name"],
    "all_namespaces": ["-A"],
    "label_selector": ["-l", "app=web"],
    "field_selector": ["--field-selector=metadata.name=a"],
    "sorted": ["--sort-by=.metadata.name"],
    "in_chunks": ["--chunk-size=20"],
}
WATCHES_AT_ONCE = 12
# kubectl logs the status of each response with `-v=6`: `… status="200 OK" …`, or `GET https://… 200 OK in …` before.
STATUS = re.compile(r'(?: |status=")([1-5]\d\d) [A-Z]')


@pytest.fixture
async def talk(kubeconfig: Path, kubectl_program: str, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """kubectl in a namespace with pods, a deployment and a config map."""
    namespace, config = f"row-{secrets.token_hex(4)}", tmp_path / "kubeconfig"
    for_namespace(kubeconfig, namespace, config)
    kubectl = Kubectl(kubectl_program, environment(tmp_path, config), tmp_path / "files")
    write_files(tmp_path / "files")
    await kubectl("create", "namespace", namespace)
    await kubectl("create", "-f", "pods.yaml", "-f", "deployment.yaml", "-f", "configmap.yaml")
    yield kubectl
    await kubectl("delete", "namespace", namespace, "--wait=false")


async def statuses(kubectl: Kubectl, *arguments: str) -> set[str]:
    """Run a command until it ends, or for a second if it watches, and return the statuses of all responses."""
    async with kubectl.running(*arguments, "-v=6") as process:
        _, said = await process.communicate()
    assert b"NotImplemented" not in said, said.decode()
    return {status for line in said.decode().splitlines() for status in STATUS.findall(line) if "GET" in line}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_get_answers_for_each_resource(talk: Kubectl, form: list[str]) -> None:
    listable = (await talk("api-resources", "--verbs=list", "-o", "name")).split()
    assert len(listable) > 50
    assert await statuses(talk, "get", ",".join(listable), *form) == {"200"}


async def test_get_watches_each_resource(talk: Kubectl) -> None:
    listable = (await talk("api-resources", "--verbs=list,watch", "-o", "name")).split()
    turns = asyncio.Semaphore(WATCHES_AT_ONCE)

    async def watch(resource: str) -> None:
        async with turns:
            assert await statuses(talk, "get", resource, "--watch", "--request-timeout=1s") == {"200"}, resource

    async with asyncio.TaskGroup() as watches:
        for resource in listable:
            watches.create_task(watch(resource))
