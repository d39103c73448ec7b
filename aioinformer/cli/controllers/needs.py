"""What a manager needs of a cluster: rules of RBAC, from the declarations of its controllers. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.authorization import Rbac
from aioinformer.crds import CustomResource
from aioinformer.resources import catalog
from aioinformer.resources.resource import Resource
from aioinformer.webhooks.certificates import CONFIGURATIONS, DEFINITIONS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from aioinformer.controller import Controller, Manager

#: Where a rule applies: a namespace, or "" for the whole cluster.
CLUSTER: Final = ""

_EVENTS: Resource[Any] = Resource("", "v1", "events", kind="Event")
_CONFIG_MAPS: Resource[Any] = Resource("", "v1", "configmaps", kind="ConfigMap")
_LEASES: Resource[Any] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
#: In the order in which people read them.
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
#: The verbs that include those of the status of a controller's own resource, which `set_status` writes; `WritePolicy`
#: permits the same.
_CHANGING: Final = ("update", "patch")


class Rule(msgspec.Struct, frozen=True):
    """Verbs that a manager needs for one resource in one place.

    Attributes:
        resource: the resource; "widgets" in group "example.com".
        subresource: "status", or "" for the objects themselves.
        namespace: "" for the whole cluster.
        names: of the objects; () for all.
    """

    resource: Resource[Any]
    subresource: str
    verbs: tuple[str, ...]
    namespace: str
    names: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The resource as RBAC names it: "widgets/status"."""
        if self.subresource:
            return f"{self.resource.plural}/{self.subresource}"
        return self.resource.plural

    def __str__(self) -> str:
        group = f".{self.resource.group}" if self.resource.group else ""
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{', '.join(self.verbs)} {self.what}{group} in {where if self.resource.namespaced else 'the cluster'}"


def needs(manager: Manager) -> list[Rule]:
    """Return what the service account of a manager must be allowed to do, merged and sorted.

    Writes that a controller or a background task does not declare are not included; see `undeclared`.
    """
    merged: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    resources: dict[tuple[str, str], Resource[Any]] = {}
    for rule in _single_rules(manager):
        resource = rule.resource
        resources.setdefault((resource.group, resource.plural), resource)
        verbs = merged.setdefault((rule.namespace, resource.group, resource.plural, rule.subresource, rule.names), {})
        for verb in rule.verbs:
            verbs.setdefault(verb, []).extend(rule.reasons)
    return [
        Rule(
            resources[group, plural],
            subresource,
            tuple(verb for verb in _VERBS if verb in verbs),
            namespace,
            names,
            tuple(dict.fromkeys(reason for verb in _VERBS for reason in verbs.get(verb, ()))),
        )
        for (namespace, group, plural, subresource, names), verbs in sorted(merged.items(), key=lambda each: each[0])
    ]


def undeclared(manager: Manager) -> list[str]:
    """Return the controllers and background tasks that do not declare their writes, as "controller widgets"."""
    controllers = [f"controller {name}" for name, each in manager.controllers.items() if each.writes is None]
    tasks = [f"background task {name}" for name, each in manager.background_tasks.items() if each.writes is None]
    return [*controllers, *tasks]


def _single_rules(manager: Manager) -> Iterator[Rule]:
    for controller in manager.controllers.values():
        yield from _of_inputs(manager, controller)
        yield from _of_writes(manager, f"controller {controller.name}", controller.writes, controller.resource)
        yield from _of_owners(manager, controller)
        resource = controller.resource
        has_status = "status" in resource.subresources or not (resource.verbs or resource.subresources)
        if manager.failure_condition is not None and has_status:
            why = (f"the condition {manager.failure_condition} of controller {controller.name}",)
            namespace = controller.primary().options.get("namespace")
            for place in _places(manager.namespaces if namespace is None else (namespace,), controller.resource):
                yield Rule(controller.resource, "status", ("patch",), place, reasons=why)
    for task in manager.background_tasks.values():
        yield from _of_writes(manager, f"background task {task.name}", task.writes)
    yield from _of_webhooks(manager)
    if manager.recorder is None:
        namespaces = set(manager.namespaces)
        if namespaces and not all(each.resource.namespaced for each in manager.controllers.values()):
            namespaces.add("default")  # has the Events about cluster-scoped objects
        if namespaces:
            shared = manager.leader_election or manager.ring
            namespaces |= set() if shared is None else {shared.namespace}  # has the Events about the Lease or the ring
        for namespace in _places(sorted(namespaces), _EVENTS):
            yield Rule(_EVENTS, "", ("create", "patch"), namespace, reasons=("records Events",))
    if (election := manager.leader_election) is not None:
        why = (f"leader election by the Lease {election.name}",)
        yield Rule(_LEASES, "", ("create",), election.namespace, reasons=why)
        yield Rule(_LEASES, "", ("get", "update"), election.namespace, (election.name,), why)
        sooner = ("replicas notice a release or deletion of the Lease at once, instead of at their next try",)
        yield Rule(_LEASES, "", ("watch",), election.namespace, (election.name,), sooner)
    if (ring := manager.ring) is not None:
        why = (f"the ring {ring.name}: each replica has a Lease, and removes those of dead ones",)
        yield Rule(_LEASES, "", ("create", "get", "list", "update", "delete"), ring.namespace, reasons=why)
        why = (f"the ring {ring.name}: its object says which replica owns which slot",)
        yield Rule(_CONFIG_MAPS, "", ("create",), ring.namespace, reasons=why)
        yield Rule(_CONFIG_MAPS, "", ("get", "update"), ring.namespace, (ring.object,), why)
        sooner = ("replicas notice a change of the ring at once, instead of at their next read",)
        yield Rule(_CONFIG_MAPS, "", ("watch",), ring.namespace, (ring.object,), sooner)
    for check in manager.checks:
        if isinstance(check, Rbac):
            for resource in check.reviews:
                why = ("asks who may read the metrics or the debug page",)
                yield Rule(resource, "", ("create",), CLUSTER, reasons=why)


