"""Health checks: each check in a verbose report, or if one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.testing.api.golike import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# The checks of a real server, in its order.
_HOOKS = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_ALIVE = ("ping", "log", "loopback-serving-certificate", "etcd", *_HOOKS)
_CHECKS = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_HOOKS, "shutdown"),
}

#: The slowest checks of a real server that has just started.
STARTING = (
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
)


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of health checks.

    Attributes:
        healthy: whether all of them passed.
        text: the report.
    """

    healthy: bool
    text: str


def health_report(
    path: str, *, verbose: bool = False, excluded: Collection[str] = (), failing: Collection[str] = ()
) -> Report | None:
    """Return the outcome of a health check; None if there is no such check.

    Args:
        path: "/livez", "/readyz/etcd" …
        verbose: report each check, which also happens if one fails.
        excluded: names of checks to skip.
        failing: names of checks that fail.
    """
    endpoint, _, check = path.removeprefix("/").partition("/")
    checks = _CHECKS.get(endpoint)
    if checks is None or (check and check not in checks) or path.endswith("/"):
        return None
    if check:
        return Report(False, "internal server error: not finished\n") if check in failing else Report(True, "ok")
    failed = any(name in failing and name not in excluded for name in checks)
    if not failed and not verbose:
        return Report(True, "ok")
    lines = [_line(name, excluded, failing) for name in checks]
    if unknown := sorted(set(excluded).difference(checks)):
        names = ",".join(quoted(name) for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    return Report(not failed, f"{''.join(lines)}{endpoint} check {'failed' if failed else 'passed'}\n")


def health_paths() -> Iterator[str]:
    """Yield the path of each check."""
    for endpoint, checks in _CHECKS.items():
        yield f"/{endpoint}"
        yield from (f"/{endpoint}/{name}" for name in checks)


def _line(name: str, excluded: Collection[str], failing: Collection[str]) -> str:
    if name in excluded:
        return f"[+]{name} excluded: ok\n"
    return f"[-]{name} failed: reason withheld\n" if name in failing else f"[+]{name} ok\n"
