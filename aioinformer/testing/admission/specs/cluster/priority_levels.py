"""Validation of API priority and fairness: flow schemas and priority levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import between, format_causes, lone_wildcard, required
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_EXEMPT = "exempt"
_MOST_PRECEDENCE = 10000
_MOST_QUEUES = 10_000_000
_HASH_BITS = 60
_METHODS = ("ByNamespace", "ByUser")
_TYPES = ("Exempt", "Limited")
_RESPONSES = ("Queue", "Reject")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
#: In the order in which the API reports the fields that are not allowed.
_OTHERS = {
    "ServiceAccount": ("User", "Group"),
    "User": ("ServiceAccount", "Group"),
    "Group": ("ServiceAccount", "User"),
}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


def flow_schema(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    path, precedence = "spec.matchingPrecedence", spec.get("matchingPrecedence") or 0
    if precedence <= 0:
        yield Cause.invalid(path, str(precedence), "must be a positive value")
    if precedence > _MOST_PRECEDENCE:
        yield Cause.invalid(path, str(precedence), f"must not be greater than {_MOST_PRECEDENCE}")
    if precedence == 1 and obj["metadata"].get("name") != _EXEMPT:
        yield Cause.invalid(path, "1", "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        yield Cause.unsupported("spec.distinguisherMethod.type", quote(go_struct(method, {"Type": ""})), _METHODS)
    path, level = "spec.priorityLevelConfiguration.name", (spec.get("priorityLevelConfiguration") or {}).get("name")
    if level:
        yield from format_causes(level, path, subdomain_faults)
    else:
        yield Cause.required(path, "must reference a priority level")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _flow_causes(rule, f"spec.rules[{index}]")


def _flow_causes(rule: Part, path: str) -> Iterator[Cause]:
    for index, subject in enumerate(rule.get("subjects") or ()):
        yield from _subject_causes(subject, f"{path}.subjects[{index}]")
    if not rule.get("subjects"):
        yield Cause.required(f"{path}.subjects", "subjects must contain at least one value")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield Cause.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, each in enumerate(rule.get("resourceRules") or ()):
        yield from _resource_causes(each, f"{path}.resourceRules[{index}]")
    for index, each in enumerate(rule.get("nonResourceRules") or ()):
        yield from _url_causes(each, f"{path}.nonResourceRules[{index}]")


def _subject_causes(subject: Part, path: str) -> Iterator[Cause]:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        yield Cause.unsupported(f"{path}.kind", quote(kind), tuple(_SUBJECTS))
        return
    field = _SUBJECTS[kind]
    here, details = f"{path}.{field}", subject.get(field)
    if details is None:
        yield Cause.required(here, f"{field} is required when subject kind is '{kind}'")
    else:
        yield from required(details, here, "name")
        if kind == "ServiceAccount":
            yield from _account_causes(details, here)
    for other in _OTHERS[kind]:
        if subject.get(_SUBJECTS[other]) is not None:
            why = f"{_SUBJECTS[other]} is forbidden when subject kind is not '{other}'"
            yield Cause.forbidden(f"{path}.{_SUBJECTS[other]}", why)


def _account_causes(account: Part, path: str) -> Iterator[Cause]:
    name, namespace = account.get("name") or "", account.get("namespace") or ""
    if name and name != "*":
        yield from format_causes(name, f"{path}.name", subdomain_faults)
    if namespace:
        yield from format_causes(namespace, f"{path}.namespace", label_faults)
    else:
        yield Cause.required(f"{path}.namespace", "must specify namespace for service account")


def _resource_causes(rule: Part, path: str) -> Iterator[Cause]:
    yield from _verb_causes(rule.get("verbs") or (), f"{path}.verbs")
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(field) or ()
        if not values:
            yield Cause.required(f"{path}.{field}", f"resource rules must supply at least one {one}")
        yield from lone_wildcard(values, f"{path}.{field}", many)
    namespaces = rule.get("namespaces") or ()
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        yield Cause.required(f"{path}.namespaces", why)
    yield from lone_wildcard(namespaces, f"{path}.namespaces", "namespaces")
    for index, namespace in enumerate(() if "*" in namespaces else namespaces):
        for why in label_faults(namespace):
            lead = "each member of this list must be '*' or a DNS-1123 label; "
            yield Cause.invalid(f"{path}.namespaces[{index}]", quote(namespace), lead + why)


def _url_causes(rule: Part, path: str) -> Iterator[Cause]:
    yield from _verb_causes(rule.get("verbs") or (), f"{path}.verbs")
    urls = rule.get("nonResourceURLs") or ()
    if not urls:
        yield Cause.required(f"{path}.nonResourceURLs", "nonResourceURLs must contain at least one value")
    yield from lone_wildcard(urls, f"{path}.nonResourceURLs", "non-resource URLs")
    for index, url in enumerate(() if "*" in urls else urls):
        if why := _url_fault(url):
            yield Cause.invalid(f"{path}.nonResourceURLs[{index}]", quote(url), why)


def _url_fault(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    for part, what in ((" ", "white-space"), ("//", "double slash")):
        if part in url:
            return f"must not contain {what}"
    if "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _verb_causes(verbs: Sequence[str], path: str) -> Iterator[Cause]:
    if not verbs:
        yield Cause.required(path, "verbs must contain at least one value")
    yield from lone_wildcard(verbs, path, "verbs")
    if "*" not in verbs and not set(verbs).issubset(_VERBS):
        yield Cause.unsupported(path, quote(verbs), _VERBS)


def priority_level(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
    if (obj["metadata"].get("name") == _EXEMPT) != (kind == "Exempt"):
        yield Cause.invalid("spec.type", quote(kind), "must be 'Exempt' if and only if `name` is 'exempt'")
    match kind:
        case "Exempt":
            if limited is not None:
                yield Cause.forbidden("spec.limited", "must be nil if the type is not Limited")
            yield from _share_causes(exempt or {}, "spec.exempt")
        case "Limited":
            if exempt is not None:
                yield Cause.forbidden("spec.exempt", "must be nil if the type is Limited")
            if limited is None:
                yield Cause.required("spec.limited", "must not be empty when type is Limited")
            else:
                yield from _limit_causes(limited, "spec.limited")
        case "":
            yield Cause.required("spec.type")
        case _:
            yield Cause.unsupported("spec.type", quote(kind), _TYPES)


def _limit_causes(limited: Part, path: str) -> Iterator[Cause]:
    yield from _negative_shares(limited, path)
    yield from _response_causes(limited.get("limitResponse") or {}, f"{path}.limitResponse")
    yield from between(limited.get("lendablePercent"), f"{path}.lendablePercent", 0, 100)
    if (borrowed := limited.get("borrowingLimitPercent")) is not None and borrowed < 0:
        why = "if specified, must be a non-negative integer"
        yield Cause.invalid(f"{path}.borrowingLimitPercent", str(borrowed), why)


def _share_causes(exempt: Part, path: str) -> Iterator[Cause]:
    yield from _negative_shares(exempt, path)
    yield from between(exempt.get("lendablePercent"), f"{path}.lendablePercent", 0, 100)


def _negative_shares(holder: Part, path: str) -> Iterator[Cause]:
    if (shares := holder.get("nominalConcurrencyShares") or 0) < 0:
        yield Cause.invalid(f"{path}.nominalConcurrencyShares", str(shares), "must be a non-negative integer")


def _response_causes(response: Part, path: str) -> Iterator[Cause]:
    kind, queuing = response.get("type") or "", response.get("queuing")
    match kind:
        case "Reject":
            if queuing is not None:
                why = "must be nil if limited.limitResponse.type is not Limited"
                yield Cause.forbidden(f"{path}.queuing", why)
        case "Queue":
            if queuing is None:
                why = "must not be empty if limited.limitResponse.type is Limited"
                yield Cause.required(f"{path}.queuing", why)
            else:
                yield from _queue_causes(queuing, f"{path}.queuing")
        case "":
            yield Cause.required(f"{path}.type")
        case _:
            yield Cause.unsupported(f"{path}.type", quote(kind), _RESPONSES)


def _queue_causes(queuing: Part, path: str) -> Iterator[Cause]:
    length, queues, hand = (queuing[field] for field in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield Cause.invalid(f"{path}.queueLengthLimit", str(length), "must be positive")
    if queues <= 0:
        yield Cause.invalid(f"{path}.queues", str(queues), "must be positive")
    elif queues > _MOST_QUEUES:
        yield Cause.invalid(f"{path}.queues", str(queues), f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield Cause.invalid(f"{path}.handSize", str(hand), "must be positive")
    elif hand > queues:
        yield Cause.invalid(f"{path}.handSize", str(hand), f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        needed = f"required entropy bits of deckSize {queues} and handSize {hand}"
        yield Cause.invalid(f"{path}.handSize", str(hand), f"{needed} should not be greater than {_HASH_BITS}")
