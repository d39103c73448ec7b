"""Actions on pods: a binding assigns a node, an eviction deletes, a stream would reach a kubelet.

None is stored. An eviction respects PodDisruptionBudgets by their status. This server does not count pods, so the
status is what its clients have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources.label_selectors import LabelSelector
from aioinformer.resources.resource import Resource
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.api.responses import json_response, text_response
from aioinformer.testing.api.served import Served
from aioinformer.testing.api.statuses import StatusError, with_warnings
from aioinformer.testing.http.writing.bodies import read_object, write_options
from aioinformer.testing.http.writing.writes import checked_delete_options
from aioinformer.testing.kinds.pods import set_condition
from aioinformer.testing.schemas.field_checks import check_object
from aioinformer.testing.state.preconditions import check_delete_preconditions, check_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.http.writing.bodies import WriteOptions
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

_KINDS: Mapping[str, Served] = {
    "binding": Served(Resource(group="", version="v1", plural="bindings", kind="Binding", namespaced=True)),
    "eviction": Served(Resource(group="policy", version="v1", plural="evictions", kind="Eviction", namespaced=True)),
}
_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
_WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
_SCHEDULED = {"type": "PodScheduled", "status": "True"}
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_ALLOWED = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
#: Pods in these phases do not count as healthy, so their eviction needs no budget.
_UNCOUNTED = frozenset({"Succeeded", "Failed", "Pending"})


class PodActions:
    """Answer bindings and evictions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def answer(self, request: web.BaseRequest, target: Target, wanted: Wanted) -> web.StreamResponse:
        """Bind or evict a pod."""
        action = target.subresource or "binding"
        served = _KINDS[action]
        options = write_options(request, target, served, "CreateOptions")
        obj, repeated = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
        warnings = check_object(served, obj, options.directive, repeated)
        metadata = obj.get("metadata") or {}
        name = str(metadata.get("name") or "")
        if metadata.get("namespace") not in (None, "", target.namespace):
            raise statuses.bad_request(_OTHER_NAMESPACE)
        if target.subresource and name != target.name:
            raise statuses.bad_request(f"name in URL does not match name in {served.resource.kind} object")
        if action == "binding":
            self._bind(target.namespace, name, obj, options)
        else:
            self._evict(target.namespace, name, obj, options)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return with_warnings(json_response(request, encode_plain(status), status=201), warnings)

    def _bind(self, namespace: str, name: str, binding: Mapping[str, Any], options: WriteOptions) -> None:
        target = binding.get("target") or {}
        metadata = binding.get("metadata") or {}
        if faults := _target_faults(target):
            raise statuses.internal_error(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
        pods, record = self._pod(namespace, name)
        check_stored(pods, record, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))
        pod = decode(record.body)
        if why := _unbindable(pod):
            details = {"name": name, "kind": "pods/binding"}
            message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
            raise StatusError(409, "Conflict", message, details=details)
        pod["spec"]["nodeName"] = target["name"]
        for field in ("annotations", "labels"):
            if metadata.get(field):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **metadata[field]}
        pod["status"].pop("nominatedNodeName", None)
        set_condition(pod["status"], _SCHEDULED, self._cluster.now())
        if not options.dry_run:
            self._cluster.store.commit(pods, "MODIFIED", pod, record)

    def _evict(self, namespace: str, name: str, eviction: Mapping[str, Any], options: WriteOptions) -> None:
        query = {"dryRun": "All"} if options.dry_run else {}
        wanted = checked_delete_options(eviction.get("deleteOptions") or {}, query)
        preconditions = wanted.get("preconditions") or {}
        dry_run = bool(wanted.get("dryRun"))
        uid, version = (str(preconditions.get(field) or "") for field in ("uid", "resourceVersion"))
        pods, record = self._pod(namespace, name)
        pod = decode(record.body)
        counted = pod["status"].get("phase") not in _UNCOUNTED and "deletionTimestamp" not in pod["metadata"]
        if counted:
            self._use_budget(pod, dry_run=dry_run)
        check_delete_preconditions(pods, record, uid, version)
        if not dry_run:
            set_condition(pod["status"], _EVICTED, self._cluster.now())
            self._cluster.store.commit(pods, "MODIFIED", pod, record)
        policy = str(wanted.get("propagationPolicy") or "")
        self._cluster.delete(pods, namespace, name, policy=policy, dry_run=dry_run)

    def _pod(self, namespace: str, name: str) -> tuple[Served, Record]:
        served = self._cluster.store.registry.find("", "v1", "pods")
        assert served is not None
        return served, self._cluster.store.get(served, namespace, name)

    def _use_budget(self, pod: Mapping[str, Any], *, dry_run: bool) -> None:
        """Take one disruption from the budget of a pod, if it has one."""
        served = self._cluster.store.registry.find("policy", "v1", "poddisruptionbudgets")
        assert served is not None
        namespace = pod["metadata"]["namespace"]
        labels = pod["metadata"].get("labels") or {}
        records = self._cluster.store.collection(served).records(namespace)
        budgets = [(record, decode(record.body)) for record in records]
        found = [(record, budget) for record, budget in budgets if _is_for(budget, labels)]
        if len(found) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise statuses.internal_error(why)
        for record, budget in found:
            status = budget.get("status") or {}
            if not _is_ready(pod) and _may_evict_unready(budget["spec"], status):
                continue
            _check_budget(budget, status)
            if not dry_run:
                self._take(served, record, budget, status, pod["metadata"]["name"])

    def _take(self, served: Served, record: Record, budget: dict[str, Any], status: dict[str, Any], name: str) -> None:
        now = self._cluster.now()
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), name: now}
        if not status["disruptionsAllowed"]:
            others = [each for each in status.get("conditions") or () if each["type"] != _ALLOWED["type"]]
            when = {"observedGeneration": status.get("observedGeneration", 0), "lastTransitionTime": now}
            status["conditions"] = [*others, _ALLOWED | when]
        budget["status"] = status
        self._cluster.store.commit(served, "MODIFIED", budget, record)


