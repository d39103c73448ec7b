"""PATCH requests: choose the patch type, apply the patch, and store the result."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.api.negotiation import media_type
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.api.validation import check_metadata_types
from aioinformer.testing.api.warnings import collected
from aioinformer.testing.http.writing.bodies import HEADER_TYPE, of_another_kind
from aioinformer.testing.http.writing.configurations import name_configuration, read_configuration
from aioinformer.testing.patches.decoding import decode_json
from aioinformer.testing.patches.json_patches import json_type
from aioinformer.testing.patches.media_types import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    apply_patch,
)
from aioinformer.testing.patches.repeated_keys import Repeating, as_written, has_repeated, repeated_in_json
from aioinformer.testing.patches.strategic import as_go
from aioinformer.testing.schemas.field_checks import check_patched, unfit_patch
from aioinformer.testing.schemas.go_values import GoValueError, decode_values
from aioinformer.testing.schemas.openapi_v3 import patch_schema
from aioinformer.testing.state.preconditions import check_name, checked_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.writing.write_options import WriteOptions
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
        cluster: the state of the server.
        served: the resource.
        namespace: of the object, "" for none.
        name: of the object.
        patch: the body.
        content_type: of the body.
        options: of the request.
        subresource: "" for the object itself.
        warnings: warnings for the client are appended.

    Returns:
        The object, and whether it was created (which only an apply does).

    Raises:
        StatusError: the patch or its result is invalid.
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
        served: the resource.
        current: the object.
        patch: the body.
        content_type: of the body.
        directive: what to do about unknown and repeated fields: "Ignore", "Warn" or "Strict".
        warnings: warnings for the client are appended.

    Raises:
        StatusError: 400, 413, 415 or 422.
    """
    resource = served.resource
    schema = None if served.custom else patch_schema(resource.api_version, resource.kind)
    try:
        patched, repeated = apply_patch(content_type, current, patch, schema, strict=directive != "Ignore")
    except PatchError as error:
        details: dict[str, Any] | None = {} if error.status == 422 else None
        raise StatusError(error.status, error.reason, error.message, details=details) from None
    is_strategic = patch_type(served, content_type) == STRATEGIC_MERGE_PATCH
    text = ""
    if patch_type(served, content_type) == JSON_PATCH and has_repeated(patch):
        text = as_written(_sorted(current, patched))
        patched, again = repeated_in_json(text.encode(), merged=not served.custom)
        repeated += again

    def shown() -> str:
        return text or (
            as_go(decode_json(patch)[0]) if is_strategic else encode_plain(_sorted(current, patched)).decode()
        )

    if not is_strategic:
        _check_form(served, patched, shown)
    checked: dict[str, Any] = patched
    warnings += check_patched(served, checked, directive, shown, converted=is_strategic, repeated=repeated)
    return checked


def _check_form(served: Served, patched: Any, shown: Callable[[], str]) -> None:
    if not isinstance(patched, dict):
        why = f"json: cannot unmarshal {json_type(patched)} into Go value of type {HEADER_TYPE}"
        raise unfit_patch(shown(), f"couldn't get version/kind; json parse error: {why}")
    for field in ("apiVersion", "kind"):
        if not isinstance(patched.get(field), str | None):
            why = f"json: cannot unmarshal {json_type(patched[field])} into Go struct field .{field} of type string"
            raise unfit_patch(shown(), f"couldn't get version/kind; json parse error: {why}")
    resource = served.resource
    version, kind = patched.get("apiVersion") or "", patched.get("kind") or ""
    if served.custom and not kind:
        raise unfit_patch(shown(), f"Object 'Kind' is missing in '{shown()}'")
    if version.count("/") > 1:
        raise unfit_patch(shown(), f"unexpected GroupVersion string: {version}")
    if served.custom:
        _check_custom_form(served, patched, kind, version, shown)
        return
    kind = kind or resource.kind
    if version and (version, kind) != (resource.api_version, resource.kind):
        raise unfit_patch(shown(), _misfit(served, patched, kind, version))


def _check_custom_form(
    served: Served, patched: dict[str, Any], kind: str, version: str, shown: Callable[[], str]
) -> None:
    resource = served.resource
    if not version:
        if "apiVersion" in patched:
            raise unfit_patch(shown(), ".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        message = f"Internal error occurred: {why}"
        raise StatusError(500, "InternalError", message, details={"causes": [{"message": why}]})
    text, metadata = shown(), patched.get("metadata")
    if metadata is not None:
        try:
            check_metadata_types(resource.kind, resource.version, metadata, custom=True)
        except StatusError as error:
            raise unfit_patch(text, error.message.partition(" cannot be handled as a ")[2].partition(": ")[2]) from None
    group, name = version.rpartition("/")[0], str((metadata or {}).get("name") or "")
    wrong = []
    if kind != resource.kind:
        wrong.append(Cause.invalid("kind", f'"{kind}"', f"must be {resource.kind}"))
    if version != resource.api_version:
        wrong.append(Cause.invalid("apiVersion", f'"{version}"', f"must be {resource.api_version}"))
    if wrong:
        raise statuses.invalid(kind, group, name, wrong)


def _misfit(served: Served, patched: dict[str, Any], kind: str, version: str) -> str:
    schema = patch_schema(version, kind)
    if schema is not None:
        try:
            decode_values(patched, schema.schemas, schema.node, kind)
        except GoValueError as error:
            return str(error)
    return of_another_kind(served.resource, kind, version)


def _sorted(current: Any, patched: Any) -> Any:
    """Return a patched object with its fields in the order of the server's patches: sorted, also in changed parts."""
    if not isinstance(patched, dict):
        return patched
    return {name: _in_order(current.get(name), patched[name]) for name in sorted(patched)}


def _in_order(current: Any, patched: Any) -> Any:
    if not isinstance(patched, dict) or isinstance(patched, Repeating) or patched == current:
        return patched
    return _sorted(current, patched) if isinstance(current, dict) else patched


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
    # The API checks it twice and reports it twice.
    causes = [Cause.invalid("metadata.uid", f'"{uid}"', "field is immutable")] * 2
    return statuses.invalid_object(served.resource, name, causes)
