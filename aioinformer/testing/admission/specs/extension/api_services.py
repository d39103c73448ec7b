"""Validation of API services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import format_causes, required
from aioinformer.testing.api.addresses import port_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import letter_label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST = {"groupPriorityMinimum": 20000, "versionPriority": 1000}


def api_service(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    group, version = spec.get("group") or "", spec.get("version") or ""
    if name and name != f"{version}.{group}":
        why = f'must be `spec.version+"."+spec.group`: {quote(f"{version}.{group}")}'
        yield Cause.invalid("metadata.name", quote(name), why)
    if group:
        yield from format_causes(group, "spec.group", subdomain_faults)
    elif version != "v1":
        yield Cause.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    yield from format_causes(version, "spec.version", letter_label_faults)
    for field, most in _MOST.items():
        if not 0 < (priority := spec.get(field) or 0) <= most:
            yield Cause.invalid(f"spec.{field}", str(priority), f"must be positive and less than {most}")
    service, unchecked = spec.get("service"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if unchecked:
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield Cause.invalid("spec.insecureSkipTLSVerify", "true", why)
        return
    yield from required(service, "spec.service", "namespace", "name")
    port = service.get("port", 443)
    yield from (Cause.invalid("spec.service.port", str(port), f"port is not valid: {why}") for why in port_faults(port))
    if unchecked and spec.get("caBundle"):
        yield Cause.invalid("spec.insecureSkipTLSVerify", "true", "may not be true if caBundle is present")
