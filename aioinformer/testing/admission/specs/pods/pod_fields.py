"""Validation of fields of the pod: names, DNS, host aliases, host ports and classes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import between, duplicate, format_causes, one_of, required
from aioinformer.testing.api.addresses import ip_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_SEARCH = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_INVALID_SEARCH = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SEARCH}')"
)
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
_LONGEST_HOST = 64
_LATEST = 2**31 - 1
_RESTARTS = ("Always", "OnFailure", "Never")
_PREEMPTIONS = ("PreemptLowerPriority", "Never")
#: Optional names with their format checks, in the order in which the API checks them.
_NAMES_BEFORE_DEADLINE: Mapping[str, Callable[[str], list[str]]] = {
    "serviceAccountName": subdomain_faults,
    "nodeName": subdomain_faults,
}
_NAMES_AFTER_DEADLINE: Mapping[str, Callable[[str], list[str]]] = {"hostname": label_faults, "subdomain": label_faults}


def policy_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the restart policy and the DNS policy."""
    yield from one_of(spec.get("restartPolicy", "Always"), f"{path}.restartPolicy", _RESTARTS)
    yield from one_of(spec.get("dnsPolicy", "ClusterFirst"), f"{path}.dnsPolicy", _DNS_POLICIES)


def name_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the names in a pod spec, and its deadline."""
    yield from _names(spec, path, _NAMES_BEFORE_DEADLINE)
    yield from between(spec.get("activeDeadlineSeconds"), f"{path}.activeDeadlineSeconds", 1, _LATEST)
    yield from _names(spec, path, _NAMES_AFTER_DEADLINE)


def class_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the priority class, the runtime class and the preemption policy."""
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field) or (field == "runtimeClassName" and spec.get(field) is not None):
            yield from format_causes(spec[field], f"{path}.{field}", subdomain_faults)
    if spec.get("preemptionPolicy") is not None:
        yield from one_of(spec["preemptionPolicy"], f"{path}.preemptionPolicy", _PREEMPTIONS)


def dns_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the DNS configuration."""
    config, here = spec.get("dnsConfig"), f"{path}.dnsConfig"
    servers, searches = ((config or {}).get(field) or [] for field in ("nameservers", "searches"))
    if spec.get("dnsPolicy") == "None" and config is None:
        yield Cause.required(here, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if spec.get("dnsPolicy") == "None" and not servers:
        yield Cause.required(f"{here}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
        return
    if len(servers) > _MOST_SERVERS:
        why = f"must not have more than {_MOST_SERVERS} nameservers"
        yield Cause.invalid(f"{here}.nameservers", quote(servers), why)
    for index, server in enumerate(servers):
        yield from format_causes(server, f"{here}.nameservers[{index}]", ip_faults)
    if len(searches) > _MOST_SEARCHES:
        why = f"must not have more than {_MOST_SEARCHES} search paths"
        yield Cause.invalid(f"{here}.searches", quote(searches), why)
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        why = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield Cause.invalid(f"{here}.searches", quote(searches), why)
    for index, search in enumerate(searches):
        if search != ".":
            yield from format_causes(search.removesuffix("."), f"{here}.searches[{index}]", _search_faults)
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield Cause.required(f"{here}.options[{index}]", "must not be empty")


def alias_causes(aliases: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the host aliases."""
    for index, alias in enumerate(aliases):
        yield from format_causes(alias.get("ip", ""), f"{path}[{index}].ip", ip_faults)
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from format_causes(name, f"{path}[{index}].hostnames[{number}]", subdomain_faults)


def host_name_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check `hostnameOverride`."""
    if (name := spec.get("hostnameOverride")) is None:
        return
    here = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield Cause.forbidden(here, f"may not be specified when {field} is true")
    if len(name) > _LONGEST_HOST:
        yield Cause.too_long(here, _LONGEST_HOST)
    yield from format_causes(name, here, subdomain_faults)


def readiness_causes(gates: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the readiness gates."""
    for index, gate in enumerate(gates):
        yield from format_causes(gate.get("conditionType", ""), f"{path}[{index}].conditionType", label_name_faults)


def host_port_causes(spec: Part, path: str, *, of_pod: bool) -> Iterator[Cause]:
    """Check the host ports of a pod that uses the host network."""
    for index, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if (of_pod or host_port) and host_port != port.get("containerPort", 0):
                why = "must match `containerPort` when `hostNetwork` is true"
                here = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield Cause.invalid(here, str(host_port), why)


def resource_claim_causes(claims: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the resource claims of a pod."""
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        yield from required(claim, here, "name")
        if name in names:
            yield duplicate(name, f"{here}.name")
        elif name:
            yield from format_causes(name, f"{here}.name", label_faults)
            names.add(name)
        direct, template = (claim.get(field) for field in ("resourceClaimName", "resourceClaimTemplateName"))
        if (direct is None) == (template is None):
            why = (
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
                if direct is None
                else "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            fields = {"Name": name, "ResourceClaimName": direct, "ResourceClaimTemplateName": template}
            yield Cause.invalid(here, quote(fields), why)
        for field in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(field) is not None:
                yield from format_causes(claim[field], f"{here}.{field}", subdomain_faults)


def _search_faults(name: str) -> list[str]:
    found = ["must be no more than 253 characters"] if len(name) > 253 else []
    return found if re.fullmatch(_SEARCH, name) else [*found, _INVALID_SEARCH]


def _names(spec: Part, path: str, forms: Mapping[str, Callable[[str], list[str]]]) -> Iterator[Cause]:
    for field, faults in forms.items():
        if spec.get(field):
            yield from format_causes(spec[field], f"{path}.{field}", faults)
