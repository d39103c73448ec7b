"""`aioinformer manifests`: a kustomize base of what a manager needs in a cluster.

People work in its folder, too. The first line of a generated file has a digest of the rest: only a file whose digest is
right is replaced or removed. What the objects look like is in `templates/base`.
"""

from __future__ import annotations

import hashlib
from functools import reduce
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cel.conditions import condition_faults, unchecked_pattern
from aioinformer.cli.controllers.manifest import manifest, to_yaml
from aioinformer.cli.controllers.needs import needs
from aioinformer.crds import CustomResource
from aioinformer.errors import UsageError
from aioinformer.files import replace_file
from aioinformer.listening import LEAVING
from aioinformer.resources import catalog
from aioinformer.transport.auth.credentials import SERVICE_ACCOUNT
from aioinformer.transport.auth.yaml_documents import load_yaml
from aioinformer.webhooks.certificates import CONFIGURATIONS
from aioinformer.webhooks.conversion import PATH as CONVERT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aioinformer.controller import Manager
    from aioinformer.resources.resource import Resource
    from aioinformer.webhooks import WebhookServer
    from aioinformer.webhooks.hooks import Hook

_PORT: Final = 8080
_MARK: Final = "# Made by `aioinformer manifests`, which replaces it. Change the declarations, or patch it. Digest: "
#: Seconds from the signal until the last Events are written and the Lease is released, beyond the grace of the runs.
_AFTER_GRACE: Final = 20
#: Seconds that background tasks have to end.
_BACKGROUND: Final = 10


class Deployed(msgspec.Struct, frozen=True):
    """How a manager is deployed.

    Attributes:
        place: of the manager, "widgets:manager".
        account: name and namespace of the service account, and of all else.
        image: of the container.
        replicas: None for two with a leader election, and one without.
        pod_monitor: whether Prometheus's operator reads the metrics of the pods.
        service_monitor: the same, by a Service of their own.
        network_policy: whether only the ports of the manager can be reached.
        namespaces: the namespaces that options name, instead of those of the manager.
    """

    place: str
    account: tuple[str, str]
    image: str = ""
    replicas: int | None = None
    pod_monitor: bool = False
    service_monitor: bool = False
    network_policy: bool = False
    namespaces: tuple[str, ...] = ()


def write_base(manager: Manager, options: Deployed, folder: Path, *, overwrite: bool = False) -> list[str]:
    """Write the base into a folder, and return what was done, a line each; [] if nothing has changed.

    Files of the user stay. To apply them, too, or to change something, the user has an overlay of kustomize.

    Raises:
        UsageError: a generated file was edited or is another's, or a class has no schema; then nothing was written. Or
            the folder cannot be written.
    """
    texts = base_files(manager, options)
    try:
        known = {path.name: path.read_text() for path in folder.glob("*.yaml") if path.is_file()}
        wanted = {name: _signed(text) for name, text in texts.items()}
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
            replace_file(folder / name, [wanted[name].encode()])
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
    words = {"name": name, "namespace": namespace}
    texts = {
        f"crd-{each}.yaml": to_yaml(_definition(resource, manager))
        for each, resource in sorted(_defined(manager).items())
    }
    texts["rbac.yaml"] = manifest(name, namespace, needs(manager))
    texts["deployment.yaml"] = to_yaml(_deployment(manager, options, words))
    if manager.webhooks is not None:
        texts["webhooks.yaml"] = to_yaml(*_webhooks(manager, manager.webhooks, words))
    if options.pod_monitor:
        texts["pod-monitor.yaml"] = to_yaml(_filled("pod-monitor", words))
    if options.service_monitor:
        service = _filled("metrics-service", words, service=f"{name}-metrics", port=_health_port(manager))
        token = None if manager.metrics_check is None else str(SERVICE_ACCOUNT / "token")
        texts["service-monitor.yaml"] = to_yaml(service, _filled("service-monitor", words, token=token))
    if options.network_policy:
        texts["network-policy.yaml"] = to_yaml(_filled("network-policy", words, ingress=list(_ingress(manager))))
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return {**texts, "kustomization.yaml": to_yaml({**header, "resources": sorted(texts)})}


