"""Odd kubeconfigs: this package accepts, refuses and verifies as kubectl does.

`recorded/kubeconfigs.json` has what kubectl did with each on a real API server; AIOINFORMER_RECORD=1 writes it. The
user of all of them may do nothing, so the server's refusal says who asked, and in which namespace.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import connect
from aioinformer.errors import ApiError, TransportError, UsageError
from aioinformer.testing import ApiServer
from tests.real.files.kubectl import KUBECTL, RECORDS
from tests.real.files.odd_kubeconfigs import ODD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RECORDED = Path(__file__).parent / "recorded" / "kubeconfigs.json"
_ASKED = re.compile(r'User \\*"(.+?)\\*" cannot list resource \\*"secrets.*in the namespace \\*"(.+?)\\*"')


@dataclass(frozen=True)
class Side:
    """A server with a user who may do nothing.

    Attributes:
        real: whether it is a real API server, which kubectl is asked with.
    """

    real: bool
    server: str
    user: str
    token: str
    authority: bytes
    foreign: bytes

    def write(self, text: str, folder: Path) -> Path:
        """Write a kubeconfig and the files that it refers to."""
        (folder / "token").write_text(f"{self.token}\n")
        (folder / "wrong").write_text("nonsense\n")
        (folder / "empty").write_text("")
        (folder / "ca.crt").write_bytes(self.authority)
        credential = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": self.token},
        }
        plugin = folder / "plugin"
        plugin.write_text(f"#!/bin/sh\nprintf '%s' '{json.dumps(credential)}'\n")
        plugin.chmod(stat.S_IRWXU)
        path = folder / "config"
        path.write_text(
            Template(text).safe_substitute(
                server=self.server,
                token=self.token,
                folder=folder,
                authority=base64.b64encode(self.authority).decode(),
                foreign=base64.b64encode(self.foreign).decode(),
            )
        )
        return path

    def asked(self, message: str) -> str:
        """Return who asked and where, by the server's refusal."""
        if "impersonate" in message:
            return "impersonates"
        found = _ASKED.search(message)
        assert found is not None, message
        return f"{'own' if found[1] == self.user else found[1]} {found[2]}"


@pytest.fixture(params=["ours", "real"] if os.environ.get("AIOINFORMER_TEST_CLUSTER") else ["ours"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    async with ApiServer(tls=True) as other:
        foreign = other.certificate_authority
    assert foreign is not None
    if request.param == "real":
        cluster = request.getfixturevalue("cluster")
        authority = (cluster.directory / "pki" / "ca.crt").read_bytes()
        address, token = cluster.address("server"), cluster.address("restrictedToken")
        yield Side(True, address, "restricted", token, authority, foreign)
        return
    async with ApiServer(tls=True, tokens={"t0ken": "restricted"}, authorization_mode="RBAC") as server:
        assert server.certificate_authority is not None
        yield Side(False, server.url, "restricted", "t0ken", server.certificate_authority, foreign)


async def kubectl_outcome(side: Side, path: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *(str(KUBECTL), "get", "secrets", "--request-timeout=10s"),
        env={"KUBECONFIG": str(path), "PATH": os.environ["PATH"], "HOME": str(path.parent)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()
    message = told.decode()
    if "Forbidden" in message:
        return side.asked(message)
    if "x509" in message or "tls: " in message:
        return "does not trust"
    if "Unauthorized" in message or "must be logged in" in message:
        return "unauthorized"
    return "refused"


async def our_outcome(side: Side, path: Path) -> str:
    try:
        async with await connect(kubeconfig=path) as connection:
            await connection.client.core.v1.secrets.list(namespace=connection.namespace)
    except UsageError as error:
        return "refused" if str(path) in str(error) and side.token not in str(error) else str(error)
    except TransportError as error:
        return "does not trust" if "certificate" in str(error) else str(error)
    except ApiError as error:
        return "unauthorized" if error.status == 401 else side.asked(str(error))
    return "allowed"


@pytest.mark.timeout(600)
async def test_odd_kubeconfigs_are_read_as_kubectl_reads_them(side: Side, tmp_path: Path) -> None:
    known: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    assert len(ODD) >= 60
    if KUBECTL is not None and (side.real or RECORDS):
        asked = {name: await kubectl_outcome(side, side.write(text, tmp_path)) for name, text in ODD.items()}
        if RECORDS:
            RECORDED.write_text(json.dumps(asked, indent=1) + "\n")
            known = asked
        assert asked == known
    found = {name: await our_outcome(side, side.write(text, tmp_path)) for name, text in ODD.items()}
    assert found == known
