"""Validation of pod security contexts and user namespaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.windows import windows_option_causes
from aioinformer.testing.admission.specs.terms.parts import between, containers_of, duplicate, one_of, required
from aioinformer.testing.admission.specs.terms.paths import descending_path
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_HIGHEST_ID = 2**31 - 1
_LONGEST_SYSCTL = 253
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_NETWORK_SYSCTL = re.compile(r"net\..+")
_IPC_SYSCTL = re.compile(r"kernel\.(sem|shm(all|max|mni|_rmid_forced)?|msg(max|mnb|mni)?)|fs\.mqueue\..+")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_POLICY_VALUES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("Recursive",),
}


def pod_security_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the security context of a pod.

    Args:
        path: of the spec.
    """
    context, here = spec.get("securityContext") or {}, f"{path}.securityContext"
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from between(context.get(field), f"{here}.{field}", 0, _HIGHEST_ID)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from between(group, f"{here}.supplementalGroups[{index}]", 0, _HIGHEST_ID)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield Cause.invalid(f"{here}.shareProcessNamespace", "true", why)
    yield from _sysctls(context.get("sysctls") or (), spec, f"{here}.sysctls")
    yield from _policy(context, "fsGroupChangePolicy", here)
    yield from seccomp_causes(context.get("seccompProfile"), f"{here}.seccompProfile")
    yield from windows_option_causes(context.get("windowsOptions") or {}, f"{here}.windowsOptions")
    yield from app_armor_causes(context.get("appArmorProfile"), f"{here}.appArmorProfile")
    yield from _policy(context, "supplementalGroupsPolicy", here)
    yield from _policy(context, "seLinuxChangePolicy", here)


def seccomp_causes(profile: Part | None, path: str) -> Iterator[Cause]:
    """Check a seccomp profile of a pod or container."""
    if profile is None:
        return
    kind: str = profile.get("type", "")
    local: str | None = profile.get("localhostProfile")
    yield from _profile_type(kind, f"{path}.type", "type is required when seccompProfile is set")
    if kind == "Localhost" and local is None:
        yield Cause.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    elif kind == "Localhost" and local is not None:
        yield from descending_path(local, f"{path}.localhostProfile")
    elif local is not None:
        said = quote({"Type": kind, "LocalhostProfile": local})
        yield Cause.invalid(f"{path}.localhostProfile", said, "can only be set when seccomp type is Localhost")


def app_armor_causes(profile: Part | None, path: str) -> Iterator[Cause]:
    """Check an AppArmor profile of a pod or container."""
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind != "Localhost":
        if kind in _PROFILES and local is not None:
            yield Cause.invalid(here, quote(local), "can only be set when AppArmor type is Localhost")
        yield from _profile_type(kind, f"{path}.type", "type is required when appArmorProfile is set")
        return
    if local and local != local.strip():
        yield Cause.invalid(here, quote(local), "must not be padded with whitespace")
    elif not local:
        yield Cause.required(here, "must be set when AppArmor type is Localhost")
    if local and len(local) > _LONGEST_PROFILE:
        yield Cause.too_long(here, _LONGEST_PROFILE)


def user_namespace_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check that a pod with its own user namespace shares no other namespace with its node."""
    if spec.get("hostUsers") is not False:
        return
    for field, reported in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            yield Cause.forbidden(f"{path}.{reported}", "when `hostUsers` is false")
    for container, here in containers_of(spec, path):
        if container.get("volumeDevices"):
            yield Cause.forbidden(f"{here}.volumeDevices", "when `hostUsers` is false")


def _policy(context: Part, field: str, path: str) -> Iterator[Cause]:
    if context.get(field) is not None:
        yield from one_of(context[field], f"{path}.{field}", _POLICY_VALUES[field])


def _profile_type(kind: str, path: str, missing: str) -> Iterator[Cause]:
    if not kind:
        yield Cause.required(path, missing)
    else:
        yield from one_of(kind, path, _PROFILES)


def _sysctls(sysctls: Sequence[Part], spec: Part, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, here = sysctl.get("name", ""), f"{path}[{index}].name"
        yield from required(sysctl, f"{path}[{index}]", "name")
        if name and (len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name)):
            why = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield Cause.invalid(here, quote(name), why)
        elif name in names:
            yield duplicate(name, here)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and _NETWORK_SYSCTL.fullmatch(dotted):
            yield Cause.invalid(here, quote(name), "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and _IPC_SYSCTL.fullmatch(dotted):
            yield Cause.invalid(here, quote(name), "may not be specified when 'hostIPC' is true")
        names.add(name)