def _defined(manager: Manager) -> dict[str, CustomResource[Any]]:
    """Return the resources of which a class makes the definition, by name, each with most of its versions."""
    resources: list[Any] = [hook.resource for hook in manager.admission.hooks()]
    resources += manager.admission.conversions.declared()
    for controller in manager.controllers.values():
        inputs = (controller.primary(), *controller.owns, *controller.watches)
        resources += (*(each.resource for each in inputs), *(controller.writes or ()))
    declared = (each for each in resources if isinstance(each, CustomResource))
    return {each.group_resource: each for each in sorted(declared, key=lambda each: len(each.others))}


def _definition(resource: CustomResource[Any], manager: Manager) -> dict[str, Any]:
    if not resource.converts:
        return resource.crd()
    server = manager.webhooks
    if server is None:
        raise UsageError(f"{resource.kind} has versions that convert: give the manager webhooks=WebhookServer(…)")
    made = resource.crd(_client(CONVERT, server))
    if server.certificate:
        source = f"{server.namespace}/{server.certificate}"
        made["metadata"].setdefault("annotations", {})["cert-manager.io/inject-ca-from"] = source
    return made


def _health_port(manager: Manager) -> int:
    return manager.health_port or _PORT


def _ingress(manager: Manager) -> Iterator[dict[str, Any]]:
    """Yield what may reach the pods: pods of the cluster, such as Prometheus, and the API server, from any address.

    The node of a pod, whose kubelet reads the probes, always may.
    """
    yield {"from": [{"namespaceSelector": {}}], "ports": [{"port": "health", "protocol": "TCP"}]}
    if manager.webhooks is not None:
        yield {"ports": [{"port": "webhooks", "protocol": "TCP"}]}


def _deployment(manager: Manager, options: Deployed, words: dict[str, Any]) -> Any:
    name = words["name"]
    server = manager.webhooks
    port = _health_port(manager)
    command = ["aioinformer", "run", options.place, "--health-port", str(port), "--log-format", "json"]
    for each in options.namespaces:
        command += ["--namespace", each]
    # Any number of replicas may answer reviews, but only one may run controllers.
    elected = manager.leader_election is not None or (server is not None and not manager.controllers)
    ports = [{"name": "health", "containerPort": port}]
    mounts = None
    volumes = None
    if server is not None:
        ports.append({"name": "webhooks", "containerPort": server.port})
        if server.files_secret:
            mounts = [{"name": "certificate", "mountPath": server.files, "readOnly": True}]
            volumes = [{"name": "certificate", "secret": {"secretName": server.files_secret}}]
    replicas = options.replicas
    if replicas is None:
        replicas = 2 if elected else 1
    return _filled(
        "deployment",
        words,
        replicas=replicas,
        # Without an election, two managers must not work at the same time.
        strategy=None if elected else {"type": "Recreate"},
        seconds=_seconds_to_stop(manager),
        image=options.image or f"{name}:latest",
        command=command,
        ports=ports,
        mounts=mounts,
        volumes=volumes,
    )


