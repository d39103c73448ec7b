"""Defaults of the kinds that configure a cluster: admission, storage, priority and fairness, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.kinds.pod_defaults import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SHARES = 30
_TIMEOUT = 10


def _rules(rules: Iterable[dict[str, Any]]) -> None:
    for rule in rules:
        fill(rule, scope="*")


def _hooks(obj: dict[str, Any]) -> None:
    for hook in obj.get("webhooks") or ():
        fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=_TIMEOUT,
        )
        if service := hook["clientConfig"].get("service"):
            fill(service, port=443)
        _rules(hook.get("rules") or ())


def _mutating_hooks(obj: dict[str, Any]) -> None:
    _hooks(obj)
    for hook in obj.get("webhooks") or ():
        fill(hook, reinvocationPolicy="Never")


def _policy(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, failurePolicy="Fail")
    if spec.get("matchConstraints") is not None:
        _match_resources(spec["matchConstraints"])


def _policy_binding(obj: dict[str, Any]) -> None:
    matched = (obj.get("spec") or {}).get("matchResources")
    if matched is not None:
        _match_resources(matched)


def _match_resources(resources: dict[str, Any]) -> None:
    fill(resources, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    _rules((*(resources.get("resourceRules") or ()), *(resources.get("excludeResourceRules") or ())))


def _driver(obj: dict[str, Any]) -> None:
    fill(
        obj.setdefault("spec", {}),
        attachRequired=True,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        podInfoOnMount=False,
        requiresRepublish=False,
        seLinuxMount=False,
        storageCapacity=False,
        volumeLifecycleModes=["Persistent"],
    )


def _flow_schema(obj: dict[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _priority_level(obj: dict[str, Any]) -> None:
    limited = (obj.get("spec") or {}).get("limited")
    if limited is None:
        return
    fill(limited, lendablePercent=0, nominalConcurrencyShares=_SHARES)
    queuing = (limited.get("limitResponse") or {}).get("queuing")
    if queuing is not None:
        for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
            queuing[name] = queuing.get(name) or value


def _device_claim(obj: dict[str, Any]) -> None:
    _device_requests(obj.get("spec") or {})


def _device_template(obj: dict[str, Any]) -> None:
    _device_requests((obj.get("spec") or {}).get("spec") or {})


def _device_requests(spec: Mapping[str, Any]) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for exact in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if exact is not None:
                fill(exact, allocationMode="ExactCount")
                if exact["allocationMode"] == "ExactCount":
                    fill(exact, count=1)


CLUSTER_DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "csidrivers.storage.k8s.io": _driver,
    "flowschemas.flowcontrol.apiserver.k8s.io": _flow_schema,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _mutating_hooks,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _policy,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _policy_binding,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _priority_level,
    "resourceclaims.resource.k8s.io": _device_claim,
    "resourceclaimtemplates.resource.k8s.io": _device_template,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _policy_binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _hooks,
}
"""By group resource."""
