"""Validation of pod annotations that have a meaning to the API.

Seccomp and AppArmor profiles were annotations before they were fields. Where both are given, they must agree. Mirror
pod and AppArmor annotations are immutable.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.placement import toleration_causes
from aioinformer.testing.admission.specs.terms.parts import containers_of
from aioinformer.testing.admission.specs.terms.paths import descending_path
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Annotations = Mapping[str, str]
    Part = Mapping[str, Any]

_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LOCAL = "localhost/"
#: The annotation values for the profile types of the fields.
_PROFILE_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}


def annotation_causes(annotations: Annotations, spec: Part, path: str) -> Iterator[Cause]:
    """Check the annotations of a pod.

    Args:
        spec: of the pod.
        path: of the annotations.
    """
    if _MIRROR in annotations and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        yield Cause.invalid(f"{path}[{_MIRROR}]", quote(annotations[_MIRROR]), why)
    if annotation := annotations.get(_TOLERATIONS):
        yield from _tolerations(annotation, path)
    if (cost := annotations.get(_COST)) is not None and not (
        _INTEGER.fullmatch(cost) and -(2**31) <= int(cost) < 2**31
    ):
        yield Cause.invalid(f"{path}[{_COST}]", quote(cost), "must be a 32bit integer")
    if (profile := annotations.get(_SECCOMP_OF_POD)) is not None:
        yield from _seccomp(profile, f"{path}.{_SECCOMP_OF_POD}")
    for name, profile in annotations.items():
        if name.startswith(_SECCOMP):
            yield from _seccomp(profile, f"{path}.{name}")
    names = {container.get("name") for container, _ in containers_of(spec, "")}
    for name, profile in annotations.items():
        if name.startswith(_APP_ARMOR):
            container = name.removeprefix(_APP_ARMOR)
            if container not in names:
                yield Cause.invalid(f"{path}[{name}]", quote(container), "container not found")
            if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
                why = f"invalid AppArmor profile name: {quote(profile)}"
                yield Cause.invalid(f"{path}[{name}]", quote(profile), why)


def disagreement_causes(annotations: Annotations, spec: Part, path: str) -> Iterator[Cause]:
    """Check that annotations and fields agree.

    Args:
        path: of the spec.
    """
    context = spec.get("securityContext") or {}
    if _SECCOMP_OF_POD in annotations and context.get("seccompProfile") is not None:
        here = f"{path}.securityContext.seccompProfile"
        yield from _agreement(annotations[_SECCOMP_OF_POD], context["seccompProfile"], here, "seccomp")
    for container, here in containers_of(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        annotation = annotations.get(f"{_SECCOMP}{container.get('name', '')}")
        if profile is not None and annotation is not None:
            yield from _agreement(annotation, profile, f"{here}.securityContext.seccompProfile", "seccomp")
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, here in containers_of(spec, path):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = context.get("appArmorProfile") if own is None else own
        annotation = annotations.get(f"{_APP_ARMOR}{container.get('name', '')}")
        if profile is not None and annotation is not None:
            yield from _agreement(annotation, profile, f"{here}.securityContext.appArmorProfile", "apparmor")


def annotation_change_causes(new: Annotations, old: Annotations, path: str) -> Iterator[Cause]:
    """Check that immutable annotations keep their values."""
    for name in old:
        if new.get(name) != old[name]:
            yield from _immutable(name, path, "remove or update")
    for name in new:
        if name not in old:
            yield from _immutable(name, path, "add")


def _immutable(name: str, path: str, verb: str) -> Iterator[Cause]:
    if name.startswith(_APP_ARMOR):
        yield Cause.forbidden(f"{path}[{name}]", f"may not {verb} AppArmor annotations")
    if name == _MIRROR:
        yield Cause.forbidden(f"{path}[{name}]", f"may not {verb} mirror pod annotation")


def _tolerations(annotation: str, path: str) -> Iterator[Cause]:
    try:
        tolerations = json.loads(annotation)
    except ValueError:
        tolerations = None
    if isinstance(tolerations, list) and all(isinstance(each, dict) for each in tolerations):
        yield from toleration_causes(tolerations, f"{path}.{_TOLERATIONS}")
    else:
        yield Cause.invalid(path, quote(_TOLERATIONS), "couldn't be read as a list of tolerations in JSON")


def _seccomp(profile: str, path: str) -> Iterator[Cause]:
    if profile.startswith(_LOCAL):
        yield from descending_path(profile.removeprefix(_LOCAL), path)
    elif all(profile not in names for names in _PROFILE_NAMES.values()):
        yield Cause.invalid(path, quote(profile), "must be a valid seccomp profile")


def _agreement(annotation: str, profile: Part, path: str, what: str) -> Iterator[Cause]:
    kind = profile.get("type", "")
    names = _PROFILE_NAMES.get(kind, ())[: 1 if what == "apparmor" else None]
    if annotation.startswith(_LOCAL) if kind == "Localhost" else annotation in names:
        if kind == "Localhost" and annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            yield Cause.forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")
    elif kind == "Localhost" or names:
        yield Cause.forbidden(f"{path}.type", f"{what} type in annotation and field must match")
