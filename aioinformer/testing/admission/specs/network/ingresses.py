"""Validation of ingresses and ingress classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.network.services import host_causes
from aioinformer.testing.admission.specs.terms.parts import domain_path, format_causes, immutable, one_of, segments
from aioinformer.testing.api.addresses import address_of, ip_faults, port_faults, port_name_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults, wildcard_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Fields = Mapping[str, Any]

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_CLASS = "kubernetes.io/ingress.class"
_FORBIDDEN_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
_LONGEST_CONTROLLER = 250


def ingress(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    rules = spec.get("rules") or ()
    if not rules and spec.get("defaultBackend") is None:
        why = "either `defaultBackend` or `rules` must be specified"
        yield Cause.invalid("spec", "null" if spec.get("rules") is None else "[]", why, missing=True)
    if spec.get("defaultBackend") is not None:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{index}]"
        for place, host in enumerate(tls.get("hosts") or ()):
            yield from format_causes(
                host, f"{path}.hosts[{place}]", wildcard_faults if "*" in host else subdomain_faults
            )
        if tls.get("secretName"):
            yield from format_causes(tls["secretName"], f"{path}.secretName", subdomain_faults)
    if (name := spec.get("ingressClassName")) is not None:
        yield from format_causes(name, "spec.ingressClassName", subdomain_faults)
        said = (obj["metadata"].get("annotations") or {}).get(_CLASS, name)
        if old is None and said != name:
            why = "must match `ingressClassName` when both are specified"
            yield Cause.invalid(f"annotations.{_CLASS}", quote(said), why)


def _rule(rule: Fields, path: str) -> Iterator[Cause]:
    if host := rule.get("host") or "":
        if address_of(host) is not None:
            yield Cause.invalid(f"{path}.host", quote(host), "must be a DNS name, not an IP address")
        yield from format_causes(host, f"{path}.host", wildcard_faults if "*" in host else subdomain_faults)
    if rule.get("http") is not None:
        paths = rule["http"].get("paths") or ()
        if not paths:
            yield Cause.required(f"{path}.http.paths")
        for index, each in enumerate(paths):
            yield from _path(each, f"{path}.http.paths[{index}]")


def _path(path: Fields, where: str) -> Iterator[Cause]:
    kind, text = path.get("pathType"), path.get("path") or ""
    if kind is None:
        yield Cause.required(f"{where}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            yield Cause.invalid(f"{where}.path", quote(text), "must be an absolute path")
        for part in _FORBIDDEN_PARTS:
            if part in text:
                yield Cause.invalid(f"{where}.path", quote(text), f"must not contain '{part}'")
        for part in _FORBIDDEN_ENDS:
            if text.endswith(part):
                yield Cause.invalid(f"{where}.path", quote(text), f"cannot end with '{part}'")
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            yield Cause.invalid(f"{where}.path", quote(text), "must be an absolute path")
    else:
        yield from one_of(kind, f"{where}.pathType", _PATH_TYPES)
    yield from _backend(path.get("backend") or {}, f"{where}.backend")


def _backend(backend: Fields, path: str) -> Iterator[Cause]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield Cause.invalid(path, '""', "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference(resource, f"{path}.resource")
    elif service is not None:
        yield from _service(service, path)
    else:
        yield Cause.invalid(path, '""', "resource or service backend is required", missing=True)


def _service(service: Fields, path: str) -> Iterator[Cause]:
    if name := service.get("name"):
        yield from format_causes(name, f"{path}.service.name", label_faults)
    else:
        yield Cause.required(f"{path}.service.name")
    port = service.get("port") or {}
    name, number = port.get("name"), port.get("number")
    if name and number:
        yield Cause.invalid(path, '""', "cannot set both port name & port number")
    elif name:
        yield from format_causes(name, f"{path}.service.port.name", port_name_faults)
    elif number:
        yield from (Cause.invalid(f"{path}.service.port.number", str(number), why) for why in port_faults(number))
    else:
        yield Cause.required(path, "port name or number is required")


def _reference(reference: Fields, path: str) -> Iterator[Cause]:
    if reference.get("apiGroup") is not None:
        yield from format_causes(reference["apiGroup"], f"{path}.apiGroup", subdomain_faults)
    yield from segments(reference, path, "kind", "name")


def ingress_status(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    """Check the addresses at which an ingress is reachable."""
    for index, point in enumerate(((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        path = f"status.loadBalancer.ingress[{index}]"
        if point.get("ip"):
            yield from format_causes(point["ip"], f"{path}.ip", ip_faults)
        yield from host_causes(point.get("hostname") or "", f"{path}.hostname")


def ingress_class(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    controller = spec.get("controller") or ""
    if old is not None:
        yield from immutable(controller, (old.get("spec") or {}).get("controller") or "", "spec.controller")
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        yield Cause.too_long("spec.controller", _LONGEST_CONTROLLER)
    yield from domain_path(controller, "spec.controller")
    if (parameters := spec.get("parameters")) is not None:
        yield from _reference(parameters, "spec.parameters")
        yield from _scope(parameters, "spec.parameters")


def _scope(parameters: Fields, path: str) -> Iterator[Cause]:
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    yield from one_of(scope, f"{path}.scope", ("Cluster", "Namespace"))
    if scope == "Namespace" and namespace is None:
        yield Cause.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from format_causes(str(namespace), f"{path}.namespace", label_faults)
    elif scope == "Cluster" and namespace is not None:
        yield Cause.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
