"""Each row is one conversation, held with ours and, where there is one, with a real kube-apiserver.

Ours must answer as the real one did when it was recorded, field by field, but for what `differences.toml` explains; the
real one must still answer so. With AIOINFORMER_RECORD=1 what the real one says is recorded instead.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from aioinformer.testing import ApiServer
from tests.contract.operators import OurOperator, RealOperator
from tests.contract.recordings import compare, keep, recorded, unexplained
from tests.contract.servers import Access, access_of
from tests.contract.talk import Talk
from tests.e2e.real_cluster import RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.contract.operators import Operator

KUBECONFIG = os.environ.get("AIOINFORMER_TEST_KUBECONFIG")
TOOLS = os.environ.get("AIOINFORMER_TEST_CLUSTER")
RECORDING = bool(os.environ.get("AIOINFORMER_RECORD"))
# Enough for owners, namespaces and sums of roles; others would put objects of their own into each namespace.
_WANTED = ("clusterrole-aggregation-controller", "garbage-collector-controller", "namespace-controller")
CONTROLLERS = f"--controllers={','.join(_WANTED)}"
# As a server is that nobody has told anything: the tools turn this on.
GATES = "--feature-gates=ShardedListAndWatch=false"
_FIRST_BUILD = 3600


_ASKED_AGAIN = pytest.StashKey[list[str]]()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Asks the real server a second time where it did not say what is recorded, and tells of it in the end.

    Its parts run beside each other, and some of what it says depends on which of them was first: the order of reasons,
    or whether a controller has already been there. A row holds if it can be had; ours has no such excuse.
    """
    sides = getattr(item, "callspec", None)
    if RECORDING or sides is None or sides.params.get("side") != "real":
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        item.config.stash.setdefault(_ASKED_AGAIN, []).append(item.nodeid)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Names the rows that were asked twice."""
    for row in config.stash.get(_ASKED_AGAIN, []):
        terminalreporter.write_line(f"The real server was asked again: {row}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "side" in metafunc.fixturenames:
        metafunc.parametrize("side", ["real", "ours"] if KUBECONFIG or TOOLS else ["ours"])


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A real API server: the one of AIOINFORMER_TEST_KUBECONFIG, or one that is started for this suite."""
    if KUBECONFIG:
        yield access_of(Path(KUBECONFIG))
        return
    assert TOOLS is not None
    cluster = RealCluster(
        Path(TOOLS), tmp_path_factory.mktemp("contract") / "data", ("--with-controllers", CONTROLLERS, GATES)
    )
    cluster.up()
    # What clients make up, such as version 1, is too old for a server that has been started before.
    cluster.restart()
    try:
        yield replace(access_of(cluster.kubeconfig), operator=RealOperator(cluster))
    finally:
        cluster.down()


@pytest.fixture
async def access(side: str, request: pytest.FixtureRequest) -> AsyncIterator[Access]:
    """The server of this test."""
    if side == "real":
        yield request.getfixturevalue("real")
        return
    async with ApiServer(authorization_mode="RBAC", tokens={"admin-token": "admin,system:masters"}) as server:
        yield Access(server.url, "admin-token", operator=OurOperator(server))


@pytest.fixture
def operator(access: Access) -> Operator:
    """Who runs the server of this test."""
    if access.operator is None:
        pytest.skip("a server that is somebody else's is not ours to stop")
    return access.operator


@pytest.fixture
async def talk(side: str, access: Access, request: pytest.FixtureRequest) -> AsyncIterator[Talk]:
    """A conversation in a namespace of its own; when it is over it is compared with what is recorded."""
    namespace = f"row-{secrets.token_hex(4)}"
    async with access.session() as session:
        talk = Talk(session, access.server, namespace)
        await talk.made("/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield talk
        await talk("DELETE", f"/api/v1/namespaces/{namespace}", kept=False)
    row = row_of(request.node)
    if side == "real" and RECORDING:
        keep(row, talk.exchanges)
        return
    found = dict(compare(recorded(row), talk.exchanges))
    told = unexplained(row, found) if side == "ours" else [f"{place}: {what}" for place, what in found.items()]
    if told:
        pytest.fail(f"{side} differs from what is recorded:\n" + "\n".join(told), pytrace=False)


def row_of(item: pytest.Function) -> str:
    """The name of a row: file and test, and the parameters but for the server's."""
    parameters = [part for part in item.callspec.id.split("-") if part not in ("ours", "real")]
    return "/".join((item.path.stem, "-".join((item.originalname, *parameters))))
