"""Each example runs as a process, with warnings as errors, and prints what its docstring promises.

`tests/project/docs` runs the code of the documentation.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from aioinformer import Client, HttpTransport
from aioinformer.models import apiextensions_v1, apps_v1
from aioinformer.testing import ApiServer
from aioinformer.webhooks import WebhookServer
from tests.support.api import DEFINITION
from tests.support.example_controllers import complaints, play

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[3]
EXAMPLES = PROJECT / "examples"


NOT_PROGRAMS = {"cluster.py", "test_controller.py"}


def run(name: str, *arguments: str) -> str:
    """Run an example that ends by itself, and return its output."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert complaints(done.stderr) == []
    assert done.returncode == 0
    return done.stdout


def test_quickstart_prints_and_counts_pods() -> None:
    output = run("quickstart.py", "--duration", "3")
    assert re.search(r"^\+ [a-z0-9-]+/[a-z0-9-]+$", output, re.MULTILINE)
    assert re.search(r"^[1-9]\d* pods are in the cache$", output, re.MULTILINE)
    assert re.search(r"^~ [a-z0-9-]+/[a-z0-9-]+ is \w+$", output, re.MULTILINE)


def test_pod_informer_calls_all_three_handlers() -> None:
    output = run("pod_informer.py", "--duration", "5")
    assert {line.split()[0] for line in output.splitlines()} >= {"added", "updated", "deleted"}


def test_fake_indexer_prints_the_result_of_each_method() -> None:
    answers = dict(re.findall(r"^([^:]+): +(.*)$", run("fake_indexer.py"), re.MULTILINE))
    assert answers == {
        "list": "office/mail, shop/cart, shop/search",
        "list_keys": "office/mail, shop/cart, shop/search",
        "get_by_key": "shop/cart",
        "get": "office/mail",
        "by_index node": "office/mail, shop/cart",
        "by_index user": "shop/cart, shop/search",
        "by_index namespace": "shop/cart, shop/search",
        "index_keys user": "office/mail, shop/cart",
        "index user of cart": "office/mail, shop/cart, shop/search",
        "list_index_func_values": "bert, elmo, ernie, oscar",
        "get_indexers": "namespace, node, user",
        "after the update": "shop/cart, shop/search",
        "after the delete": "office/mail, shop/cart",
        "add_indexers, later": "office/mail",
        "after replace": "office/mail",
    }


def test_deployment_lister_lists_and_raises_not_found() -> None:
    lines = run("deployment_lister.py").splitlines()
    assert re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+: \d+ of \S+", lines[0])
    assert re.fullmatch(r"[1-9]\d* deployments without the label canary", lines[-2])
    assert lines[-1] == 'deployments.apps "no-such-deployment" not found'


def test_indexed_cache_finds_pods_by_node_and_image() -> None:
    output = run("indexed_cache.py")
    assert re.search(r"^node \S+: [a-z0-9-]+/[a-z0-9-]+", output, re.MULTILINE)
    assert re.search(r"^image \S+: [a-z0-9-]+/[a-z0-9-]+", output, re.MULTILINE)


def test_custom_resource_is_decoded_into_a_class() -> None:
    lines = run("custom_resource.py").splitlines()
    assert sorted(lines) == [
        "2 widgets with a total size of 5",
        "added   first: grey, size 1",
        "added   second: grey, size 2",
        "updated first: 1 -> 3",
    ]


def test_workqueue_controller_reconciles_and_retries() -> None:
    output = run("workqueue_controller.py", "--duration", "5")
    assert {line.split()[0] for line in output.splitlines()} >= {"synced", "failed", "dropped", "deleted"}
    assert re.search(r"^\d+ keys were queued, [1-9]\d* of them as retries$", output, re.MULTILINE)


def test_leader_election_hands_over_to_each_candidate() -> None:
    lines = [line for line in run("leader_election.py").splitlines() if " sees " not in line]
    leaders = [line.split()[0] for line in lines[::2]]
    assert sorted(leaders) == ["candidate-1", "candidate-2", "candidate-3"]
    assert lines == [
        line
        for term, leader in enumerate(leaders)
        for line in (f"{leader} leads term {term}", f"{leader} has ended its work")
    ]


def test_retry_on_conflict_loses_no_increment() -> None:
    match = re.fullmatch(r"4 writers counted to 20, in (\d+) attempts", run("retry_on_conflict.py").strip())
    assert match is not None
    assert int(match[1]) >= 20


def test_list_and_watch_lists_pages_and_waits_for_events() -> None:
    lines = run("list_and_watch.py").splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["listed"] * 3
    assert re.fullmatch(r"[1-9]\d* pods", lines[3])
    assert lines[4:] == ["ADDED aioinformer-example", "DELETED aioinformer-example"]


