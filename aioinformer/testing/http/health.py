"""What the server says of its health: always that all is well, check by check for who wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

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


def health_text(path: str, *, verbose: bool = False, excluded: Collection[str] = ()) -> str | None:
    """The answer of a health check.

    Args:
        path: "/livez", "/readyz/etcd" …
        verbose: tell each check.
        excluded: names of checks that are not made.

    Returns:
        The text; None if there is no such check.
    """
    endpoint, _, check = path.removeprefix("/").partition("/")
    checks = _CHECKS.get(endpoint)
    if checks is None or (check and check not in checks):
        return None
    if check or not verbose:
        return "ok"
    told = [f"[+]{name} {'excluded: ' if name in excluded else ''}ok\n" for name in checks]
    return "".join((*told, f"{endpoint} check passed\n"))
