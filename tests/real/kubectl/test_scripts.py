"""kubectl prints the same with the API server for tests as with a real kube-apiserver, except for the texts of errors.

`recorded/<version of kubectl>.json` has the output of each script with the real server. `differences.toml` declares
commands with different output, with the reasons. With AIOINFORMER_RECORD=1, the output with the real server is
recorded.
"""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import secrets
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.kubectl.running import Kubectl, environment, for_namespace
from tests.real.kubectl.script import HERE, play, read_scripts, write_files

sys.path.insert(0, str(HERE.parents[2] / "scripts"))

import kubectl_page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.kubectl.script import Outputs

RECORDING = bool(os.environ.get("AIOINFORMER_RECORD"))
SCRIPTS = read_scripts()
DIFFERENCES = tomllib.loads((HERE / "differences.toml").read_text())


@pytest.mark.parametrize("script", SCRIPTS)
async def test_kubectl_prints_what_is_recorded(
    script: str, side: str, kubeconfig: Path, kubectl_program: str, client_version: str, tmp_path: Path
) -> None:
    record = HERE / "recorded" / f"{client_version}.json"
    recorded: dict[str, Outputs] = json.loads(record.read_text()) if record.exists() else {}
    if not RECORDING and script not in recorded:
        pytest.skip(f"what kubectl {client_version} prints on a real server is not recorded")
    namespace = f"row-{secrets.token_hex(4)}"
    config = tmp_path / "kubeconfig"
    server = for_namespace(kubeconfig, namespace, config)
    kubectl = Kubectl(kubectl_program, environment(tmp_path, config), tmp_path / "files")
    write_files(tmp_path / "files")
    await kubectl("create", "namespace", namespace)
    try:
        printed = await play(SCRIPTS[script], kubectl, namespace, server)
    finally:
        await kubectl("delete", "namespace", namespace, "--wait=false")
    if RECORDING and side == "real":
        keep(record, script, printed)
        return
    told = differences(recorded[script], printed, DIFFERENCES.get(script, {}) if side == "ours" else {})
    if told:
        pytest.fail(f"on {side} kubectl prints something else:\n" + "\n".join(told), pytrace=False)


def keep(record: Path, script: str, printed: Outputs) -> None:
    """Write the output of a script, and leave the others as they are."""
    with record.open("a+") as file:
        # Several workers may record scripts.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        told = {**json.loads(file.read() or "{}"), script: printed}
        ordered = {each: told[each] for each in SCRIPTS if each in told}
        file.truncate(0)
        file.write(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def differences(recorded: Outputs, printed: Outputs, reasons: dict[str, str]) -> list[str]:
    """Return undeclared differences, and declared ones that do not exist, each as a line."""
    assert [each["command"] for each in recorded] == [each["command"] for each in printed], "the recording is of others"
    told = []
    for real, ours in zip(recorded, printed, strict=True):
        command = real["command"]
        if real.get("status") and real.get("status") == ours.get("status"):
            # The texts of errors are not promised.
            continue
        if (real == ours) is (command in reasons):
            told.append(f"$ {command}")
            told += _difference(real, ours) if real != ours else ["  differences.toml explains what is no difference"]
    return told


def _difference(real: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    told = []
    if real.get("status") != ours.get("status"):
        told.append(f"  status {real.get('status')} was recorded, not {ours.get('status')}")
    for stream in ("stdout", "stderr"):
        left, right = real.get(stream, []), ours.get(stream, [])
        if left != right:
            told.append(f"  {stream}:")
            told += _changes(left, right)
    return told


def _changes(left: list[str], right: list[str]) -> list[str]:
    return [f"  {line}" for line in list(difflib.unified_diff(left, right, "recorded", "got", lineterm="", n=1))[2:40]]


def test_the_page_is_up_to_date() -> None:
    page = kubectl_page.render(kubectl_page.read_scripts(), kubectl_page.clients())
    assert page == kubectl_page.PAGE.read_text(), "run scripts/kubectl_page.py"
