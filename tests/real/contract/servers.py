"""The two servers of the suite, the server for tests and a real one: access to them, and operations on them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from aioinformer.testing import ApiServer
    from tests.real.contract.conversation import Conversation
    from tests.support.access import Access
    from tests.support.real_cluster import RealCluster

_BETWEEN = 0.05
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_FLOWCONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"


class Operator(Protocol):
    """Operations that a client cannot request."""

    async def compact(self) -> None:
        """Compact the history. A real server may answer from its cache for some more seconds."""

    async def restart(self) -> None:
        """Stop and start the server: objects are kept, their history is not."""

    def throttle(self, api: Conversation, user: str) -> AbstractAsyncContextManager[None]:
        """Answer every request of a user with 429."""


class OurOperator:
    """Uses the faults of the server for tests."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def compact(self) -> None:
        self._server.compact()

    async def restart(self) -> None:
        await self._server.fault("restart")

    @asynccontextmanager
    async def throttle(self, api: Conversation, user: str) -> AsyncIterator[None]:
        async with self._server.fault("throttle"):
            yield


class RealOperator:
    """Uses the tools of a test cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster

    async def compact(self) -> None:
        await asyncio.to_thread(self._cluster.fault, "compact")

    async def restart(self) -> None:
        await asyncio.to_thread(self._cluster.restart)

    @asynccontextmanager
    async def throttle(self, api: Conversation, user: str) -> AsyncIterator[None]:
        limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        who = [{"kind": "User", "user": {"name": user}}]
        rule = {"subjects": who, "resourceRules": [everything], "nonResourceRules": [paths]}
        schema = {"priorityLevelConfiguration": {"name": user}, "matchingPrecedence": 2, "rules": [rule]}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"roleRef": role, "subjects": [{"kind": "User", "name": user}]}
        made: dict[str, dict[str, Any]] = {
            f"{_RBAC}/clusterrolebindings": binding,
            f"{_FLOWCONTROL}/prioritylevelconfigurations": {"spec": {"type": "Limited", "limited": limited}},
            f"{_FLOWCONTROL}/flowschemas": {"spec": schema},
        }
        for where, body in made.items():
            await api.create(where, {"metadata": {"name": user}, **body})
        # One request is admitted at least. This one occupies that seat for some seconds: its version is in the future.
        waits = "/api/v1/configmaps?resourceVersion=999999999"
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(api("GET", waits, user=user, recorded=False), name="contract: a slow request")
                while (await api("GET", "/version", user=user, recorded=False)).status != 429:  # noqa: ASYNC110
                    await asyncio.sleep(_BETWEEN)
                yield
        finally:
            for where in made:
                await api("DELETE", f"{where}/{user}", recorded=False)


@dataclass(frozen=True)
class ServerUnderTest:
    """A server of the suite.

    Attributes:
        access: of its administrator.
        operator: operations on the server; None if this suite did not start it.
    """

    access: Access
    operator: Operator | None = None
