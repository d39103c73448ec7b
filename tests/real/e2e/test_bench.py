"""`aioinformer bench` on a real API server, with few objects."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.real_cluster import Operator, RealCluster

_SHORT = ("--objects", "30", "--rate", "50", "--seconds", "1")


async def start(kubeconfig: Path, *options: str) -> asyncio.subprocess.Process:
    """Start the command."""
    command = [sys.executable, "-m", "aioinformer", "bench", "--kubeconfig", str(kubeconfig), *options]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def left_behind(operator: Operator) -> list[str]:
    """Return the namespaces of the command that are not being deleted."""
    status, answer = await operator.request("GET", "/api/v1/namespaces")
    assert status == 200, answer
    kept = [each["metadata"] for each in answer["items"] if "deletionTimestamp" not in each["metadata"]]
    return [metadata["name"] for metadata in kept if metadata["name"].startswith("aioinformer-bench-")]


async def test_bench_measures_lists_watches_and_latencies(cluster: RealCluster, operator: Operator) -> None:
    command = await start(cluster.kubeconfig, *_SHORT, "-o", "json")
    stdout, stderr = await asyncio.wait_for(command.communicate(), 60)
    assert command.returncode == 0, stderr.decode()
    report: dict[str, dict[str, Any]] = json.loads(stdout)
    assert [report[part]["objects"] for part in ("create", "list", "list_in_pages")] == [30, 30, 30]
    assert [report[part]["events"] for part in ("watch", "catch_up")] == [30, 30]
    assert 0 < report["latency_from_sent"]["p50_ms"] <= report["latency_from_sent"]["p99_ms"]
    assert await left_behind(operator) == []


async def test_ctrl_c_leaves_nothing_behind(cluster: RealCluster, operator: Operator) -> None:
    command = await start(cluster.kubeconfig, "--objects", "30", "--seconds", "60")
    assert command.stdout is not None
    async with asyncio.timeout(200):
        while not (await command.stdout.readline()).startswith(b"catch up"):
            assert await left_behind(operator) != []
    command.send_signal(signal.SIGINT)
    _, stderr = await asyncio.wait_for(command.communicate(), 200)
    assert command.returncode == 1, stderr.decode()
    assert await left_behind(operator) == []


async def test_missing_rights_are_reported(cluster: RealCluster) -> None:
    command = await start(cluster.restricted_kubeconfig, *_SHORT)
    stdout, stderr = await asyncio.wait_for(command.communicate(), 200)
    assert (command.returncode, stdout) == (1, b"")
    assert b'cannot create resource "namespaces"' in stderr
    assert b"Traceback" not in stderr
