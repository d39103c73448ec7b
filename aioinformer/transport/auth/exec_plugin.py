"""Credentials from a program: the exec plugins of kubeconfig files, as defined by `client.authentication.k8s.io`.

The program gets an `ExecCredential` in `KUBERNETES_EXEC_INFO`, and prints one with a token or a client certificate. It
never gets a terminal: standard input is empty, and `interactive` is false. Its outputs are read while it runs, and it
is killed after a timeout. Its standard output, arguments and variables may be secret, and appear in no message. If it
fails, the error message quotes the last line of its standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport.auth.program import Ended, TooMuchOutput, run_program
from aioinformer.transport.auth.secret import PrivateDict, private
from aioinformer.transport.auth.tokens import MAX_BYTES, Credential, RenewedCredentials, bearer_flaw
from aioinformer.transport.failures import bare, os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES = ("", "Never", "IfAvailable", "Always")
_EXTENSION = "client.authentication.k8s.io/exec"


def exec_plugin(settings: Mapping[str, Any], cluster: Mapping[str, Any], where: str) -> ExecPlugin:
    """Read the `exec` section of a kubeconfig's user.

    Args:
        settings: the section, its paths absolute, with the types of `kubeconfig_fields`.
        cluster: the cluster's section, for plugins with `provideClusterInfo`; as `settings`.
        where: "kubeconfig FILE: users[NAME]", for messages.

    Raises:
        UsageError: a field is missing or wrong, or the program does not exist.
    """
    settings = private(settings)
    cluster = private(cluster)
    if (mistake := _mistake(settings)) is not None:
        raise UsageError(f"{where}.exec.{mistake}")
    return ExecPlugin(
        command=settings["command"],
        args=tuple(settings.get("args", ())),
        env=_variables(settings),
        api_version=settings["apiVersion"],
        cluster=_cluster_info(cluster, where) if settings.get("provideClusterInfo") is True else None,
    )


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """The description of a plugin in a kubeconfig.

    Attributes:
        command: name to look up in PATH, or absolute path.
        env: variables in addition to those of this process.
        api_version: `client.authentication.k8s.io/v1` or `client.authentication.k8s.io/v1beta1`.
        cluster: `spec.cluster` of the `ExecCredential` for the plugin, None to leave it out.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _VERSIONS[0]
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)

    def command_line(self) -> list[str]:
        """Return the program and its arguments."""
        return [self.command, *self.args]

    def environment(self) -> dict[str, str]:
        """Return all variables that the plugin gets."""
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}


class ExecCredentials(RenewedCredentials):
    """Runs a plugin at the first request, shortly before credentials expire, and after they were refused.

    Args:
        timeout: seconds that a run may take.
        now: wall clock, seconds since the epoch.
    """

    def __init__(self, plugin: ExecPlugin, *, timeout: float = 60.0, now: Callable[[], float] = time.time) -> None:
        super().__init__(now=now, longest=timeout + 10)  # the shorter timeout kills the program
        self._plugin = plugin
        self._timeout = timeout

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        cause: BaseException | None = None
        try:
            async with asyncio.timeout(self._timeout):
                ended = await run_program(self._plugin.command_line, self._plugin.environment, MAX_BYTES)
        except TimeoutError:
            reason = f"printed no credentials within {self._timeout:g} s"
        except TooMuchOutput:
            reason = f"printed more than {MAX_BYTES} bytes"
        except OSError as error:
            reason = f"cannot be run: {os_reason(error)}"
            cause = bare(error)
        else:
            answer = self._read(ended)
            if not isinstance(answer, str):
                return answer
            reason = answer
        raise TransportError(f"exec plugin {self._plugin.command} {reason}") from cause

    def _read(self, ended: Ended) -> tuple[Credential, float | None] | str:
        """Return the credential and its expiry, or what is wrong. Never raises: local variables hold the token."""
        if ended.status != 0:
            lines = ended.error_output.decode(errors="replace").strip().splitlines()
            return f"ended with status {ended.status}" + (f": {lines[-1][:300]}" if lines else "")
        try:
            answer = json.loads(ended.output)
        except (ValueError, RecursionError):
            return "printed something that is not JSON"
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
            return "printed something that is not an ExecCredential"
        if answer.get("apiVersion") != self._plugin.api_version:
            return f"printed an ExecCredential of another version than {self._plugin.api_version}"
        status = answer.get("status")
        if not isinstance(status, dict):
            status = {}
        names = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
        texts = [status.get(name) or "" for name in names]
        for name, text in zip(names, texts, strict=True):
            if not isinstance(text, str):
                return f"printed a status.{name} that is not a string"
        token, certificate, key, timestamp = texts
        if bool(certificate) != bool(key):
            return "printed a client certificate without its key, or a key without its certificate"
        if not token and not certificate:
            return "printed neither a token nor a client certificate"
        if token and (flaw := bearer_flaw(token)) is not None:
            return f"printed an ExecCredential whose status.token {flaw}"
        expiry = _expiry(timestamp)
        if isinstance(expiry, str):
            return expiry
        return Credential(f"Bearer {token.strip()}" if token else "", certificate, key), expiry


def _mistake(settings: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a section and what to do, None if nothing is. Never raises: arguments may be secret."""
    command = settings.get("command", "")
    if not command:
        return "command is missing; name the program that prints the credentials"
    version = settings.get("apiVersion")
    if version not in _VERSIONS:
        return f"apiVersion is {version!r}; it must be one of {', '.join(_VERSIONS)}"
    if settings.get("interactiveMode") == "Always":
        return (
            "interactiveMode is Always, but plugins get no terminal; "
            "use a plugin that needs none, with IfAvailable or Never"
        )
    if settings.get("interactiveMode", "") not in _INTERACTIVE_MODES:
        return f"interactiveMode must be one of {', '.join(filter(None, _INTERACTIVE_MODES))}"
    for index, item in enumerate(settings.get("env", ())):
        if not item.get("name"):
            return f"env[{index}].name is missing; name the variable"
    if shutil.which(command, path=_variables(settings).get("PATH", os.environ.get("PATH"))) is None:
        hint = settings.get("installHint")
        remedy = hint.strip() if hint else "install it, or correct the name"
        return f"command {command!r} is not an executable in PATH; {remedy}"
    return None


def _variables(settings: Mapping[str, Any]) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in settings.get("env", ())}


def _expiry(timestamp: str) -> float | str | None:
    """Return the epoch second, None if there is no timestamp, or what is wrong."""
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return "printed an expirationTimestamp that is not RFC 3339"
    if moment.tzinfo is None:
        return "printed an expirationTimestamp without a time zone"
    return moment.timestamp()


def _cluster_info(cluster: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = PrivateDict({name: cluster[name] for name in names if cluster.get(name)})
    authority = cluster.get("certificate-authority")
    if authority and "certificate-authority-data" not in info:
        try:
            info["certificate-authority-data"] = b64encode(Path(authority).read_bytes()).decode()
        except OSError as error:
            raise UsageError(
                f"{where}: the cluster's certificate-authority {authority} cannot be read: {error.strerror}; "
                "name a readable file of PEM certificates"
            ) from error
    for extension in cluster.get("extensions", ()):
        if extension.get("name") == _EXTENSION:
            info["config"] = extension.get("extension")
    return info
