"""Validation of the security context of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.pod_security import app_armor_causes, seccomp_causes
from aioinformer.testing.admission.specs.pods.windows import windows_option_causes
from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import between, one_of
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Part = Mapping[str, Any]

_HIGHEST_ID = 2**31 - 1
_PROFILE = {"Type": "", "LocalhostProfile": None}
_SHAPE = {
    "Capabilities": ({"Add": None, "Drop": None},),
    "Privileged": None,
    "SELinuxOptions": ({"User": "", "Role": "", "Type": "", "Level": ""},),
    "WindowsOptions": (
        {"GMSACredentialSpecName": None, "GMSACredentialSpec": None, "RunAsUserName": None, "HostProcess": None},
    ),
    "RunAsUser": None,
    "RunAsGroup": None,
    "RunAsNonRoot": None,
    "ReadOnlyRootFilesystem": None,
    "AllowPrivilegeEscalation": None,
    "ProcMount": None,
    "SeccompProfile": (_PROFILE,),
    "AppArmorProfile": (_PROFILE,),
}


def security_context_causes(context: Part, path: str, *, host_users: bool) -> Iterator[Cause]:
    """Check the security context of a container.

    Args:
        host_users: whether the pod uses the user namespace of its node.
    """
    for field in ("runAsUser", "runAsGroup"):
        yield from between(context.get(field), f"{path}.{field}", 0, _HIGHEST_ID)
    if (processes := context.get("procMount")) is not None:
        yield from one_of(processes, f"{path}.procMount", ("Default", "Unmasked"))
        if processes == "Unmasked" and host_users:
            why = "`hostUsers` must be false to use `Unmasked`"
            yield Cause.invalid(f"{path}.procMount", quote(processes), why)
    yield from seccomp_causes(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        yield from _no_escalation(context, path)
    yield from windows_option_causes(context.get("windowsOptions") or {}, f"{path}.windowsOptions")
    yield from app_armor_causes(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _no_escalation(context: Part, path: str) -> Iterator[Cause]:
    added = (context.get("capabilities") or {}).get("add") or ()
    escalations = ["`privileged` to true"] if context.get("privileged") else []
    escalations += ["`capabilities.Add` CAP_SYS_ADMIN" for capability in added if capability == "CAP_SYS_ADMIN"]
    for escalation in escalations:
        why = f"cannot set `allowPrivilegeEscalation` to false and {escalation}"
        yield Cause.invalid(path, quote(go_struct(context, _SHAPE)), why)