def test_multi_namespace_adds_and_removes_namespaces() -> None:
    lines = run("multi_namespace.py").splitlines()
    assert sorted(lines) == [
        "added: default/of-many",
        "added: kube-public/of-many",
        "deleted: default/of-many",
        "one namespace: default/of-many",
        "the other namespace: kube-public/of-many",
        "two namespaces: default/of-many, kube-public/of-many",
    ]


def test_event_recorder_writes_events_to_the_server() -> None:
    lines = run("event_recorder.py", "--duration", "3").splitlines()
    assert re.search(r"refused=0, dropped=0, waiting=0", lines[0])
    seen = [line for line in lines if re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+: Seen x1: the pod is in the cache", line)]
    assert len(seen) > 5


def test_service_streams_and_answers() -> None:
    with service("aiohttp_service.py") as url:
        nodes = ask(f"{url}/nodes")
        with urlopen(f"{url}/live", timeout=200) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            lines = iter(answer.readline, b"event: synced\n")
            rows = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]
        with urlopen(f"{url}/metrics", timeout=200) as answer:
            metrics = answer.read().decode()
    assert nodes
    assert {"resource", "key", "object"} in [set(row) for row in rows]
    assert 'informer_store_items{group="",name="web",resource="pods",version="v1"}' in metrics


def test_service_ends_after_its_duration() -> None:
    assert run("aiohttp_service.py", "--duration", "1").startswith("listening on http://127.0.0.1:")


@pytest.mark.parametrize(
    ("name", "duration"),
    [
        ("custom_resource.py", ""),
        ("list_and_watch.py", ""),
        ("multi_namespace.py", ""),
        ("retry_on_conflict.py", ""),
        ("leader_election.py", ""),
        ("event_recorder.py", "1"),
    ],
)
async def test_example_runs_again_after_an_interruption(
    api_server: ApiServer, tmp_path: Path, name: str, duration: str
) -> None:
    kubeconfig = str(api_server.kubeconfig(tmp_path / "kubeconfig"))
    left = (("default", "of-many"), ("kube-public", "of-many"), ("default", "aioinformer-example-counter"))
    for namespace, config_map in left:
        api_server.create("configmaps", {"metadata": {"name": config_map}}, namespace)
    container = {"name": "main", "image": "example.com/none"}
    api_server.create("pods", {"metadata": {"name": "aioinformer-example"}, "spec": {"containers": [container]}})
    api_server.create("customresourcedefinitions", DEFINITION)
    for _ in range(2):
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", str(EXAMPLES / name), "--kubeconfig", kubeconfig),
            *(["--duration", duration] if duration else []),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(200):
            output, errors = await program.communicate()
        assert (program.returncode, complaints(errors.decode())) == (0, [])
        assert output


@pytest.mark.behaviour("C-89")
@pytest.mark.parametrize(
    "name",
    [
        "widgets.py",
        "website.py",
        "sample_controller.py",
        "replicas.py",
        "namespace_provisioner.py",
        "fastapi_controller.py",
    ],
)
async def test_controller_does_what_its_user_expects(
    api_server: ApiServer, tmp_path: Path, unused_tcp_port: int, name: str
) -> None:
    await play(name, api_server.kubeconfig(tmp_path / "kubeconfig"), unused_tcp_port)


@pytest.mark.behaviour("C-89")
async def test_role_that_check_prints_is_sufficient(tmp_path: Path, unused_tcp_port: int) -> None:
    command = (sys.executable, "-m", "aioinformer", "check", "widgets:manager")
    check = await asyncio.create_subprocess_exec(*command, cwd=EXAMPLES, stdout=asyncio.subprocess.PIPE)
    (tmp_path / "rbac.yaml").write_bytes((await check.communicate())[0])
    assert check.returncode == 0
    tokens = {"secret": "system:serviceaccount:default:widgets", "root": "root,system:masters"}
    async with ApiServer(authorization_mode="RBAC", tokens=tokens) as server:
        server.load_manifests(tmp_path / "rbac.yaml")
        root = server.kubeconfig(tmp_path / "root", user="root,system:masters")
        account = server.kubeconfig(tmp_path / "account", user="system:serviceaccount:default:widgets")
        await play("widgets.py", root, unused_tcp_port, account)


