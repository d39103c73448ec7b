"""Choose the checks for each built-in kind.

A check takes an object with its defaults filled in and the object that it replaces, if any. It yields a cause for each
fault.

Requests of clients are checked in full. Two rules are relaxed for code in the server's own process and for the
manifests that it loads: required fields may be missing, so that a test need not write complete pods, and pods may name
their node, which is otherwise up to schedulers. A fault that the replaced object already has does not fail an update of
other fields.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import RBAC_GROUP

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
    return causes if whole else [cause for cause in causes if not cause.missing]


def _causes(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None, subresource: str) -> list[Cause]:
    if served.conversion is not None and served.collection != "events":
        obj, old = served.to_stored(obj), None if old is None else served.to_stored(old)
    if subresource:
        name = served.resource.group_resource
        check = _subresource_check(name, subresource)
        return [] if check is None else list(check(obj, old))
    if served.collection == "events":
        from aioinformer.testing.admission.specs.cluster.event_checks import event_causes

        former = None if old is None else served.to_stored(old)
        return event_causes(served.to_stored(obj), former, newer=served.conversion is not None)
    if served.resource.group == RBAC_GROUP:
        from aioinformer.testing.admission.specs.cluster.rights import rbac_causes

        return rbac_causes(served.resource.plural, obj, old)
    check = _check_of(served.resource.group_resource)
    return [] if check is None else list(check(obj, old))


@cache
def _check_of(name: str) -> Check | None:
    """Return the check of a kind. Its module is imported here: a server checks objects of a few kinds only.

    Args:
        name: the group resource, such as "deployments.apps".
    """
    match name:
        case "configmaps" | "secrets":
            from aioinformer.testing.admission.specs.cluster.data import config_map, secret

            return {"configmaps": config_map, "secrets": secret}[name]
        case (
            "controllerrevisions.apps"
            | "daemonsets.apps"
            | "deployments.apps"
            | "replicasets.apps"
            | "replicationcontrollers"
            | "statefulsets.apps"
        ):
            from aioinformer.testing.admission.specs.workloads.workloads import (
                controller_revision,
                daemon_set,
                deployment,
                replica_set,
                replication_controller,
                stateful_set,
            )

            return {
                "controllerrevisions.apps": controller_revision,
                "daemonsets.apps": daemon_set,
                "deployments.apps": deployment,
                "replicasets.apps": replica_set,
                "replicationcontrollers": replication_controller,
                "statefulsets.apps": stateful_set,
            }[name]
        case "cronjobs.batch":
            from aioinformer.testing.admission.specs.workloads.cron_jobs import cron_job

            return cron_job
        case "endpoints" | "endpointslices.discovery.k8s.io":
            from aioinformer.testing.admission.specs.network.endpoints import endpoint_slice, endpoints

            return {"endpoints": endpoints, "endpointslices.discovery.k8s.io": endpoint_slice}[name]
        case "horizontalpodautoscalers.autoscaling":
            from aioinformer.testing.admission.specs.workloads.autoscalers import autoscaler

            return autoscaler
        case "ingressclasses.networking.k8s.io" | "ingresses.networking.k8s.io":
            from aioinformer.testing.admission.specs.network.ingresses import ingress, ingress_class

            return {"ingressclasses.networking.k8s.io": ingress_class, "ingresses.networking.k8s.io": ingress}[name]
        case "ipaddresses.networking.k8s.io" | "networkpolicies.networking.k8s.io" | "servicecidrs.networking.k8s.io":
            from aioinformer.testing.admission.specs.network.network_policies import (
                ip_address,
                network_policy,
                service_cidr,
            )

            return {
                "ipaddresses.networking.k8s.io": ip_address,
                "networkpolicies.networking.k8s.io": network_policy,
                "servicecidrs.networking.k8s.io": service_cidr,
            }[name]
        case "jobs.batch":
            from aioinformer.testing.admission.specs.workloads.jobs import job

            return job
        case "leases.coordination.k8s.io":
            from aioinformer.testing.admission.specs.cluster.leases import lease

            return lease
        case "limitranges" | "resourcequotas":
            from aioinformer.testing.admission.specs.cluster.limits import limit_range, resource_quota

            return {"limitranges": limit_range, "resourcequotas": resource_quota}[name]
        case "namespaces" | "nodes":
            from aioinformer.testing.admission.specs.cluster.nodes import namespace, node

            return {"namespaces": namespace, "nodes": node}[name]
        case "poddisruptionbudgets.policy":
            from aioinformer.testing.admission.specs.workloads.disruptions import disruption_budget

            return disruption_budget
        case "pods" | "podtemplates":
            from aioinformer.testing.admission.specs.pods.pods import pod, pod_template

            return {"pods": pod, "podtemplates": pod_template}[name]
        case "priorityclasses.scheduling.k8s.io":
            from aioinformer.testing.admission.specs.workloads.priorities import priority_class

            return priority_class
        case "services":
            from aioinformer.testing.admission.specs.network.services import service

            return service
        case _:
            from aioinformer.testing.admission.specs.cluster.cluster_checks import CLUSTER_CHECKS

            return CLUSTER_CHECKS.get(name)


@cache
def _subresource_check(name: str, subresource: str) -> Check | None:
    """Return the check of a subresource; None if it needs none."""
    match f"{name}/{subresource}":
        case "certificatesigningrequests.certificates.k8s.io/approval":
            from aioinformer.testing.admission.specs.cluster.signing_requests import signing_approval

            return signing_approval
        case "pods/ephemeralcontainers" | "pods/resize":
            from aioinformer.testing.admission.specs.pods.pod_parts import ephemeral_containers, resize

            return {"pods/ephemeralcontainers": ephemeral_containers, "pods/resize": resize}[f"{name}/{subresource}"]
        case _:
            return _status_check(name)


def _status_check(name: str) -> Check | None:
    match name:
        case "certificatesigningrequests.certificates.k8s.io":
            from aioinformer.testing.admission.specs.cluster.signing_requests import signing_status

            return signing_status
        case "horizontalpodautoscalers.autoscaling":
            from aioinformer.testing.admission.specs.workloads.autoscalers import autoscaler_status

            return autoscaler_status
        case "ingresses.networking.k8s.io":
            from aioinformer.testing.admission.specs.network.ingresses import ingress_status

            return ingress_status
        case "namespaces" | "nodes":
            from aioinformer.testing.admission.specs.cluster.nodes import namespace_status, node_status

            return {"namespaces": namespace_status, "nodes": node_status}[name]
        case "poddisruptionbudgets.policy":
            from aioinformer.testing.admission.specs.workloads.disruptions import disruption_status

            return disruption_status
        case "pods":
            from aioinformer.testing.admission.specs.pods.pod_statuses import pod_status

            return pod_status
        case "resourcequotas":
            from aioinformer.testing.admission.specs.cluster.limits import resource_quota_status

            return resource_quota_status
        case "services":
            from aioinformer.testing.admission.specs.network.services import service_status

            return service_status
        case _:
            return None
