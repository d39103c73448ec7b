"""Each row is one conversation with the server for tests and, with a test cluster, with a real kube-apiserver.

The server for tests must answer as recorded, field by field, except for the differences that `differences.toml`
declares. The real server must still answer as recorded. With AIOINFORMER_RECORD=1 its responses are recorded instead.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from aioinformer.testing import ApiServer
from tests.real.contract.conversation import Conversation
from tests.real.contract.recordings import compare, essence, keep, recorded, unexplained
from tests.real.contract.servers import OurOperator, RealOperator, ServerUnderTest
from tests.support.access import Access, access_of
from tests.support.real_cluster import RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.real.contract.servers import Operator

KUBECONFIG = os.environ.get("AIOINFORMER_TEST_KUBECONFIG")
TOOLS = os.environ.get("AIOINFORMER_TEST_CLUSTER")
RECORDING = bool(os.environ.get("AIOINFORMER_RECORD"))
# Enough for garbage collection, namespaces and aggregated roles; others would create objects in every namespace.
_ENABLED = ("clusterrole-aggregation-controller", "garbage-collector-controller", "namespace-controller")
CONTROLLERS = f"--controllers={','.join(_ENABLED)}"
# The default of kube-apiserver; the tools of the test cluster turn it on.
GATES = "--feature-gates=ShardedListAndWatch=false"

# The property of a report that says that its row was repeated.
_REPEATED = "repeated with the real server"


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat a row once if the real server does not answer as recorded, and report it at the end.

    Components of the real server run concurrently, and some responses depend on which was first: the order of reasons,
    or whether a controller has already acted. Rows with the server for tests are never repeated.
    """
    sides = getattr(item, "callspec", None)
    if RECORDING or sides is None or sides.params.get("side") != "real":
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed for report in reports):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        reports[0].user_properties.append((_REPEATED, item.nodeid))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the rows that were repeated. Reports, unlike other state, come back from the workers."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    names = {
        str(value) for report in reports for name, value in getattr(report, "user_properties", ()) if name == _REPEATED
    }
    for name in sorted(names):
        terminalreporter.write_line(f"Repeated with the real server: {name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "side" in metafunc.fixturenames:
        metafunc.parametrize("side", ["real", "ours"] if KUBECONFIG or TOOLS else ["ours"])


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A real API server: that of AIOINFORMER_TEST_KUBECONFIG, or one that is started for this suite, one a worker."""
    if KUBECONFIG:
        yield ServerUnderTest(access_of(Path(KUBECONFIG)))
        return
    assert TOOLS is not None
    cluster = RealCluster(
        Path(TOOLS), tmp_path_factory.mktemp("contract") / "data", ("--with-controllers", CONTROLLERS, GATES)
    )
    cluster.up()
    # After a restart, versions that clients invent, such as 1, are older than the watch cache.
    cluster.restart()
    try:
        yield ServerUnderTest(access_of(cluster.kubeconfig), RealOperator(cluster))
    finally:
        cluster.down()


@pytest.fixture
async def server_under_test(side: str, request: pytest.FixtureRequest) -> AsyncIterator[ServerUnderTest]:
    """The server of this test."""
    if side == "real":
        yield request.getfixturevalue("real")
        return
    admin = {"admin-token": "admin,system:masters"}
    async with ApiServer(authorization_mode="RBAC", tokens=admin, version_wait=0.05) as server:
        yield ServerUnderTest(Access(server.url, "admin-token"), OurOperator(server))


@pytest.fixture
def access(server_under_test: ServerUnderTest) -> Access:
    """Access to the server of this test."""
    return server_under_test.access


@pytest.fixture
def operator(server_under_test: ServerUnderTest) -> Operator:
    """Operations on the server of this test."""
    if server_under_test.operator is None:
        pytest.skip("only a server that this suite started can be stopped")
    return server_under_test.operator


@pytest.fixture
async def api(side: str, access: Access, request: pytest.FixtureRequest) -> AsyncIterator[Conversation]:
    """A conversation in its own namespace, which is compared with the recording at the end."""
    namespace = f"row-{secrets.token_hex(4)}"
    async with access.session() as session:
        api = Conversation(session, access.server, namespace)
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield api
        await api("DELETE", f"/api/v1/namespaces/{namespace}", recorded=False)
    row = row_of(request.node)
    if side == "real" and RECORDING:
        keep(row, api.exchanges)
        return
    found = dict(compare(recorded(row), [essence(each) for each in api.exchanges]))
    differences = unexplained(row, found) if side == "ours" else [f"{place}: {what}" for place, what in found.items()]
    if differences:
        pytest.fail(f"{side} differs from the recording:\n" + "\n".join(differences), pytrace=False)


def row_of(item: pytest.Function) -> str:
    """Return the name of a row: module, test and its parameters except `side`."""
    parameters = [part for part in item.callspec.id.split("-") if part not in ("ours", "real")]
    return "/".join((item.path.stem, "-".join((item.originalname, *parameters))))
