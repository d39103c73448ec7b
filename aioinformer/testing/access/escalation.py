"""Nobody gives rights that he does not have: what kube-apiserver checks when roles and bindings are written.

Rights are compared piece by piece. A rule is taken apart into as many as there are combinations of a verb, a group, a
resource and a name (or of a verb and a path); each piece must be covered by one of the rules that the writer has. What
is left is told, verbs of one resource together.

Whoever may `escalate` roles writes any, whoever may `bind` a role binds it whatever it allows. Members of
`system:masters` are not asked. Nor is anybody who changes finalizers and owners only: the garbage collector must do so
without having what the role gives.
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
    """Whether somebody may write a role or a binding, as far as that depends on what it gives.

    Args:
        authorizer: knows who may what.
        user: who writes.
        resource: of what is written; those that give nothing are not looked at.
        namespace: of the request, "" for none.
        obj: as it is to be.
        old: as it was, None for a new one.

    Raises:
        StatusError: 403, or 404 for a binding to a role that is not there.
    """
    if resource.group != RBAC_GROUP or MASTERS in user.groups or (old is not None and _is_same(obj, old)):
        return
    name = str(obj["metadata"].get("name") or "")
    if resource.group_resource in _ROLES:
        # A request for a new object has no name in its path, whatever its body says.
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
            # The API takes the role's name for one of what is being written.
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
    told = "\n".join(sorted({_described(each) for each in _gathered(missing)}))
    why = f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
    wrong = authorizer.missing(user, namespace, plural=True)
    errors = f"; resolution errors: [{aggregated(wrong)}]" if wrong else ""
    raise statuses.forbidden(resource, name, f"{why}\n{told}{errors}")


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
    """The pieces, with the verbs of one resource (and name) in one."""
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
    """Whether an object is what it was, but for what the garbage collector changes."""
    return _settled(obj) == _settled(old)


def _settled(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {field: value for field, value in obj["metadata"].items() if value and field not in _FREE}
    return {field: value for field, value in obj.items() if value} | {"metadata": metadata}
