"""Kubeconfig files for a server of this package."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from aioinformer.testing.state.persistence.private_files import write_private

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "aioinformer"


def write_kubeconfig(
    path: Path, url: str, token: str = "", authority: bytes = b"", certificate: tuple[bytes, bytes] = (b"", b"")
) -> Path:
    """Write a kubeconfig that only its owner can read, completely or not at all.

    Args:
        path: is replaced if it exists.
        url: of the server.
        token: bearer token, "" for none.
        authority: certificate to trust, in PEM; b"" for the system's.
        certificate: of the user, and its key, in PEM.

    Returns:
        The absolute path.
    """
    path = path.absolute()
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    user = {"token": token} if token else {}
    for name, data in zip(("client-certificate-data", "client-key-data"), certificate, strict=True):
        if data:
            user[name] = base64.b64encode(data).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
        "preferences": {},
    }
    # JSON is valid YAML.
    write_private(path, json.dumps(content, indent=2).encode(), b"\n")
    return path
