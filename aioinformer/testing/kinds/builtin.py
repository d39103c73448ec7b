"""`Admission` for built-in kinds; each method imports what the kind at hand needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.typed_fields import FieldTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.schemas.typed_fields import FieldType
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.tables.rendering import TableMaker

#: The API calls these fields required, but accepts objects without them: their zero value is valid.
_MAY_LACK = frozenset(
    {"allows", "drivers", "endpoints", "involvedObject", "items", "metadata", "rules", "serviceName", "status", "value"}
)
#: The API declares keys for these lists, but accepts elements with the same ones.
_MAY_REPEAT = frozenset({"conditions", "env", "hostAliases", "imagePullSecrets", "ports", "resizePolicy"})
#: Lists of ports whose names occur once.
_NAMED_PORTS = re.compile(r"spec\.ports|.*ontainers\[\d+\]\.ports")
#: What never changes: by group resource, the fields of the spec.
_IMMUTABLE = {
    "daemonsets.apps": ("selector",),
    "deployments.apps": ("selector",),
    "jobs.batch": ("completionMode", "selector", "template"),
    "replicasets.apps": ("selector",),
    "statefulsets.apps": ("podManagementPolicy", "selector", "serviceName", "volumeClaimTemplates"),
}
#: Where the template of a pod is.
_TEMPLATES = {
    "cronjobs.batch": "spec.jobTemplate.spec.template",
    "daemonsets.apps": "spec.template",
    "deployments.apps": "spec.template",
    "jobs.batch": "spec.template",
    "podtemplates": "template",
    "replicasets.apps": "spec.template",
    "replicationcontrollers": "spec.template",
    "statefulsets.apps": "spec.template",
}
#: What never changes, at the top: of bindings, and of config maps and secrets that are `immutable`.
_BINDINGS = frozenset({"clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"})
_DATA = frozenset({"configmaps", "secrets"})
_CRD = "customresourcedefinitions.apiextensions.k8s.io"


def object_causes(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    """Return the required fields that an object lacks, its elements with equal keys, and changes of what is immutable.

    Args:
        obj: the object with its defaults.
    """
    type_ = kind_type(served)
    found = [] if type_ is None else list(_faults(obj, type_, ""))
    found += _ephemeral_faults(served.resource.group_resource, obj, old)
    if old is not None:
        return [*found, *_changes(served.resource.group_resource, obj, old)]
    return found


def _faults(value: Any, type_: FieldType, path: str) -> Iterator[Cause]:
    if isinstance(value, dict):
        for name in type_.node.get("required", ()):
            if name not in _MAY_LACK and value.get(name) in (None, "", []):
                yield Cause.required(_join(path, name))
        for name, below in value.items():
            # The server writes metadata, and controllers write what they observe.
            if isinstance(below, dict | list) and (path or name not in ("metadata", "status")):
                yield from _faults(below, type_.field(name), _join(path, name))
    elif isinstance(value, list):
        seen = set()
        names = set()
        are_named = _NAMED_PORTS.fullmatch(path) is not None
        for index, element in enumerate(value):
            here = f"{path}[{index}]"
            yield from _faults(element, type_.element, here)
            if are_named and (name := element.get("name")):
                if name in names:
                    yield Cause("FieldValueDuplicate", f"{here}.name", f"Duplicate value: {quote(name)}")
                names.add(name)
            if type_.node.get("x-kubernetes-list-type") != "map" or path.rpartition(".")[2] in _MAY_REPEAT:
                continue
            try:
                step = type_.step(element)
            except FieldTypeError:
                continue
            if step in seen:
                keys = {key: element.get(key) for key in type_.node["x-kubernetes-list-map-keys"]}
                yield Cause("FieldValueDuplicate", here, f"Duplicate value: {quote(keys)}")
            seen.add(step)


def _ephemeral_faults(name: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Yield where ephemeral containers are that can only be added to a pod by its subresource."""
    if name == "pods" and old is None and (obj.get("spec") or {}).get("ephemeralContainers"):
        yield Cause.forbidden("spec.ephemeralContainers", "cannot be set on create")
    template: Any = obj
    path = _TEMPLATES.get(name, "")
    for step in path.split(".") if path else ():
        template = (template or {}).get(step)
    if path and ((template or {}).get("spec") or {}).get("ephemeralContainers"):
        yield Cause.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _changes(name: str, obj: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    former = old.get("spec") or {}
    for field in _IMMUTABLE.get(name, ()):
        if former.get(field) and spec.get(field) != former.get(field):
            yield Cause.invalid(f"spec.{field}", quote(spec.get(field)), "field is immutable")
    if name in _BINDINGS and obj.get("roleRef") != old.get("roleRef"):
        yield Cause.invalid("roleRef", quote(obj.get("roleRef")), "cannot change roleRef")
    if name in _DATA and old.get("immutable"):
        for field in ("immutable", "data", "binaryData"):
            if obj.get(field) != old.get(field):
                yield Cause.forbidden(field, "field is immutable when `immutable` is set")
    if name == "secrets" and obj.get("type") != old.get("type"):
        yield Cause.invalid("type", quote(obj.get("type")), "field is immutable")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class BuiltinAdmission:
    """Do for built-in kinds what kube-apiserver does with its default admission plugins."""

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access

    def default(self, served: Served, obj: dict[str, Any]) -> None:
        """Fill in what the writer left out."""
        from aioinformer.testing.kinds.defaults import default_object

        default_object(served.resource.group_resource, obj)

    def prepare(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None, subresource: str) -> None:
        """Bring an object into the form in which its kind is stored."""
        from aioinformer.testing.kinds.defaults import prepare_changed, prepare_new

        name = served.resource.group_resource
        if old is None:
            prepare_new(name, obj)
        else:
            prepare_changed(name, obj, old, subresource)

    def validate(
        self,
        served: Served,
        obj: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        *,
        subresource: str = "",
        whole: bool = True,
        causes: Sequence[Cause] = (),
    ) -> list[Cause]:
        """Return what is wrong with an object: its specification, or the rules of its schema."""
        name = served.resource.group_resource
        if served.custom:
            from aioinformer.testing.rules.rules import rule_faults

            return rule_faults(served, obj, old, causes)
        if name == _CRD:
            from aioinformer.testing.rules.definition_checks import definition_causes

            return definition_causes(obj, obj["status"]["storedVersions"])
        return object_causes(served, obj, old) if whole and not subresource else []

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableMaker:
        """Return what renders objects as tables."""
        from aioinformer.testing.tables.rendering import TableMaker

        return TableMaker(served, wanted, query, self._cluster.clock)

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Answer reviews, bindings, evictions and streams of pods."""
        if wanted is None:
            from aioinformer.testing.kinds.pod_actions import pod_stream_response

            return pod_stream_response(request, self._cluster, target, served)
        if target.subresource or served.resource.group_resource == "bindings":
            from aioinformer.testing.kinds.pod_actions import PodActions

            return await PodActions(self._cluster).answer(request, target, wanted)
        from aioinformer.testing.kinds.reviews import review_response

        return await review_response(request, target, served, wanted, self._cluster, self._access)
