"""`aioinformer manifests`: a kustomize base of what a manager needs in a cluster.

People work in its folder, too. The first line of a generated file has a digest of the rest: only a file whose digest is
right is replaced or removed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cli.controllers.manifest import manifest
from aioinformer.cli.controllers.needs import needs
from aioinformer.crds import CustomResource
from aioinformer.errors import UsageError
from aioinformer.resources.manifests import to_yaml
from aioinformer.webhooks.certificates import CONFIGURATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aioinformer.controller import Manager
    from aioinformer.webhooks import WebhookServer
    from aioinformer.webhooks.hooks import Hook

_PORT: Final = 8080
_MARK: Final = "# Made by `aioinformer manifests`, which replaces it. Change the declarations, or patch it. Digest: "
#: Seconds from the signal until the last Events are written and the Lease is released, beyond the grace of the runs.
_AFTER_GRACE: Final = 20


class Deployed(msgspec.Struct, frozen=True):
    """How a manager is deployed.

    Attributes:
        place: of the manager, "widgets:manager".
        account: name and namespace of the service account, and of all else.
        image: of the container.
        replicas: None for two with a leader election, and one without.
        pod_monitor: whether Prometheus's operator reads the metrics.
        namespaces: the namespaces that options name, instead of those of the manager.
    """

    place: str
    account: tuple[str, str]
    image: str = ""
    replicas: int | None = None
    pod_monitor: bool = False
    namespaces: tuple[str, ...] = ()


def write_base(manager: Manager, options: Deployed, folder: Path, *, overwrite: bool = False) -> list[str]:
    """Write the base into a folder, and return what was done, a line each; [] if nothing has changed.

    Files of the user stay. To apply them, too, or to change something, the user has an overlay of kustomize.

    Raises:
        UsageError: a generated file was edited or is another's, or a class has no schema; then nothing was written. Or
            the folder cannot be written.
    """
    files = base_files(manager, options)
    try:
        known = {path.name: path.read_text() for path in folder.glob("*.yaml") if path.is_file()}
        wanted = {name: _signed(text) for name, text in files.items()}
        stale = [name for name, text in known.items() if name not in wanted and text.startswith(_MARK)]
        changed = [name for name, text in wanted.items() if known.get(name) != text]
        for name in [*changed, *stale]:
            text = known.get(name)
            if text is not None and not overwrite and text != _signed(text.partition("\n")[2]):
                why = "was edited" if text.startswith(_MARK) else "was not made by this command"
                raise UsageError(
                    f"{folder / name} {why}: move your changes to another file or an overlay, or pass --overwrite"
                )
        folder.mkdir(parents=True, exist_ok=True)
        done = []
        for name in changed:
            (folder / name).write_text(wanted[name])
            done.append(f"{'changed' if name in known else 'created'} {folder / name}")
        for name in stale:
            (folder / name).unlink()
            done.append(f"removed {folder / name}")
        return done
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error


def _signed(text: str) -> str:
    return f"{_MARK}{hashlib.sha256(text.encode()).hexdigest()[:16]}\n{text}"


def base_files(manager: Manager, options: Deployed) -> dict[str, str]:
    """Return the files of the base: names and texts."""
    name, namespace = options.account
    files = {f"crd-{each.group_resource}.yaml": to_yaml(each.crd()) for each in _defined(manager)}
    files["rbac.yaml"] = manifest(name, namespace, needs(manager))
    files["deployment.yaml"] = to_yaml(_deployment(manager, options))
    if manager.webhooks is not None:
        files["webhooks.yaml"] = to_yaml(*_webhooks(manager.admission.hooks(), manager.webhooks, options))
    if options.pod_monitor:
        files["pod-monitor.yaml"] = to_yaml(_pod_monitor(options))
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return {**files, "kustomization.yaml": to_yaml({**header, "resources": sorted(files)})}


def _defined(manager: Manager) -> Iterator[CustomResource[Any]]:
    """Yield the resources of which a class makes the definition, each with most of its versions."""
    found: dict[str, CustomResource[Any]] = {}
    resources: list[Any] = [hook.resource for hook in manager.admission.hooks()]
    for controller in manager.controllers.values():
        inputs = (controller.primary(), *controller.owns, *controller.watches)
        resources += (*(each.resource for each in inputs), *(controller.writes or ()))
    for resource in resources:
        if isinstance(resource, CustomResource):
            known = found.get(resource.group_resource)
            if known is None or len(known.others) < len(resource.others):
                found[resource.group_resource] = resource
    for _, resource in sorted(found.items()):
        yield resource


def _deployment(manager: Manager, options: Deployed) -> dict[str, Any]:
    name, namespace = options.account
    port = manager.health_port or _PORT
    command = ["aioinformer", "run", options.place, "--health-port", str(port), "--log-format", "json"]
    for each in options.namespaces:
        command += ["--namespace", each]
    labels = {"app.kubernetes.io/name": name}
    elected = manager.leader_election is not None
    container: dict[str, Any] = {
        "name": "manager",
        "image": options.image or f"{name}:latest",
        "command": command,
        "ports": [{"name": "health", "containerPort": port}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": "health"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: dict[str, Any] = {
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": int(manager.grace) + _AFTER_GRACE,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    if (server := manager.webhooks) is not None:
        container["ports"] += [{"name": "webhooks", "containerPort": server.port}]
        if server.files_secret:
            container["volumeMounts"] = [{"name": "certificate", "mountPath": server.files, "readOnly": True}]
            pod["volumes"] = [{"name": "certificate", "secret": {"secretName": server.files_secret}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": (2 if elected else 1) if options.replicas is None else options.replicas,
            # Without an election, two managers must not work at the same time.
            **({} if elected else {"strategy": {"type": "Recreate"}}),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _webhooks(hooks: list[Hook[Any]], server: WebhookServer, options: Deployed) -> Iterator[dict[str, Any]]:
    """Yield the Service of the webhooks, and their configurations."""
    name, namespace = options.account
    if server.namespace != namespace:
        raise UsageError(f"WebhookServer: namespace is {server.namespace}, and the manager runs in {namespace}")
    labels = {"app.kubernetes.io/name": name}
    ports = [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": server.name, "namespace": namespace, "labels": labels},
        "spec": {"selector": labels, "ports": ports},
    }
    source = f"{server.namespace}/{server.certificate}"
    annotations = {"annotations": {"cert-manager.io/inject-ca-from": source}} if server.certificate else {}
    for purpose, resource in CONFIGURATIONS.items():
        if webhooks := [_webhook(each, hooks, server) for each in hooks if each.purpose == purpose]:
            header = {"apiVersion": resource.api_version, "kind": resource.kind}
            metadata = {"name": server.configuration, "labels": labels, **annotations}
            yield {**header, "metadata": metadata, "webhooks": webhooks}


def _webhook(hook: Hook[Any], hooks: list[Hook[Any]], server: WebhookServer) -> dict[str, Any]:
    resource = hook.resource
    name = f"{hook.purpose}.{resource.plural}.{resource.group or 'core'}"
    is_only = [each.path for each in hooks].count(hook.path) == 1
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": sorted(each.upper() for each in hook.operations),
    }
    return {
        "name": name if is_only else f"{'-'.join(hook.operations)}.{name}",
        "clientConfig": {"service": {"name": server.name, "namespace": server.namespace, "path": f"/{hook.path}"}},
        "rules": [rule],
        "failurePolicy": hook.failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": hook.timeout,
        "admissionReviewVersions": ["v1"],
    }


def _pod_monitor(options: Deployed) -> dict[str, Any]:
    name, namespace = options.account
    labels = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "podMetricsEndpoints": [{"port": "health", "path": "/metrics"}],
        },
    }