def _target_faults(target: Mapping[str, Any]) -> list[str]:
    faults = []
    if (kind := target.get("kind") or "Node") != "Node":
        faults.append(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        faults.append("target.name: Required value")
    return faults


def _unbindable(pod: Mapping[str, Any]) -> str:
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _is_for(budget: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return LabelSelector.from_dict((budget.get("spec") or {}).get("selector")).matches(labels)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _may_evict_unready(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy = status.get("currentHealthy", 0)
    wanted = status.get("desiredHealthy", 0)
    return bool(healthy >= wanted > 0)


def _check_budget(budget: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, retry_after=10)
    if status.get("disruptionsAllowed", 0) > 0:
        return
    healthy = status.get("currentHealthy", 0)
    wanted = status.get("desiredHealthy", 0)
    if healthy <= wanted:
        raise _too_many(f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    raise _too_many(f"The disruption budget {name} does not allow evicting pods currently")


def _too_many(why: str, *, retry_after: int = 0) -> StatusError:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, "TooManyRequests", _WOULD_VIOLATE, details=details, retry_after=retry_after or None)


def pod_stream_response(request: web.BaseRequest, cluster: Cluster, target: Target, served: Served) -> web.Response:
    """Return the empty log of a pod without a node.

    Raises:
        StatusError: 400, there is no such container, or the pod has no node; 501, a kubelet would have to answer.
    """
    pod: dict[str, Any] = decode(cluster.store.get(served, target.namespace, target.name).body)
    name = pod["metadata"]["name"]
    subresource = target.subresource
    if subresource != "portforward":
        _check_container(pod, target.query.get("container", ""))
    if pod["spec"].get("nodeName"):
        message = f"this server does not implement pods/{subresource} of a pod that is on a node"
        raise statuses.StatusError(501, "NotImplemented", message)
    if subresource == "log":
        return text_response(request, "")
    raise statuses.bad_request(f"pod {name} does not have a host assigned")


def _check_container(pod: Mapping[str, Any], wanted: str) -> None:
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    containers, first = ([each["name"] for each in spec.get(field) or ()] for field in ("containers", "initContainers"))
    later = [each["name"] for each in spec.get("ephemeralContainers") or ()]
    if wanted:
        if wanted not in (*containers, *first, *later):
            raise statuses.bad_request(f"container {wanted} is not valid for pod {name}")
    elif len(containers) != 1:
        choice = f"choose one of: [{' '.join(containers)}]"
        if first:
            choice += f" or one of the init containers: [{' '.join(first)}]"
        raise statuses.bad_request(f"a container name must be specified for pod {name}, {choice}")
