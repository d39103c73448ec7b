"""Decode the bodies of requests, and check that they fit the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.golike import json_error
from aioinformer.testing.api.negotiation import BODY_TYPES, media_type
from aioinformer.testing.api.protobuf import messages
from aioinformer.testing.patches.decoding import JSONError, decode_json
from aioinformer.testing.patches.json_patches import json_type
from aioinformer.testing.patches.repeated_keys import has_repeated, repeated_in_json, repeated_in_yaml
from aioinformer.testing.schemas.go_values import GoValueError, decode_values
from aioinformer.testing.schemas.openapi_v3 import patch_schema
from aioinformer.transport.auth.yaml_documents import load_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.api.served import Served

_CUSTOM_BODY_TYPES = ("application/json", "application/yaml")
_SHOWN = 30
_NO_HEADER = "couldn't get version/kind; json parse error"
#: The Go type into which the API reads an object before its kind is known.
HEADER_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def read_object(served: Served, data: bytes, content_type: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in the body of a create or update request, and the faults that a strict decoder reports.

    Raises:
        StatusError: 400 or 415, as in the API.
    """
    sent_as = media_type(content_type) or "application/json"
    accepted = _CUSTOM_BODY_TYPES if served.custom else BODY_TYPES
    if sent_as not in accepted:
        raise statuses.unsupported_media_type(accepted)
    repeated: list[str] = []
    if sent_as == messages.MEDIA_TYPE:
        obj = _parse_protobuf(served.resource, data)
    elif sent_as == "application/yaml":
        obj = _parse(served, data, is_yaml=True)
        repeated = repeated_in_yaml(data)
    else:
        obj = _parse(served, data, is_yaml=False)
        if has_repeated(data):
            obj, repeated = repeated_in_json(data, merged=not served.custom)
    _check_kind(served, obj, data)
    return obj, repeated


def read_options(
    data: bytes, content_type: str, api_version: str = "meta.k8s.io/v1", kind: str = "DeleteOptions"
) -> Mapping[str, Any]:
    """Return the options in the body of a request; empty without a body.

    Args:
        data: the body.
        content_type: of the body.
        api_version: required apiVersion; that of the resource is accepted as well.
        kind: required kind.

    Raises:
        StatusError: 400.
    """
    if not data:
        return {}
    sent_as = media_type(content_type) or "application/json"
    if sent_as not in BODY_TYPES:
        raise statuses.unsupported_media_type(BODY_TYPES)
    if sent_as == messages.MEDIA_TYPE:
        return _parse_protobuf_options(data, api_version, kind)
    if sent_as == "application/yaml":
        try:
            options = plain_values(load_yaml(data))
        except yaml.YAMLError as error:
            raise statuses.bad_request(f"{_NO_HEADER}: {error}") from None
    else:
        reason = json_error(data)
        if reason:
            raise statuses.bad_request(f"{_NO_HEADER}: {reason}")
        options = decode(data)
    if options is None:
        return {}
    if why := _header_fault(options):
        raise statuses.bad_request(f"{_NO_HEADER}: {why}")
    if (found := options.get("kind") or kind) != kind:
        raise statuses.bad_request(_not_registered(found, options.get("apiVersion") or api_version))
    if (schema := patch_schema("v1", kind)) is not None:
        try:
            decode_values(options, schema.schemas, schema.node, kind)
        except GoValueError as error:
            raise statuses.bad_request(str(error)) from None
    checked: dict[str, Any] = options
    return checked


def _parse_protobuf(resource: Resource[Any], data: bytes) -> dict[str, Any]:
    try:
        return messages.decode_protobuf(data, api_version=resource.api_version, kind=resource.kind)
    except messages.ProtobufError as error:
        if error.kind:
            version = error.api_version.rpartition("/")[2]
            why = f'{error.kind} in version "{version}" cannot be handled as a {resource.kind}: {error}'
        else:
            shown = _summary(data)
            why = f"the object provided is unrecognized (must be of type {resource.kind}): {error} ({shown})"
        raise statuses.bad_request(why) from None


