"""Credentials from a program: the exec plugins of kubeconfig files, as `client.authentication.k8s.io` describes them.

The program gets an `ExecCredential` in `KUBERNETES_EXEC_INFO` and prints one, with a token or a client certificate. It
never gets a terminal: standard input is empty and `interactive` is false. Both of its outputs are drained while it
runs, and it is killed when its time is up. What it prints on standard output is secret and goes nowhere; of standard
error, which is made for people, the last line goes into the message when it fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport.renewal import Credential, RenewedCredentials, bearer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXTENSION = "client.authentication.k8s.io/exec"


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """What a kubeconfig says of a plugin.

    Attributes:
        command: name to look up in PATH, or absolute path.
        args: its arguments.
        env: variables in addition to those of this process.
        api_version: one of `client.authentication.k8s.io/v1` and `v1beta1`.
        cluster: `spec.cluster` of what the plugin is told, None if it does not want to know.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _VERSIONS[0]
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)


def exec_plugin(settings: Mapping[str, Any], cluster: Mapping[str, Any], where: str) -> ExecPlugin:
    """Reads the `exec` section of a kubeconfig's user.

    Args:
        settings: the section, its paths absolute.
        cluster: the cluster's section, for plugins with `provideClusterInfo`.
        where: "kubeconfig FILE: users[NAME]", for messages.

    Raises:
        UsageError: a field is missing or wrong, or the program is not there.
    """
    command = settings.get("command")
    if not isinstance(command, str) or not command:
        raise UsageError(f"{where}.exec.command is missing; name the program that gets the credentials")
    version = settings.get("apiVersion")
    if version not in _VERSIONS:
        raise UsageError(f"{where}.exec.apiVersion is {version!r}; it must be one of {', '.join(_VERSIONS)}")
    if settings.get("interactiveMode") == "Always":
        raise UsageError(
            f"{where}.exec.interactiveMode is Always, but there is no terminal to ask on; "
            "use a plugin that can do without, and IfAvailable or Never"
        )
    args, env = settings.get("args") or [], settings.get("env") or []
    if not isinstance(args, list):
        raise UsageError(f"{where}.exec.args must be a list of strings")
    if not isinstance(env, list) or not all(isinstance(item, dict) and "name" in item for item in env):
        raise UsageError(f"{where}.exec.env must be a list of names and values")
    variables = {str(item["name"]): str(item.get("value") or "") for item in env}
    if shutil.which(command, path=variables.get("PATH", os.environ.get("PATH"))) is None:
        hint = settings.get("installHint")
        remedy = str(hint).strip() if hint else "install it, or correct the name"
        raise UsageError(f"{where}.exec.command {command!r} is not an executable that can be found; {remedy}")
    return ExecPlugin(
        command=command,
        args=tuple(map(str, args)),
        env=variables,
        api_version=str(version),
        cluster=_cluster_info(cluster, where) if settings.get("provideClusterInfo") else None,
    )


class ExecCredentials(RenewedCredentials):
    """Runs a plugin when credentials are needed, and again shortly before they expire or once they are refused.

    Args:
        plugin: what to run.
        timeout: seconds that a run may take.
        now: wall clock, seconds since the epoch.
    """

    def __init__(self, plugin: ExecPlugin, *, timeout: float = 60.0, now: Callable[[], float] = time.time) -> None:
        super().__init__(now=now)
        self._plugin = plugin
        self._timeout = timeout

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        plugin = self._plugin
        spec: dict[str, Any] = {"interactive": False}
        if plugin.cluster is not None:
            spec["cluster"] = plugin.cluster
        info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            with anyio.fail_after(self._timeout):
                done = await self._run(environment)
        except TimeoutError:
            raise self._failure(f"gave no credentials within {self._timeout:g} s") from None
        except OSError as error:
            raise self._failure(f"cannot be run: {error.strerror or error}") from error
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise self._failure(f"ended with status {done.returncode}" + (f": {lines[-1][:300]}" if lines else ""))
        return self._read(done.stdout)

    async def _run(self, environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
        """Runs the plugin to its end; whoever is cancelled kills it."""
        command = [self._plugin.command, *self._plugin.args]
        outcome: list[subprocess.CompletedProcess[bytes] | OSError] = []

        async def run() -> None:
            try:
                outcome.append(await anyio.run_process(command, stdin=subprocess.DEVNULL, env=environment, check=False))
            except OSError as error:
                outcome.append(error)

        # A task that is cancelled by itself, and not by a scope, would wait until the plugin ends.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
        (done,) = outcome
        if isinstance(done, OSError):
            raise done
        return done

    def _read(self, output: bytes) -> tuple[Credential, float | None]:
        # No error below is chained: those of json and datetime quote what they read.
        try:
            answer = json.loads(output)
        except (ValueError, RecursionError):
            raise self._failure("printed something that is not JSON") from None
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
            raise self._failure("printed something that is not an ExecCredential")
        if answer.get("apiVersion") != self._plugin.api_version:
            raise self._failure(f"answered in another version than {self._plugin.api_version}")
        status = answer.get("status")
        status = status if isinstance(status, dict) else {}
        token, certificate, key = (status.get(name) for name in ("token", "clientCertificateData", "clientKeyData"))
        if bool(certificate) != bool(key):
            raise self._failure("gave a client certificate without its key, or a key without its certificate")
        if not token and not certificate:
            raise self._failure("gave neither a token nor a client certificate")
        credential = Credential(
            authorization=bearer(str(token), f"the answer of exec plugin {self._plugin.command}") if token else "",
            certificate=str(certificate or ""),
            key=str(key or ""),
        )
        return credential, self._expiry(status.get("expirationTimestamp"))

    def _expiry(self, timestamp: object) -> float | None:
        if not timestamp:
            return None
        try:
            moment = datetime.fromisoformat(str(timestamp))
        except ValueError:
            raise self._failure("gave an expirationTimestamp that is not RFC 3339") from None
        if moment.tzinfo is None:
            raise self._failure("gave an expirationTimestamp without a time zone")
        return moment.timestamp()

    def _failure(self, reason: str) -> TransportError:
        return TransportError(f"exec plugin {self._plugin.command} {reason}")


def _cluster_info(cluster: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = {name: cluster[name] for name in names if cluster.get(name)}
    authority = cluster.get("certificate-authority")
    if authority and "certificate-authority-data" not in info:
        try:
            info["certificate-authority-data"] = b64encode(Path(authority).read_bytes()).decode()
        except OSError as error:
            raise UsageError(
                f"{where}: the cluster's certificate-authority {authority} cannot be read: {error.strerror}; "
                "name a readable file of PEM certificates"
            ) from error
    for extension in cluster.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == _EXTENSION:
            info["config"] = extension.get("extension")
    return info
