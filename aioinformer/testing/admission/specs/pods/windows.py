"""Validation of the operating system of a pod.

A pod for Windows may set hardly any security field; a pod for Linux may not set Windows options.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import containers_of, format_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Part = Mapping[str, Any]

_DOMAIN = re.compile(
    r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
    r"|[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_SYSTEMS = ("linux", "windows")
_NOT_OF_WINDOWS = "cannot be set for a windows pod"
# fmt: off
_POD_FIELDS_NOT_OF_WINDOWS = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup",
    "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)
_CONTAINER_FIELDS_NOT_OF_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)
# fmt: on


def system_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the operating system of a pod, and the fields that it forbids."""
    if (system := spec.get("os")) is None:
        return
    name = system.get("name", "")
    if not name:
        yield Cause.required(f"{path}.os.name")
    elif name not in _SYSTEMS:
        yield Cause.unsupported(f"{path}.os", quote(name), _SYSTEMS)
    elif name == "linux":
        yield from _windows_only_fields(spec, path)
    else:
        yield from _fields_not_of_windows(spec, path)


def host_process_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check containers that run as host processes on Windows."""
    of_pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    found: list[bool] = []
    for container, here in containers_of(spec, path):
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if of_pod is not None and own is not None and own != of_pod:
            why = f"pod hostProcess value must be identical if both are specified, was {quote(of_pod)}"
            yield Cause.invalid(f"{here}.securityContext.windowsOptions.hostProcess", quote(own), why)
        found.append(bool(of_pod if own is None else own))
    if not any(found):
        return
    if not all(found):
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield Cause.invalid(path, '""', why)
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        yield Cause.invalid(f"{path}.hostNetwork", "false", why)


def windows_option_causes(options: Part, path: str) -> Iterator[Cause]:
    """Check the Windows options of a pod or container."""
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        yield from format_causes(name, f"{path}.gmsaCredentialSpecName", subdomain_faults)
    if options.get("gmsaCredentialSpec") == "":
        yield Cause.invalid(f"{path}.gmsaCredentialSpec", '""', "gmsaCredentialSpec cannot be an empty string")
    if (user := options.get("runAsUserName")) is not None:
        yield from format_causes(user, f"{path}.runAsUserName", _user_faults)


def _user_faults(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if re.search(r"[\x00-\x1f\x7f]", name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, divided, user = name.rpartition("\\")
    faults = {
        "Domain length must be under 256 characters": len(domain) >= 256,
        "Domain doesn't match the NetBios nor the DNS format": divided and not _DOMAIN.fullmatch(domain),
        "User cannot be empty": not user,
        "User length must not be longer than 104 characters": len(user) > 104,
        "User cannot contain only periods or spaces": re.fullmatch(r"[. ]+", user),
        r'User cannot contain the following characters: "/\:;|=,+*?<>@[]': re.search(r'["/\\:;|=,+*?<>@\[\]]', user),
    }
    return [f"runAsUserName's {why}" for why, wrong in faults.items() if wrong]


def _windows_only_fields(spec: Part, path: str) -> Iterator[Cause]:
    for holder, here in ((spec, path), *containers_of(spec, path)):
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
            what = "windows options cannot be set for a linux pod"
            yield Cause.forbidden(f"{here}.securityContext.windowsOptions", what)


def _fields_not_of_windows(spec: Part, path: str) -> Iterator[Cause]:
    for field in _POD_FIELDS_NOT_OF_WINDOWS:
        holder, _, name = field.rpartition(".")
        value = ((spec.get(holder) or {}) if holder else spec).get(name)
        # Go does not keep whether these fields were set, only their values.
        if value if name in ("hostPID", "hostIPC", "sysctls") else value is not None:
            yield Cause.forbidden(f"{path}.{field}", _NOT_OF_WINDOWS)
    for container, here in containers_of(spec, path):
        context = container.get("securityContext") or {}
        for name in _CONTAINER_FIELDS_NOT_OF_WINDOWS:
            if context.get(name) is not None:
                yield Cause.forbidden(f"{here}.securityContext.{name}", _NOT_OF_WINDOWS)
