"""Privilege escalation: no user may grant rights that the user does not have, as kube-apiserver's RBAC requires.

Rights are compared rule by rule. Each rule is split into one for each combination of a verb, a group, a resource and a
name (or of a verb and a path). Each of these must be covered by a rule of the user. The error lists the rest, with the
verbs of one resource together.

A user with the verb `escalate` may write any role, and one with the verb `bind` may bind a role whatever it allows.
Members of `system:masters` are not checked, nor are changes of finalizers and owner references: the garbage collector
must make these without having the rights of the role.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import EVERYTHING, MASTERS, RBAC_GROUP, RequestAttributes, User, aggregated
from aioinformer.testing.api import statuses
from aioinformer.testing.api.golike import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.access.rbac import RoleAuthorizer

_ROLES = frozenset({f"roles.{RBAC_GROUP}", f"clusterroles.{RBAC_GROUP}"})
_BINDINGS = frozenset({f"rolebindings.{RBAC_GROUP}", f"clusterrolebindings.{RBAC_GROUP}"})
_FREE = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})
_SHOWN = (
    ("apiGroups", "APIGroups"),
    ("resources", "Resources"),
    ("nonResourceURLs", "NonResourceURLs"),
    ("resourceNames", "ResourceNames"),
    ("verbs", "Verbs"),
)

_Piece = dict[str, list[str]]


def check_escalation(
    authorizer: RoleAuthorizer,
    user: User,
    resource: Resource[Any],
    namespace: str,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> None:
    """Check that a user may write a role or a binding, as far as that depends on the rights that it grants.

    Args:
        authorizer: evaluates the roles.
        user: the writer.
        resource: of the object; other resources than roles and bindings are not checked.
        namespace: of the request, "" for none.
        obj: the object to store.
        old: the object that it replaces, None for a new one.

    Raises:
        StatusError: 403, or 404 for a binding to a role that does not exist.
    """
    if resource.group != RBAC_GROUP or MASTERS in user.groups or (old is not None and _is_same(obj, old)):
        return
    name = str(obj["metadata"].get("name") or "")
    if resource.group_resource in _ROLES:
        # The path of a create request has no name, whatever the body says.
        path_name = name if old is not None else ""
        attributes = RequestAttributes("escalate", RBAC_GROUP, resource.plural, namespace=namespace, name=path_name)
        if authorizer.decide(user, attributes).allowed:
            return
        _confirm(authorizer, user, resource, namespace, name, obj.get("rules") or ())
        sums = any(((each or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") for each in (obj, old))
        if sums and _missing(authorizer.rules(user, namespace), EVERYTHING):
            raise statuses.forbidden(resource, name, "must have cluster-admin privileges to use the aggregationRule")
    elif resource.group_resource in _BINDINGS:
        reference = obj.get("roleRef") or {}
        kind, wanted = str(reference.get("kind") or ""), str(reference.get("name") or "")
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        group = str(reference.get("apiGroup") or "")
        if (
            plural
            and authorizer.decide(
                user, RequestAttributes("bind", group, plural, namespace=namespace, name=wanted)
            ).allowed
        ):
            return
        if not plural:
            raise statuses.internal_error(f"unsupported role reference kind: {quoted(kind)}")
        rules = authorizer.rules_of(kind, wanted, namespace)
        if rules is None:
            # The API reports the role's name as one of the written resource.
            raise statuses.not_found(resource, wanted)
        _confirm(authorizer, user, resource, namespace, name, rules)


def _confirm(
    authorizer: RoleAuthorizer,
    user: User,
    resource: Resource[Any],
    namespace: str,
    name: str,
    rules: Sequence[Mapping[str, Any]],
) -> None:
    missing = _missing(authorizer.rules(user, namespace), rules)
    if not missing:
        return
    groups = " ".join(map(quoted, user.groups))
    rules_text = "\n".join(sorted({_described(each) for each in _gathered(missing)}))
    why = f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
    wrong = authorizer.missing(user, namespace, plural=True)
    errors = f"; resolution errors: [{aggregated(wrong)}]" if wrong else ""
    raise statuses.forbidden(resource, name, f"{why}\n{rules_text}{errors}")


def _missing(owned: Sequence[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> list[_Piece]:
    return [piece for rule in wanted for piece in _pieces(rule) if not any(_covers(each, piece) for each in owned)]


def _pieces(rule: Mapping[str, Any]) -> Iterator[_Piece]:
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ()
    for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
        piece: _Piece = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        if names:
            yield from (piece | {"resourceNames": [name]} for name in names)
        else:
            yield piece
    for path, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(rule: Mapping[str, Any], piece: _Piece) -> bool:
    names = rule.get("resourceNames") or ()
    if names and not (piece.get("resourceNames") and set(piece["resourceNames"]) <= set(names)):
        return False
    if not _has_all(rule, piece, "verbs") or not _has_all(rule, piece, "apiGroups"):
        return False
    resources = rule.get("resources") or ()
    for resource in piece.get("resources", ()):
        _, slash, subresource = resource.partition("/")
        named = {"*", resource, f"*/{subresource}"} if slash else {"*", resource}
        if named.isdisjoint(resources):
            return False
    paths = rule.get("nonResourceURLs") or ()
    return all(any(_covers_path(own, path) for own in paths) for path in piece.get("nonResourceURLs", ()))


def _has_all(rule: Mapping[str, Any], piece: _Piece, field: str) -> bool:
    owned = set(rule.get(field) or ())
    return "*" in owned or owned.issuperset(piece.get(field, ()))


def _covers_path(own: str, path: str) -> bool:
    return own == path or (own.endswith("*") and path.startswith(own.rstrip("*")))


def _gathered(pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """Merge the rules that differ only in their verbs."""
    gathered: dict[tuple[str, ...], _Piece] = {}
    for piece in pieces:
        if "nonResourceURLs" in piece:
            yield piece
            continue
        key = (piece["apiGroups"][0], piece["resources"][0], *piece.get("resourceNames", ()))
        before = gathered.get(key)
        gathered[key] = piece if before is None else before | {"verbs": [*before["verbs"], *piece["verbs"]]}
    yield from gathered.values()


def _described(rule: _Piece) -> str:
    parts = (f"{shown}:[{' '.join(map(quoted, rule[field]))}]" for field, shown in _SHOWN if rule.get(field))
    return "{" + ", ".join(parts) + "}"


def _is_same(obj: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether an object is unchanged except for what the garbage collector changes."""
    return _settled(obj) == _settled(old)


def _settled(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {field: value for field, value in obj["metadata"].items() if value and field not in _FREE}
    return {field: value for field, value in obj.items() if value} | {"metadata": metadata}
