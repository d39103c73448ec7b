"""Access to an API server by a client that is independent of the code under test."""

from __future__ import annotations

import base64
import ssl
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True)
class Access:
    """Address of a server, and credentials of its administrator.

    Attributes:
        server: its URL.
        token: bearer token, or "".
        tls: context with its authority, and with a certificate of the administrator if there is no token.
    """

    server: str
    token: str = ""
    tls: ssl.SSLContext | None = None

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