def _parse_protobuf_options(data: bytes, api_version: str, kind: str) -> dict[str, Any]:
    try:
        options = messages.decode_protobuf(data, api_version=api_version, kind=kind)
    except messages.ProtobufError as error:
        raise statuses.bad_request(str(error)) from None
    if options["kind"] != kind:
        raise statuses.bad_request(_not_registered(options["kind"], options["apiVersion"]))
    return options


def _summary(data: bytes) -> str:
    start = data[:_SHOWN]
    text = start.decode("utf-8", "replace") if data[:1] == b"{" else start.hex()
    return f"{text} ..." if len(data) > _SHOWN else text or "<empty>"


def _parse(served: Served, data: bytes, *, is_yaml: bool) -> dict[str, Any]:
    kind = served.resource.kind
    prefix = f"the object provided is unrecognized (must be of type {kind}): {_NO_HEADER}"
    if is_yaml:
        try:
            obj = load_yaml(data)
        except yaml.YAMLError as error:
            raise statuses.bad_request(f"{prefix}: {error}") from None
        obj = plain_values(obj)
    else:
        try:
            obj = decode(data)
        except ValueError:
            if why := json_error(data):
                raise statuses.bad_request(f"{prefix}: {why} ({_summary(data)})") from None
            obj = _read_as_go(served, data)
    if obj is None and not served.custom:
        return {}
    if why := _header_fault(obj):
        raise statuses.bad_request(f"{prefix}: {why} ({_summary(data)})")
    found: dict[str, Any] = obj
    return found


def _read_as_go(served: Served, data: bytes) -> Any:
    """Decode as leniently as Go, such as text that is not UTF-8; numbers that are too large are refused."""
    kind = served.resource.kind
    try:
        return decode_json(data)[0]
    except JSONError as error:
        prefix = f'{kind} in version "{served.resource.version}" cannot be handled as a {kind}'
        raise statuses.bad_request(f"{prefix}: {error}") from None


def _header_fault(obj: Any) -> str:
    """Return why Go cannot read the kind of an object; "" if it can."""
    if not isinstance(obj, dict):
        return f"json: cannot unmarshal {json_type(obj)} into Go value of type {HEADER_TYPE}"
    for field in obj:
        if field in ("kind", "apiVersion") and not isinstance(obj[field], str | None):
            return f"json: cannot unmarshal {json_type(obj[field])} into Go struct field .{field} of type string"
    return ""


def _check_kind(served: Served, obj: Mapping[str, Any], data: bytes) -> None:
    resource = served.resource
    kind, version = obj.get("kind", ""), obj.get("apiVersion", "")
    if served.custom:
        if not kind:
            raise statuses.bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): "
                f"Object 'Kind' is missing in '{data.decode('utf-8', 'replace')}' ({_summary(data)})"
            )
        if version != resource.api_version:
            raise statuses.bad_request(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        if kind != resource.kind:
            cause = statuses.Cause.invalid("kind", f'"{kind}"', f"must be {resource.kind}")
            name = str((obj.get("metadata") or {}).get("name") or "")
            raise statuses.invalid(kind, resource.group, name, [cause])
        return
    kind, version = kind or resource.kind, version or resource.api_version
    if (kind, version) == (resource.kind, resource.api_version):
        return
    prefix = f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {resource.kind}'
    raise statuses.bad_request(f"{prefix}: {of_another_kind(resource, kind, version)}")


def of_another_kind(resource: Resource[Any], kind: str, version: str) -> str:
    """Return why an object of another kind does not fit this resource."""
    if patch_schema(version, kind) is None:
        return _not_registered(kind, version)
    internal = resource.group.partition(".")[0] or "core"
    return f"converting ({version.rpartition('/')[2]}.{kind}) to ({internal}.{resource.kind}): unknown conversion"


def _not_registered(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'


def plain_values(value: Any) -> Any:
    """Convert YAML's own types to JSON's: keys become strings, dates become text."""
    if isinstance(value, dict):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)
