"""PATCH requests: choose the patch type, apply the patch, and store the result."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.responses import media_type
from aioinformer.testing.api.statuses import Cause, StatusError, collected
from aioinformer.testing.api.validation import check_metadata_types
from aioinformer.testing.http.writing.bodies import (
    header_fault,
    name_configuration,
    of_another_kind,
    read_configuration,
)
from aioinformer.testing.patches.media_types import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    apply_patch,
)
from aioinformer.testing.schemas.field_checks import check_patched, unfit_patch
from aioinformer.testing.schemas.openapi_v3 import patch_schema
from aioinformer.testing.state.preconditions import check_name, checked_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.writing.bodies import WriteOptions
    from aioinformer.testing.state.cluster import Cluster

_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


def patch_object(
    cluster: Cluster,
    served: Served,
    namespace: str,
    name: str,
    patch: bytes,
    content_type: str,
    options: WriteOptions,
    *,
    subresource: str = "",
    warnings: list[str] | None = None,
) -> tuple[bytes, bool]:
    """Apply a PATCH request.

    Args:
        warnings: warnings for the client are appended.

    Returns:
        The object, and whether it was created (which only an apply does).
    """
    collected_warnings = [] if warnings is None else warnings
    if patch_type(served, content_type) == APPLY_PATCH:
        return _apply(cluster, served, namespace, name, patch, options, subresource, collected_warnings)
    current = decode(served.body(cluster.store.get(served, namespace, name).body))
    with warned(collected_warnings):
        patched = checked_patch(served, current, patch, content_type, options.directive, collected_warnings)
        metadata = checked_metadata(served, namespace, patched)
        check_name(metadata, name)
        uid = metadata.get("uid") or current["metadata"]["uid"]
        if uid != current["metadata"]["uid"]:
            raise _another_uid(served, name, uid)
        body = cluster.writer.update(
            served,
            namespace,
            name,
            patched,
            subresource=subresource,
            by=options.by,
            dry_run=options.dry_run,
            whole=options.whole,
        )
    return body, False


def patch_type(served: Served, content_type: str) -> str:
    """Return the type of a patch.

    Raises:
        StatusError: 415, it is unknown. For built-in resources, a malformed type gets another response than an unknown
            one.
    """
    sent_type = content_type.partition(";")[0]
    accepted = [each for each in _PATCHES if each != STRATEGIC_MERGE_PATCH or not served.custom]
    if sent_type in accepted:
        return sent_type
    looks_like_one = media_type(content_type).partition(",")[0] in accepted and sent_type == sent_type.lower()
    if looks_like_one or served.custom:
        raise statuses.unsupported_media_type(accepted)
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


@contextmanager
def warned(warnings: list[str]) -> Iterator[None]:
    """Collect the warnings of the block, and add them to an error that it raises."""
    with collected(warnings):
        try:
            yield
        except StatusError as error:
            error.warnings = tuple(warnings)
            raise


def checked_patch(
    served: Served, current: dict[str, Any], patch: bytes, content_type: str, directive: str, warnings: list[str]
) -> dict[str, Any]:
    """Return a patched object; nothing is stored.

    Args:
        warnings: warnings for the client are appended.

    Raises:
        StatusError: the patch cannot be applied, or the result is invalid.
    """
    resource = served.resource
    schema = None if served.custom else patch_schema(resource.api_version, resource.kind)
    try:
        patched, repeated = apply_patch(content_type, current, patch, schema, strict=directive != "Ignore")
    except PatchError as error:
        details: dict[str, Any] | None = {} if error.status == 422 else None
        raise StatusError(error.status, error.reason, error.message, details=details) from None
    is_strategic = patch_type(served, content_type) == STRATEGIC_MERGE_PATCH
    if not is_strategic:
        _check_form(served, patched)
    checked: dict[str, Any] = patched
    warnings += check_patched(served, checked, directive, has_version=is_strategic, repeated=repeated)
    return checked


def _check_form(served: Served, patched: Any) -> None:
    if fault := header_fault(patched):
        raise unfit_patch(fault)
    resource = served.resource
    version = patched.get("apiVersion") or ""
    kind = patched.get("kind") or ""
    if not served.custom:
        kind = kind or resource.kind
        if version and (version, kind) != (resource.api_version, resource.kind):
            raise unfit_patch(of_another_kind(resource, kind, version))
        return
    if not kind or not version:
        raise unfit_patch(f"Object '{'apiVersion' if kind else 'Kind'}' is missing")
    if version.count("/") > 1:
        raise unfit_patch(f"{version} is not a group and a version")
    metadata = patched.get("metadata")
    if metadata is not None:
        try:
            check_metadata_types(resource.kind, metadata)
        except StatusError as error:
            raise unfit_patch(error.message) from None
    wrong = [
        Cause.invalid(field, f'"{found}"', f"must be {wanted}")
        for field, found, wanted in (("kind", kind, resource.kind), ("apiVersion", version, resource.api_version))
        if found != wanted
    ]
    if wrong:
        raise statuses.invalid(kind, version.rpartition("/")[0], str((metadata or {}).get("name") or ""), wrong)


def _apply(
    cluster: Cluster,
    served: Served,
    namespace: str,
    name: str,
    patch: bytes,
    options: WriteOptions,
    subresource: str,
    warnings: list[str],
) -> tuple[bytes, bool]:
    wanted, repeated = read_configuration(served, patch, options.directive)
    warnings += repeated
    live = cluster.store.find(served, namespace, name)
    with warned(warnings):
        name_configuration(wanted, name, exists=live is not None)
        metadata = wanted.get("metadata")
        if isinstance(metadata, dict) and (uid := metadata.get("uid")):
            if live is None:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise statuses.conflict(served.resource, name, why)
            if uid != live.uid:
                raise _another_uid(served, name, uid)
        if live is None and isinstance(metadata, dict):
            metadata.pop("resourceVersion", None)
        return cluster.writer.apply(
            served,
            namespace,
            name,
            wanted,
            options.by,
            force=options.force,
            subresource=subresource,
            dry_run=options.dry_run,
            whole=options.whole,
        )


def _another_uid(served: Served, name: str, uid: Any) -> StatusError:
    return statuses.invalid_object(
        served.resource, name, [Cause.invalid("metadata.uid", f'"{uid}"', "field is immutable")]
    )
