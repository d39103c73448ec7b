"""Run each Python block of the documentation as a reader runs it.

A block with `await` outside of a function is pasted into a prompt, after the block of "Getting started" that starts a
server. Other blocks are run as a file; the names of that block are there, too.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import os
import re
import sys
from codeop import CommandCompiler
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from kubernetes_asyncio.config import kube_config
from prometheus_client import REGISTRY

from aioinformer import SharedInformerFactory
from aioinformer.cli.projects.init import init_project
from tests.project.docs.blocks import ALL, PROJECT, Block, in_language

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AsyncExitStack
    from pathlib import Path

    from aioinformer.testing import ApiServer


class Prompt:
    """A Python prompt with top-level `await`.

    Args:
        names: the namespace of the prompt; it grows.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._compile = CommandCompiler()
        self._compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    async def paste(self, code: str, source: str) -> None:
        """Enter code line by line, and run each statement when it is complete.

        Args:
            code: lines as on the page.
            source: where they are from, for errors.

        Raises:
            SyntaxError: the prompt does not accept a line.
            Exception: what a statement raised.
        """
        entered: list[str] = []
        for line in [*code.splitlines(), ""]:
            entered.append(line)
            compiled = self._compile("\n".join(entered), source, "single")
            if compiled is not None:
                entered.clear()
                result = FunctionType(compiled, self.names)()
                if inspect.iscoroutine(result):
                    await result
        assert not any(entered), f"{source}: the prompt waits for more lines after {entered}"