def test_manifests_and_the_image_fit_the_program() -> None:
    definition = yaml.safe_load((EXAMPLES / "widgets.yaml").read_text())
    assert definition["metadata"]["name"] == "widgets.example.com"
    deployment = yaml.safe_load((EXAMPLES / "deploy.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    port = container["ports"][0]["containerPort"]
    image = (EXAMPLES / "Dockerfile").read_text()
    assert "COPY widgets.py" in image
    assert f'"widgets:manager", "--health-port", "{port}"' in image


def test_widget_controller_is_short() -> None:
    assert len((EXAMPLES / "widgets.py").read_text().splitlines()) <= 80


def test_website_controller_is_short() -> None:
    """Count the lines without comments, docstrings, blank lines and imports."""
    source = (EXAMPLES / "website.py").read_text()
    lines = {number for number, text in enumerate(source.splitlines(), 1) if text.strip() and text.strip()[0] != "#"}
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_text or isinstance(node, ast.Import | ast.ImportFrom)):
            lines -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    assert len(lines) <= 90


async def test_definition_of_the_website_is_that_of_its_class() -> None:
    command = (sys.executable, "-m", "aioinformer", "crd", "website:Website", "--check", "website.yaml")
    check = await asyncio.create_subprocess_exec(*command, cwd=EXAMPLES, stdout=asyncio.subprocess.PIPE)
    assert (await check.communicate())[0].decode() == ""
    assert check.returncode == 0


def test_every_example_has_a_test() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")} - NOT_PROGRAMS
    source = Path(__file__).read_text()
    assert {name for name in programs if f'"{name}"' not in source} == set()


@contextmanager
def service(name: str) -> Iterator[str]:
    """Run a service, yield its URL when it is ready, and interrupt it at the end, as Ctrl-C does."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").strip()
            assert url, process.communicate()
            while not _is_ready(url):
                time.sleep(0.05)
            yield url
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=200)
        finally:
            process.kill()
    assert complaints(errors) == []
    assert process.returncode == 0


def ask(url: str) -> Any:
    with urlopen(url, timeout=200) as answer:
        return json.load(answer)


def _is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=200):
            return True
    except HTTPError as error:
        with error:  # 503 until the cache has synced
            return False
    except ConnectionError:
        return False


def test_first_program_of_the_readme_ends_without_a_traceback(tmp_path: Path) -> None:
    program = re.search(r"```python\n(import asyncio.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    assert program is not None
    (tmp_path / "first.py").write_text(program[1])
    serving = subprocess.Popen(
        [sys.executable, "-m", "aioinformer", "serve", "--kubeconfig", str(tmp_path / "kubeconfig")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    with serving:
        try:
            assert serving.stdout.readline().startswith("KUBECONFIG=")
            following = subprocess.Popen(
                [sys.executable, "-W", "error", "-u", str(tmp_path / "first.py")],
                env={**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            with following:
                assert following.stdout is not None
                assert following.stdout.readline() == "0 pods with app=web\n"
                following.send_signal(signal.SIGINT)
                _, told = following.communicate(timeout=200)
            assert (following.returncode, told) == (0, "")
        finally:
            serving.terminate()


async def test_operator_serves_two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("two_versions.py".removesuffix(".py"))
    async with ApiServer() as server, HttpTransport(server.url, token="token") as transport:
        manager = example.manager
        manager.client = transport
        manager.webhooks = WebhookServer("gates", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        client = Client(transport, namespace="default", field_manager="tests")
        # The conversion is served before any list of the operator's own caches can be answered.
        async with asyncio.timeout(200), manager:
            await client.apply_all([example.GATES.crd({"url": f"https://127.0.0.1:{manager.admission.port}/convert"})])
            old = client.resource(example.OLD_GATES)
            gate = {"metadata": {"name": "web"}, "spec": {"size": 3, "address": "shop/us"}}
            while not await is_trusted(client):  # noqa: ASYNC110 - the operator writes its CA
                await asyncio.sleep(0.05)
            await old.apply(gate)
            new = client.resource(example.GATES)
            spec = (await new.get("web")).spec
            assert (spec.replicas, spec.host, spec.zone) == (3, "shop", "us")
            await new.patch("web", {"spec": {"resources": {"limits": {"cpu": 2}}}})
            await old.apply({**gate, "spec": {"size": 2, "address": "shop/us"}})
            deployments = client.resource(apps_v1.DEPLOYMENTS)
            while True:
                found = await deployments.get_or_none("web")
                made = {} if found is None else found.to_dict()["spec"]
                if made.get("replicas") == 2:
                    break
                await asyncio.sleep(0.05)
            [container] = made["template"]["spec"]["containers"]
            assert container["resources"]["limits"] == {"cpu": "2"}


async def is_trusted(client: Client) -> bool:
    """Return whether the definition has the CA of the webhook."""
    definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
    found = (await definitions.get("gates.example.com")).to_dict()
    return "caBundle" in found["spec"]["conversion"]["webhook"]["clientConfig"]
