"""Role-based access control: what the rules of roles allow, and the default roles and bindings of every cluster.

There are many default roles, and a server for a test lives briefly: their bodies are made once per process, and each
server only fills in uids, times and versions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.state.storage import Record

if TYPE_CHECKING:
    import random

    from aioinformer.testing.state.cluster import Cluster

RBAC_GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

Find = Callable[[str, str], Sequence[Mapping[str, Any]]]

EVERYTHING: Sequence[Mapping[str, Any]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
_UID = "<uid>"
_TIME = "<time>"
_VERSION = "<version>"


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user.

    Attributes:
        name: "jane", "system:serviceaccount:default:robot".
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the user as reviews show it."""
        shown = {
            "username": self.name,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {name: list(values) for name, values in self.extra.items()},
        }
        return {name: value for name, value in shown.items() if value}


@dataclass(frozen=True, slots=True)
class RequestAttributes:
    """What a request asks for: an action on a resource, or on a path that is about none.

    Attributes:
        verb: "get", "list", "create" and so on; for paths the method in lower case.
        path: "" for resources.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f'{self.verb} path "{self.path}"'
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        if self.namespace:
            where = f'in the namespace "{self.namespace}"'
        else:
            where = "at the cluster scope"
        return f'{self.verb} resource "{resource}" in API group "{self.group}" {where}'


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request is allowed.

    Attributes:
        reason: the binding that allowed it, or an error of the evaluation.
    """

    allowed: bool
    reason: str = ""


class RoleAuthorizer:
    """Authorize by roles and bindings.

    Args:
        find: returns the objects of a resource of `rbac.authorization.k8s.io` in a namespace, or ("") in the cluster.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        """Return whether a user may do something."""
        if MASTERS in user.groups:
            return Decision(True)
        missing = []
        for bound in self._bound(user, attributes.namespace):
            if bound.rules is None:
                missing.append(_not_found(bound.kind.lower(), bound.name))
            elif any(_allows(rule, attributes) for rule in bound.rules):
                return Decision(True, bound.reason)
        return Decision(False, f"RBAC: {aggregated(missing)}" if missing else "")

    def rules(self, user: User, namespace: str) -> list[Mapping[str, Any]]:
        """Return all rules for a user in a namespace, or ("") in the cluster."""
        return [rule for bound in self._bound(user, namespace) for rule in bound.rules or ()]

    def missing(self, user: User, namespace: str, *, plural: bool = False) -> list[str]:
        """Return the errors for missing roles that a user is bound to.

        Args:
            namespace: "" for the cluster.
            plural: name resources instead of kinds.
        """
        bound = (each for each in self._bound(user, namespace) if each.rules is None)
        return [_not_found(each.kind.lower() + "s" * plural, each.name) for each in bound]

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[Mapping[str, Any]] | None:
        """Return the rules of a role; None if it does not exist."""
        found = self._find(f"{kind.lower()}s", namespace if kind == "Role" else "")
        return next((each.get("rules") or () for each in found if each["metadata"]["name"] == name), None)

    def _bound(self, user: User, namespace: str) -> Iterator[_Bound]:
        for plural, where in (("clusterrolebindings", ""), ("rolebindings", namespace)):
            if plural == "rolebindings" and not namespace:
                continue
            for binding in self._find(plural, where):
                subject = next((each for each in binding.get("subjects") or () if _is(each, user, where)), None)
                if subject is not None:
                    yield self._role(binding, where, subject)

    def _role(self, binding: Mapping[str, Any], namespace: str, subject: Mapping[str, Any]) -> _Bound:
        reference = binding["roleRef"]
        metadata = binding["metadata"]
        kind = reference["kind"]
        name = reference["name"]
        own = f"{metadata['name']}/{namespace}" if namespace else metadata["name"]
        whom = subject["name"]
        if subject["kind"] == "ServiceAccount":
            whom = f"{whom}/{subject.get('namespace') or namespace}"
        reason = f'{binding["kind"]} "{own}" of {kind} "{name}" to {subject["kind"]} "{whom}"'
        return _Bound(kind, name, self.rules_of(kind, name, namespace), f"RBAC: allowed by {reason}")


def aggregated(errors: Sequence[str]) -> str:
    """Return several errors in one text."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


@dataclass(frozen=True, slots=True)
class _Bound:
    kind: str
    name: str
    rules: Sequence[Mapping[str, Any]] | None
    reason: str


def _not_found(kind: str, name: str) -> str:
    return f'{kind}.rbac.authorization.k8s.io "{name}" not found'


def _is(subject: Mapping[str, Any], user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            where = subject.get("namespace") or namespace
            return user.name == f"system:serviceaccount:{where}:{subject['name']}"
    return False


def _allows(rule: Mapping[str, Any], attributes: RequestAttributes) -> bool:
    if not _has(rule, "verbs", attributes.verb):
        return False
    if attributes.path:
        return any(_covers(each, attributes.path) for each in rule.get("nonResourceURLs") or ())
    if not _has(rule, "apiGroups", attributes.group):
        return False
    names = rule.get("resourceNames")
    return (not names or attributes.name in names) and _has_resource(rule.get("resources") or (), attributes)


def _has(rule: Mapping[str, Any], field: str, wanted: str) -> bool:
    return not {"*", wanted}.isdisjoint(rule.get(field) or ())


def _has_resource(resources: Sequence[str], attributes: RequestAttributes) -> bool:
    if not attributes.subresource:
        return not {"*", attributes.resource}.isdisjoint(resources)
    return not {"*", f"{attributes.resource}/{attributes.subresource}", f"*/{attributes.subresource}"}.isdisjoint(
        resources
    )


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def create_bootstrap_policy(cluster: Cluster, rng: random.Random) -> None:
    """Store the missing roles and bindings; those that an earlier run has changed stay."""
    store = cluster.store
    now = cluster.now().encode()
    for plural, objects in _prepared().items():
        served = store.registry.find(RBAC_GROUP, "v1", plural)
        assert served is not None
        for metadata, prepared in objects:
            namespace = metadata.get("namespace", "")
            name = metadata["name"]
            if store.find(served, namespace, name) is not None:
                continue
            version = store.storage.next_version()
            uid = str(uuid.UUID(int=rng.getrandbits(128), version=4))
            body = prepared.replace(_UID.encode(), uid.encode(), 1).replace(_TIME.encode(), now, 1)
            body = body.replace(_VERSION.encode(), str(version).encode(), 1)
            record = Record(namespace, name, version, uid, body, metadata.get("labels") or {}, ())
            store.write(served, "ADDED", record, None, metadata)


@cache
def _prepared() -> Mapping[str, list[tuple[Mapping[str, Any], bytes]]]:
    """Return metadata and body of each, by resource."""
    data = files("aioinformer.testing").joinpath("data", "roles.json").read_bytes()
    recorded: dict[str, list[dict[str, Any]]] = decode(data)
    return {plural: [_template(_KINDS[plural], obj) for obj in objects] for plural, objects in recorded.items()}


def _template(kind: str, obj: dict[str, Any]) -> tuple[Mapping[str, Any], bytes]:
    metadata = obj["metadata"]
    standing = metadata | {"uid": _UID, "resourceVersion": _VERSION, "creationTimestamp": _TIME}
    whole = {"kind": kind, "apiVersion": f"{RBAC_GROUP}/v1", **obj, "metadata": standing}
    return metadata, encode_object(whole, custom=False)
