"""Compare what a manager needs with a cluster: resources by discovery, permissions by SelfSubjectAccessReview."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.client.client import Client
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import AioinformerError, ApiError
from aioinformer.resources.discovery import Discovery
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from aioinformer.cli.controllers.needs import Rule
    from aioinformer.transport import Transport

_REVIEWS: Resource[Any] = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
    decoder=msgspec.json.Decoder(dict[str, Any]).decode,
)
#: Reviews that are requested at the same time.
_AT_ONCE: Final = 8


async def lacking(transport: Transport, rules: list[Rule], user: str = "") -> list[str]:
    """Return what the cluster lacks, a line each: resources that are not served, and permissions.

    Args:
        user: whose permissions to review; "" for those of the connection.

    Raises:
        AioinformerError: the cluster cannot be asked.
    """
    missing = await _not_served(transport, {rule.resource.gvr: rule.resource for rule in rules})
    # A rule for a kind that the cluster does not have yet is reviewed all the same: RBAC does not need the kind.
    client = Client(transport, impersonate=user or None).resource(_REVIEWS)
    gate = asyncio.Semaphore(_AT_ONCE)
    try:
        async with TaskGroup() as tasks:
            reviews = [
                (rule, verb, tasks.create_task(_is_allowed(client, gate, rule, verb), name=f"review of {rule}"))
                for rule in rules
                for verb in rule.verbs
            ]
    except* AioinformerError as failures:
        raise failures.exceptions[0] from None
    refused: dict[Rule, list[str]] = {}
    for rule, verb, review in reviews:
        if not review.result():
            refused.setdefault(rule, []).append(verb)
    who = user or "you"
    permissions = [
        f"{who} may not {msgspec.structs.replace(rule, verbs=tuple(verbs))}: {'; '.join(rule.reasons)}"
        for rule, verbs in refused.items()
    ]
    return missing + permissions


async def _not_served(transport: Transport, wanted: dict[str, Resource[Any]]) -> list[str]:
    served = await Discovery(transport).resources()
    found: dict[str, Resource[Any]] = {each.gvr: each for each in served}
    versions: dict[tuple[str, str], list[str]] = {}
    for each in found.values():
        versions.setdefault((each.group, each.plural), []).append(each.version)
    lines = []
    for gvr, resource in sorted(wanted.items()):
        if gvr in found:
            if found[gvr].namespaced is not resource.namespaced:
                scope = "namespaced" if found[gvr].namespaced else "cluster-scoped"
                lines.append(f"{gvr} is {scope} in the cluster; set namespaced={found[gvr].namespaced} of the Resource")
        elif others := versions.get((resource.group, resource.plural)):
            lines.append(f"{gvr} is not served; the cluster has the versions {', '.join(sorted(others))}")
        else:
            lines.append(f"{gvr} is not served; apply its CustomResourceDefinition")
    return lines


async def _is_allowed(client: Any, gate: asyncio.Semaphore, rule: Rule, verb: str) -> bool:
    attributes = {
        "verb": verb,
        "group": rule.resource.group,
        "resource": rule.resource.plural,
        "subresource": rule.subresource,
        "namespace": rule.namespace,
        "name": rule.names[0] if rule.names else "",
    }
    review = {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    async with gate:
        try:
            answer = await client.create(review)
        except ApiError as error:
            error.add_note(f"while the permission was reviewed: {rule}")
            raise
    return bool((answer.get("status") or {}).get("allowed"))
