"""Choose the checks for each built-in kind.

A check takes an object with its defaults filled in and the object that it replaces, if any. It yields a cause for each
fault.

Requests of clients are checked in full. Two rules are relaxed for code in the server's own process and for the
manifests that it loads: required fields may be missing, so that a test need not write complete pods, and pods may name
their node, which is otherwise up to schedulers. A fault that the replaced object already has does not fail an update of
other fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import RBAC_GROUP
from aioinformer.testing.admission.specs.cluster.cluster_checks import CLUSTER_CHECKS
from aioinformer.testing.admission.specs.cluster.data import config_map, secret
from aioinformer.testing.admission.specs.cluster.event_checks import event_causes
from aioinformer.testing.admission.specs.cluster.leases import lease
from aioinformer.testing.admission.specs.cluster.limits import limit_range, resource_quota, resource_quota_status
from aioinformer.testing.admission.specs.cluster.nodes import namespace, namespace_status, node, node_status
from aioinformer.testing.admission.specs.cluster.rights import rbac_causes
from aioinformer.testing.admission.specs.cluster.signing_requests import signing_approval, signing_status
from aioinformer.testing.admission.specs.network.endpoints import endpoint_slice, endpoints
from aioinformer.testing.admission.specs.network.ingresses import ingress, ingress_class, ingress_status
from aioinformer.testing.admission.specs.network.network_policies import ip_address, network_policy, service_cidr
from aioinformer.testing.admission.specs.network.services import service, service_status
from aioinformer.testing.admission.specs.pods.pod_parts import ephemeral_containers, resize
from aioinformer.testing.admission.specs.pods.pod_statuses import pod_status
from aioinformer.testing.admission.specs.pods.pods import pod, pod_template
from aioinformer.testing.admission.specs.workloads.autoscalers import autoscaler, autoscaler_status
from aioinformer.testing.admission.specs.workloads.cron_jobs import cron_job
from aioinformer.testing.admission.specs.workloads.disruptions import disruption_budget, disruption_status
from aioinformer.testing.admission.specs.workloads.jobs import job
from aioinformer.testing.admission.specs.workloads.priorities import priority_class
from aioinformer.testing.admission.specs.workloads.workloads import (
    controller_revision,
    daemon_set,
    deployment,
    replica_set,
    replication_controller,
    stateful_set,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause

    Check = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Iterable[Cause]]


def specification_causes(
    served: Served,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None = None,
    *,
    subresource: str = "",
    whole: bool = True,
) -> list[Cause]:
    """Check an object whose defaults are filled in and return the causes of its faults.

    Args:
        old: the object that it replaces.
        subresource: "status" if the request writes the status.
        whole: whether required fields must be present.
    """
    causes = _causes(served, obj, old, subresource)
    if causes and old is not None:
        known = _causes(served, old, old, subresource)
        causes = [cause for cause in causes if cause not in known]
    return causes if whole else [cause for cause in causes if not cause.left_out]


def _causes(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None, subresource: str) -> list[Cause]:
    if served.conversion is not None and served.collection != "events":
        obj, old = served.kept(obj), None if old is None else served.kept(old)
    if subresource:
        name = served.resource.group_resource
        check = _SUBRESOURCE_CHECKS.get(f"{name}/{subresource}") or _STATUS_CHECKS.get(name)
        return [] if check is None else list(check(obj, old))
    if served.collection == "events":
        former = None if old is None else served.kept(old)
        return event_causes(served.kept(obj), former, newer=served.conversion is not None)
    if served.resource.group == RBAC_GROUP:
        return rbac_causes(served.resource.plural, obj, old)
    check = _CHECKS.get(served.resource.group_resource)
    return [] if check is None else list(check(obj, old))


_CHECKS: Mapping[str, Check] = {
    **CLUSTER_CHECKS,
    "configmaps": config_map,
    "controllerrevisions.apps": controller_revision,
    "cronjobs.batch": cron_job,
    "daemonsets.apps": daemon_set,
    "deployments.apps": deployment,
    "endpoints": endpoints,
    "endpointslices.discovery.k8s.io": endpoint_slice,
    "horizontalpodautoscalers.autoscaling": autoscaler,
    "ingressclasses.networking.k8s.io": ingress_class,
    "ingresses.networking.k8s.io": ingress,
    "ipaddresses.networking.k8s.io": ip_address,
    "jobs.batch": job,
    "leases.coordination.k8s.io": lease,
    "limitranges": limit_range,
    "namespaces": namespace,
    "networkpolicies.networking.k8s.io": network_policy,
    "nodes": node,
    "poddisruptionbudgets.policy": disruption_budget,
    "pods": pod,
    "podtemplates": pod_template,
    "priorityclasses.scheduling.k8s.io": priority_class,
    "replicasets.apps": replica_set,
    "replicationcontrollers": replication_controller,
    "resourcequotas": resource_quota,
    "secrets": secret,
    "servicecidrs.networking.k8s.io": service_cidr,
    "services": service,
    "statefulsets.apps": stateful_set,
}
_STATUS_CHECKS: Mapping[str, Check] = {
    "certificatesigningrequests.certificates.k8s.io": signing_status,
    "horizontalpodautoscalers.autoscaling": autoscaler_status,
    "ingresses.networking.k8s.io": ingress_status,
    "namespaces": namespace_status,
    "nodes": node_status,
    "poddisruptionbudgets.policy": disruption_status,
    "pods": pod_status,
    "resourcequotas": resource_quota_status,
    "services": service_status,
}
_SUBRESOURCE_CHECKS: Mapping[str, Check] = {
    "certificatesigningrequests.certificates.k8s.io/approval": signing_approval,
    "pods/ephemeralcontainers": ephemeral_containers,
    "pods/resize": resize,
}
