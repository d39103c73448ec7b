"""The two servers of the suite, the server for tests and a real one: access to them, and operations on them."""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from aioinformer.testing import ApiServer
    from tests.real.contract.conversation import Conversation
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
class Access:
    """Address of a server, and credentials of its administrator.

    Attributes:
        server: its URL.
        token: bearer token, or "".
        tls: context with its authority, and with a certificate of the administrator if there is no token.
        operator: operations on the server; None if this suite did not start it.
    """

    server: str
    token: str = ""
    tls: ssl.SSLContext | None = None
    operator: Operator | None = None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Open a session of the administrator, without decompression, redirects or retries."""
        headers = {"User-Agent": "contract/1"} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        connector = aiohttp.TCPConnector(ssl=self.tls if self.tls is not None else True)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            yield session


def access_of(kubeconfig: Path) -> Access:
    """Return access by the current context of a kubeconfig, with its token or client certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    server = cluster["server"].rstrip("/")
    if server.startswith("http://"):
        return Access(server, user.get("token", ""))
    tls = ssl.create_default_context()
    tls.load_verify_locations(cadata=_content(cluster, "certificate-authority", kubeconfig).decode())
    if "token" in user:
        return Access(server, user["token"], tls)
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "pair.pem"
        pair.write_bytes(b"\n".join(_content(user, name, kubeconfig) for name in ("client-certificate", "client-key")))
        tls.load_cert_chain(pair)
    return Access(server, tls=tls)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _content(section: dict[str, Any], name: str, kubeconfig: Path) -> bytes:
    if data := section.get(f"{name}-data"):
        return base64.b64decode(data)
    return (kubeconfig.parent / str(section[name])).read_bytes()
