"""PATCH requests: which patch applies to which resource, and what is done with the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.api.negotiation import media_type
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.kinds.field_checks import check_patched, validation_directive
from aioinformer.testing.openapi.v3 import patch_schema
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.patches.media_types import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    apply_patch,
)
from aioinformer.testing.patches.strategic import as_go

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster

APPLY = "application/apply-patch+yaml"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_PATCHES = frozenset({APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH})


def patch_object(
    cluster: Cluster,
    served: Served,
    namespace: str,
    name: str,
    patch: bytes,
    content_type: str,
    query: Mapping[str, str],
    *,
    subresource: str = "",
    by: Manager | None = None,
    dry_run: bool = False,
    warnings: list[str] | None = None,
) -> tuple[bytes, bool]:
    """Applies a PATCH request.

    Args:
        by: who owns what it changes; of an apply, `fieldManager` says it.
        warnings: gets what the client is to be warned of.

    Returns:
        The object as it is now, and whether it was created (which only an apply does).

    Raises:
        StatusError: what is wrong with the patch or with its result.
    """
    if media_type(content_type) not in _PATCHES:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if media_type(content_type) == APPLY:
        return _apply(cluster, served, namespace, name, patch, query, subresource, dry_run)
    current = decode(cluster.ledger.get(served, namespace, name).body)
    patched, unknown = checked_patch(served, current, patch, content_type, validation_directive(query, "PatchOptions"))
    if warnings is not None:
        warnings += unknown
    uid = (patched.get("metadata") or {}).get("uid")
    if uid != current["metadata"]["uid"]:
        causes = [Cause.invalid("metadata.uid", f'"{uid or ""}"', "field is immutable")] * 2
        raise statuses.invalid_object(served.resource, name, causes)
    body = cluster.update(served, namespace, name, patched, subresource=subresource, by=by, dry_run=dry_run)
    return body, False


def checked_patch(
    served: Served, current: dict[str, Any], patch: bytes, content_type: str, directive: str
) -> tuple[dict[str, Any], list[str]]:
    """What a patch makes of an object, and what to warn of; nothing is stored.

    Args:
        directive: what is to be said of unknown fields, as `validation_directive` found it.

    Raises:
        StatusError: 400, 413, 415 or 422.
    """
    patched = patched_object(served, current, patch, content_type)
    is_strategic = media_type(content_type) == STRATEGIC_MERGE_PATCH

    def shown() -> str:
        return as_go(decode(patch)) if is_strategic else encode_plain(_in_order(current, patched)).decode()

    return patched, check_patched(served, patched, directive, shown, converted=is_strategic)


def _in_order(current: Any, patched: Any) -> Any:
    """A patched value with its fields where the server's patches leave them: sorted, in what has changed."""
    if not isinstance(patched, dict) or patched == current or not isinstance(current, dict):
        return patched
    return {name: _in_order(current.get(name), patched[name]) for name in sorted(patched)}


def patched_object(served: Served, current: dict[str, Any], patch: bytes, content_type: str) -> dict[str, Any]:
    """What a patch makes of an object; nothing is stored.

    Raises:
        StatusError: 400, 415 or 422.
    """
    resource = served.resource
    schema = None if served.custom else patch_schema(resource.api_version, resource.kind)
    try:
        return apply_patch(content_type, current, patch, schema)
    except PatchError as error:
        details: dict[str, Any] | None = {} if error.status == 422 else None
        raise StatusError(error.status, error.reason, error.message, details=details) from None


def _apply(
    cluster: Cluster,
    served: Served,
    namespace: str,
    name: str,
    patch: bytes,
    query: Mapping[str, str],
    subresource: str,
    dry_run: bool,
) -> tuple[bytes, bool]:
    wanted = read_configuration(served, name, patch, query)
    by = Manager(query["fieldManager"], "Apply", served.resource.api_version, subresource)
    force = query.get("force", "") in _TRUE
    return cluster.apply(served, namespace, name, wanted, by, force=force, subresource=subresource, dry_run=dry_run)


def read_configuration(served: Served, name: str, patch: bytes, query: Mapping[str, str]) -> dict[str, Any]:
    """What an apply wants an object to say.

    Args:
        name: of the URL.
        patch: the body.
        query: of the request.

    Raises:
        StatusError: 400 or 422.
    """
    if not query.get("fieldManager"):
        cause = Cause.required("fieldManager", "is required for apply patch")
        raise statuses.invalid("PatchOptions", "meta.k8s.io", "", [cause])
    try:
        wanted = yaml.safe_load(patch)
    except yaml.YAMLError as error:
        raise statuses.bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(wanted, dict):
        raise statuses.bad_request("error decoding YAML: the patch is not an object")
    resource = served.resource
    api_version, kind = wanted.get("apiVersion") or "", wanted.get("kind") or ""
    if (api_version, kind) != (resource.api_version, resource.kind):
        group, _, version = api_version.rpartition("/")
        raise statuses.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    metadata = wanted.setdefault("metadata", {})
    if not metadata.get("name"):
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise statuses.bad_request(why)
    if metadata["name"] != name:
        why = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise statuses.bad_request(why)
    if metadata.get("managedFields"):
        raise statuses.bad_request("metadata.managedFields must be nil")
    return wanted