def _webhooks(manager: Manager, server: WebhookServer, words: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the Service of the webhooks, and their configurations."""
    hooks = manager.admission.hooks()
    if server.namespace != words["namespace"]:
        raise UsageError(
            f"WebhookServer: namespace is {server.namespace}, and the manager runs in {words['namespace']}"
        )
    words = {**words, "server": server}
    if not server.url:
        yield _filled("service", words)
    source = f"{server.namespace}/{server.certificate}"
    annotations = {"cert-manager.io/inject-ca-from": source} if server.certificate else None
    for purpose, resource in CONFIGURATIONS.items():
        if webhooks := [_webhook(each, manager, words) for each in hooks if each.purpose == purpose]:
            made = _filled("configuration", words, kind=resource.kind, annotations=annotations, webhooks=webhooks)
            for fault in condition_faults(made):
                what = f"{resource.kind} {server.configuration}: {fault.field}"
                raise UsageError(f"{what}: {fault.expression!r} is refused: {fault.reason}")
            yield made


def unchecked_conditions(manager: Manager) -> Iterator[str]:
    """Yield a line for each condition of an admission function whose patterns nothing has checked."""
    for hook in manager.admission.hooks():
        for condition in hook.options.match_conditions:
            if missing := unchecked_pattern(condition["expression"]):
                yield f"match condition {condition['name']}: its pattern is not checked, which needs {missing}"


def _webhook(hook: Hook[Any], manager: Manager, words: dict[str, Any]) -> Any:
    resource = hook.resource
    options = hook.options
    name = f"{hook.purpose}.{resource.plural}.{resource.group or 'core'}"
    is_only = [each.path for each in manager.admission.hooks()].count(hook.path) == 1
    if not is_only:
        name = f"{'-'.join((*hook.operations, *filter(None, hook.subresources)))}.{name}"
    return _filled(
        "webhook",
        words,
        name=name,
        hook=hook,
        client=_client(hook.path, words["server"]),
        operations=sorted(each.upper() for each in hook.operations),
        resources=[f"{resource.plural}/{each}" if each else resource.plural for each in hook.subresources],
        namespaces=_namespaces(hook, manager) if options.namespace_selector is None else options.namespace_selector,
        conditions=[*_spared(hook, manager, words), *options.match_conditions] or None,
    )


def _client(path: str, server: WebhookServer) -> dict[str, Any]:
    """Return how the API server reaches a webhook."""
    if server.url:
        return {"url": f"{server.url.rstrip('/')}/{path}"}
    return {"service": {"name": server.name, "namespace": server.namespace, "path": f"/{path}"}}


def _is_built_in(resource: Resource[Any]) -> bool:
    return catalog.find(resource.group, resource.version, resource.plural) is not None


def _namespaces(hook: Hook[Any], manager: Manager) -> dict[str, Any] | None:
    """Return the selector that leaves out the namespaces without which the manager, or the cluster, cannot start.

    The manager needs its Secret, its Lease and its pods before its functions can answer.
    """
    if not _is_built_in(hook.resource):
        return None
    users = (manager.webhooks, manager.leader_election, manager.ring)
    left_out = sorted({"kube-system", *(each.namespace for each in users if each is not None)})
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": left_out}
    return {"matchExpressions": [expression]}


def _spared(hook: Hook[Any], manager: Manager, words: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the condition that leaves out the cluster-scoped objects of this base, by their names."""
    own = {
        "customresourcedefinitions.apiextensions.k8s.io": sorted(_defined(manager)),
        "clusterroles.rbac.authorization.k8s.io": [words["name"]],
        "clusterrolebindings.rbac.authorization.k8s.io": [words["name"]],
    }
    if names := own.get(hook.resource.group_resource):
        listed = ", ".join(f"'{each}'" for each in names)
        yield {"name": "own-objects", "expression": f"!(request.name in [{listed}])"}


def _seconds_to_stop(manager: Manager) -> int:
    """Return the seconds that a manager may need from the signal to its end."""
    seconds = int(manager.grace) + _AFTER_GRACE
    if manager.background_tasks:
        seconds += _BACKGROUND
    if manager.lifespan is not None:
        seconds += int(manager.grace)
    if manager.webhooks is not None:
        seconds += int(LEAVING[-1])
    return seconds


def _filled(template: str, words: dict[str, Any], **more: Any) -> Any:
    """Return the object of a template.

    `$hook.timeout` stands for an attribute of the value "hook". A member whose value is None is left out.
    """
    known = {**words, **more}

    def fill(value: Any) -> Any:
        match value:
            case dict():
                return {name: found for name, each in value.items() if (found := fill(each)) is not None}
            case list():
                return [fill(each) for each in value]
            case str() if value.startswith("$"):
                name, *attributes = value[1:].split(".")
                return reduce(getattr, attributes, known[name])
        return value

    return fill(load_yaml((files(__package__) / "templates" / "base" / f"{template}.yaml").read_text()))
