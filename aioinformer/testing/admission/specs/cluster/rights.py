"""Validation of roles and role bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import RBAC_GROUP
from aioinformer.testing.admission.specs.extension.admission_rules import path_segment_faults
from aioinformer.testing.admission.specs.terms.parts import format_causes, selector_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_GO_NAMES = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
_KINDS = ("ServiceAccount", "User", "Group")


def rbac_causes(plural: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    """Return what is wrong with a role or binding whose defaults are filled in.

    Args:
        plural: the resource, one of the four.
        old: the object that it replaces.
    """
    namespaced = not plural.startswith("cluster")
    if plural.endswith("roles"):
        causes = [
            cause
            for index, rule in enumerate(obj.get("rules") or ())
            for cause in _rule(rule or {}, f"rules[{index}]", namespaced)
        ]
        return causes + list(_aggregation(obj))
    causes = list(_reference(obj.get("roleRef") or {}, ("Role", "ClusterRole") if namespaced else ("ClusterRole",)))
    for index, subject in enumerate(obj.get("subjects") or ()):
        causes += _subject(subject or {}, f"subjects[{index}]", namespaced)
    if old is not None and obj.get("roleRef") != old.get("roleRef"):
        reference = obj.get("roleRef") or {}
        # The API quotes the reference with its Go field names.
        go_reference = {go_name: reference.get(name, "") for name, go_name in _GO_NAMES.items()}
        causes.append(Cause.invalid("roleRef", quote(go_reference), "cannot change roleRef"))
    return causes


def _rule(rule: Mapping[str, Any], path: str, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield Cause.required(f"{path}.verbs", "verbs must contain at least one value")
    if paths := rule.get("nonResourceURLs"):
        said = quote(paths)
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield Cause.invalid(f"{path}.nonResourceURLs", said, why)
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield Cause.invalid(f"{path}.nonResourceURLs", said, why)
        return
    if not rule.get("apiGroups"):
        yield Cause.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield Cause.required(f"{path}.resources", "resource rules must supply at least one resource")


def _aggregation(role: Mapping[str, Any]) -> Iterator[Cause]:
    said = role.get("aggregationRule")
    if said is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    if not said.get("clusterRoleSelectors"):
        yield Cause.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(said.get("clusterRoleSelectors") or ()):
        wrong = list(selector_causes(selector or {}, f"{path}[{index}]"))
        yield from wrong
        if wrong:
            yield Cause.invalid(f"{path}[{index}]", "null", "invalid label selector.")


def _reference(reference: Mapping[str, Any], kinds: tuple[str, ...]) -> Iterator[Cause]:
    group, kind, name = (str(reference.get(field) or "") for field in ("apiGroup", "kind", "name"))
    if group != RBAC_GROUP:
        yield Cause.unsupported("roleRef.apiGroup", quote(group), (RBAC_GROUP,))
    if kind not in kinds:
        yield Cause.unsupported("roleRef.kind", quote(kind), kinds)
    if not name:
        yield Cause.required("roleRef.name")
    yield from format_causes(name, "roleRef.name", path_segment_faults)


def _subject(subject: Mapping[str, Any], path: str, namespaced: bool) -> Iterator[Cause]:
    kind, name, group = (str(subject.get(field) or "") for field in ("kind", "name", "apiGroup"))
    if not name:
        yield Cause.required(f"{path}.name")
    if kind not in _KINDS:
        yield Cause.unsupported(f"{path}.kind", quote(kind), _KINDS)
        return
    if kind == "ServiceAccount":
        if name:
            yield from (Cause.invalid(f"{path}.name", quote(name), why) for why in subdomain_faults(name))
        if not namespaced and not subject.get("namespace"):
            yield Cause.required(f"{path}.namespace")
    wanted = "" if kind == "ServiceAccount" else RBAC_GROUP
    if group != wanted:
        yield Cause.unsupported(f"{path}.apiGroup", quote(group), (wanted,))