def _of_inputs(manager: Manager, controller: Controller[Any]) -> Iterator[Rule]:
    for each in (controller.primary(), *controller.owns, *controller.watches):
        namespace = each.options.get("namespace")
        chosen = manager.namespaces if namespace is None else (namespace,)
        for place in _places(chosen, each.resource):
            yield Rule(
                each.resource, "", ("list", "watch"), place, reasons=(f"controller {controller.name} watches them",)
            )


def _of_webhooks(manager: Manager) -> Iterator[Rule]:
    for hook in manager.admission.hooks():
        for resource in hook.reads.values():
            for place in _places(manager.namespaces, resource):
                yield Rule(resource, "", ("list", "watch"), place, reasons=(f"{hook.path} reads them",))
    server = manager.webhooks
    if server is not None and server.files is None:
        why = ("the webhooks are served with a CA in this Secret",)
        yield Rule(SECRETS, "", ("create",), server.namespace, reasons=why)
        yield Rule(SECRETS, "", ("get", "update"), server.namespace, (server.secret,), why)
        for resource in CONFIGURATIONS.values():
            why = ("the manager keeps the CA of its webhooks in them",)
            yield Rule(resource, "", ("get", "patch"), CLUSTER, (server.configuration,), why)
        for each in manager.admission.conversions.resources():
            why = ("the manager keeps the CA of its conversion in it",)
            yield Rule(DEFINITIONS, "", ("get", "patch"), CLUSTER, (each.group_resource,), why)


def _of_writes(
    manager: Manager,
    writer: str,
    writes: Mapping[Resource[Any], Iterable[str]] | None,
    status_of: Resource[Any] | None = None,
) -> Iterator[Rule]:
    """Yield the rules of what a controller or a background task writes. `status_of` is that of `WritePolicy`."""
    why = (f"{writer} writes them",)
    for resource, verbs in (writes or {}).items():
        includes_status = status_of is None or resource.group_resource == status_of.group_resource
        for place in _places(manager.namespaces, resource):
            for verb in verbs:
                subresource, _, simple = verb.rpartition("/")
                yield Rule(resource, subresource, (simple,), place, reasons=why)
                changes = simple in _CHANGING and not subresource
                if includes_status and changes and _has_status(resource):
                    yield Rule(resource, "status", (simple,), place, reasons=why)
            # `apply_set` and `edit` get an object; a write whose answer was lost is settled by a list of this one.
            yield Rule(resource, "", ("get", "list"), place, reasons=why)


def _of_owners(manager: Manager, controller: Controller[Any]) -> Iterator[Rule]:
    if controller.owns:
        owner = controller.resource
        for place in _places(manager.namespaces, owner):
            reasons = (f"owner references of controller {controller.name} block the deletion of the owner",)
            yield Rule(owner, "finalizers", ("update",), place, reasons=reasons)


def _has_status(resource: Resource[Any]) -> bool:
    """Return whether a resource has a status of its own, as far as is known: of other custom resources, it is not."""
    if isinstance(resource, CustomResource):
        return "status" in resource.subresources
    known = catalog.find(resource.group, resource.version, resource.plural)
    return known is None or "status" in known.subresources


def _places(namespaces: Iterable[str], resource: Resource[Any]) -> tuple[str, ...]:
    return (tuple(namespaces) if resource.namespaced else ()) or (CLUSTER,)