def is_for_files(code: str) -> bool:
    """Whether the code can be in a file: no `await` outside of a function."""
    try:
        compile(code, "file", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


BLOCKS = in_language("python")
[STARTER] = [block for block in BLOCKS if "stack = AsyncExitStack()" in block.code]
PROGRAMS = [block for block in BLOCKS if "asyncio.run(" in block.code]
TESTS = [block for block in BLOCKS if "def test_" in block.code]
SNIPPETS = [block for block in BLOCKS if block not in (*PROGRAMS, *TESTS)]
GUIDE = (PROJECT / "docs" / "write-a-controller.md").read_text()
#: Tests of the project that "Write a controller" makes: test_projects.py runs them in it.
OF_PROJECT = [block for block in TESTS if block.code in GUIDE]
EXAMPLE_TESTS = (PROJECT / "tests" / "system" / "examples" / "test_examples.py").read_text()


@pytest.fixture(autouse=True)
def any_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the exporter of a block use any free port: its own port may be in use."""
    import prometheus_client

    start = prometheus_client.start_http_server

    def start_at_any(port: int) -> None:
        server, thread = start(0)
        server.shutdown()
        server.server_close()
        thread.join()

    monkeypatch.setattr(prometheus_client, "start_http_server", start_at_any)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the project that the blocks of "Write a controller" are parts of."""
    folder: Path = tmp_path_factory.mktemp("projects") / "website-operator"
    init_project(folder, "example.com", "Website")
    steps = re.findall(r"^<!-- step: (\S+) -->\n```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    for path, code in steps:
        if not path.endswith("/website.py"):  # the last step, which changes the version
            (folder / path).write_text(code)
    return folder


@pytest.fixture(autouse=True)
def project(projects: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a block import the project, and import it anew."""
    monkeypatch.syspath_prepend(str(projects))
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "website_operator"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    """Remove what a block has registered: a reader's program has one registry, the tests of all blocks share theirs."""
    before = {*REGISTRY._collector_to_names}
    yield
    for collector in {*REGISTRY._collector_to_names} - before:
        REGISTRY.unregister(collector)


@pytest.mark.parametrize("block", SNIPPETS, ids=str)
async def test_block_runs_when_pasted(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names: dict[str, Any] = {"__name__": "pasted"}
    prompt = Prompt(names)
    before = asyncio.all_tasks()
    async with asyncio.timeout(200):
        await prompt.paste(STARTER.code, str(STARTER))
        stack: AsyncExitStack = names["stack"]
        try:
            kubeconfig = str(names["server"].kubeconfig(tmp_path / "kubeconfig"))
            monkeypatch.setenv("KUBECONFIG", kubeconfig)
            monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", kubeconfig)  # read at the import
            code = block.code.replace("http://127.0.0.1:8001", names["server"].url)
            if block == STARTER:
                pass
            elif is_for_files(code):
                exec(compile(code, str(block), "exec", dont_inherit=True), names)
            else:
                await prompt.paste(code, str(block))
        finally:
            await asyncio.sleep(0.05)  # for tasks that the block has started
            await stack.aclose()
    await _end(asyncio.all_tasks() - before)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel the tasks that a block has left, and raise what they have failed with."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


@pytest.mark.parametrize("block", [each for each in TESTS if each not in OF_PROJECT], ids=str)
async def test_documented_test_passes(block: Block, api_server: ApiServer) -> None:
    names: dict[str, Any] = {"__name__": "pasted"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    [test] = [function for name, function in names.items() if name.startswith("test_")]
    if not inspect.iscoroutinefunction(test):  # it runs event loops of its own
        await asyncio.to_thread(test)
        return
    assert [*inspect.signature(test).parameters] == ["api_server"]
    async with asyncio.timeout(200):
        await test(api_server)


async def test_program_of_the_readme_prints_and_counts_pods(api_server: ApiServer, tmp_path: Path) -> None:
    containers = [{"name": "web", "image": "web"}]
    for name, app in ("web-0", "web"), ("web-1", "web"), ("cart-0", "cart"):
        metadata = {"name": name, "labels": {"app": app}}
        api_server.create("pods", {"metadata": metadata, "spec": {"nodeName": "node-1", "containers": containers}})
    [block] = PROGRAMS
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-W", "error", "-c", block.code),
        env={**os.environ, "KUBECONFIG": str(api_server.kubeconfig(tmp_path / "kubeconfig"))},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        lines = [(await program.stdout.readline()).decode().rstrip() for _ in range(4)]
    finally:
        program.kill()
        await program.wait()
    [shown] = [each for each in in_language("text") if each.page == "README.md"]
    # The handler may be called before or after the count, and with the objects in the order of the list.
    assert [each for each in lines if each.startswith("+")] == shown.code.splitlines()[:-1]
    assert sorted(lines) == sorted(shown.code.splitlines())


async def test_documented_service_answers_from_its_cache(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers = [{"name": "main", "image": "example.com/web"}]
    specification = {"nodeName": "node-1", "containers": containers}
    api_server.create("pods", {"metadata": {"name": "web-0"}, "spec": specification})
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig(tmp_path / "kubeconfig")))
    [block, *_] = [each for each in SNIPPETS if each.page == "docs/embedding.md" and "from aiohttp " in each.code]
    names: dict[str, Any] = {"__name__": "pasted"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    app = names["app"]
    async with TestClient(TestServer(app)) as client, asyncio.timeout(200):
        while (await client.get("/readyz")).status != 200:  # noqa: ASYNC110 - a state of another task
            await asyncio.sleep(0.05)
        assert await (await client.get("/nodes/node-1/pods")).json() == ["default/web-0"]


async def test_documented_controller_reconciles(api_server: ApiServer) -> None:
    [block] = [block for block in SNIPPETS if "async def control(" in block.code]
    names: dict[str, Any] = {"__name__": "pasted"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    reconciled = asyncio.Queue[str]()
    async with SharedInformerFactory(api_server.url) as factory, asyncio.timeout(200):
        informer = factory.core.v1.namespaces.informer()
        factory.start()
        controller = asyncio.create_task(names["control"](informer, reconciled.put))
        keys = {await reconciled.get() for _ in range(2)}
        controller.cancel()
        await asyncio.wait({controller})
    assert keys < {"default", "kube-system", "kube-public", "kube-node-lease"}


def test_blocks_are_found() -> None:
    assert len(SNIPPETS) > 40
    assert len(TESTS) >= 2


@pytest.mark.parametrize("block", [block for block in ALL if block.program.endswith(".py")], ids=str)
def test_shown_program_stands_alone_and_has_a_test(block: Block) -> None:
    path = PROJECT / block.program
    assert "import cluster" not in path.read_text()
    assert f'"{path.name}"' in EXAMPLE_TESTS
