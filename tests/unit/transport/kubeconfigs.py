"""Kubeconfigs for a server on loopback."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import yaml
from aiohttp import web

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

    from tests.support.loopback import Server


async def identity(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the identity of the client, in the form of a ConfigMap."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    data = {
        "authorization": request.headers.get("Authorization", ""),
        "certificate": ",".join(names),
        "user": request.headers.get("Impersonate-User", ""),
        "groups": ",".join(request.headers.getall("Impersonate-Group", [])),
    }
    return web.json_response({"data": data})


class Kubeconfig:
    def __init__(self, path: Path, api: Server, authority: trustme.CA) -> None:
        self.path = path
        self.cluster: dict[str, Any] = {
            "server": api.url,
            "certificate-authority-data": b64encode(authority.cert_pem.bytes()).decode(),
        }

    def write(self, **user: Any) -> Path:
        self.path.parent.mkdir(exist_ok=True, parents=True)
        content = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
            "clusters": [{"name": "c", "cluster": self.cluster}],
            "users": [{"name": "u", "user": user}],
        }
        self.path.write_text(yaml.safe_dump(content))
        return self.path
