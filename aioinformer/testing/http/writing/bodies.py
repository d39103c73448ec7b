"""Decode the bodies and the query parameters of writes, and check that they fit the URL."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import json_type
from aioinformer.testing.api.protobuf import MEDIA_TYPE, ProtobufError, decode_protobuf
from aioinformer.testing.api.responses import BODY_TYPES, media_type
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.ownership.managers import LONGEST_MANAGER, Manager, manager_name
from aioinformer.testing.patches.media_types import JSONError, decode_json
from aioinformer.testing.schemas.openapi_v3 import patch_schema
from aioinformer.testing.schemas.values import FieldValueError, decode_values
from aioinformer.transport.auth.yaml_documents import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served

_DIRECTIVES = ("", "Ignore", "Strict", "Warn")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_CUSTOM_BODY_TYPES = ("application/json", "application/yaml")


class WriteOptions(NamedTuple):
    """The options of one write.

    Attributes:
        by: the field manager, from `fieldManager` or the user agent.
        directive: what to do about unknown and repeated fields: "Ignore", "Warn" or "Strict".
        force: let an apply take fields from other managers.
        whole: require all required fields; always true for clients.
        sent: what webhooks see of them: those that the client has sent.
    """

    by: Manager
    directive: str
    dry_run: bool = False
    force: bool = False
    whole: bool = True
    sent: Mapping[str, Any] = MappingProxyType({})


def write_options(
    request: web.BaseRequest, target: Target, served: Served, kind: str, *, applies: bool = False
) -> WriteOptions:
    """Return the options of a request.

    Args:
        kind: the kind of options, such as "CreateOptions".
        applies: whether the request is a server-side apply.
    """
    query = target.query
    if causes := list(_faults(query, kind, applies)):
        raise statuses.invalid(kind, "meta.k8s.io", "", causes)
    name = manager_name(query.get("fieldManager", ""), request.headers.get("User-Agent", ""))
    by = Manager(name, "Apply" if applies else "Update", served.resource.api_version, target.subresource)
    directive = query.get("fieldValidation", "") or "Warn"
    sent: dict[str, Any] = {
        option: query[option] for option in ("fieldManager", "fieldValidation") if query.get(option)
    }
    if "dryRun" in query:
        sent["dryRun"] = [query["dryRun"]]
    return WriteOptions(by, directive, "dryRun" in query, query.get("force", "") in _TRUE, sent=sent)


def dry_run_faults(query: Mapping[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with `dryRun`."""
    value = query.get("dryRun", "All")
    if value != "All":
        yield Cause.unsupported("dryRun", f'["{value}"]', ("All",))


def _faults(query: Mapping[str, str], kind: str, applies: bool) -> Iterator[Cause]:
    manager = query.get("fieldManager", "")
    directive = query.get("fieldValidation", "")
    if applies and not manager:
        yield Cause.required("fieldManager", "is required for apply patch")
    elif kind == "PatchOptions" and not applies and query.get("force"):
        yield Cause.forbidden("force", "may not be specified for non-apply patch")
    yield from _manager_faults(manager)
    yield from dry_run_faults(query)
    if directive not in _DIRECTIVES:
        yield Cause.unsupported("fieldValidation", f'"{directive}"', _DIRECTIVES)


def _manager_faults(manager: str) -> Iterator[Cause]:
    if len(manager.encode()) > LONGEST_MANAGER:
        yield Cause("FieldValueTooLong", "fieldManager", f"Too long: may not be more than {LONGEST_MANAGER} bytes")
    for at, character in enumerate(manager):
        if not character.isprintable():
            shown = json.dumps(manager, ensure_ascii=False)
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            yield Cause.invalid("fieldManager", shown, why)
            return


def read_object(served: Served, data: bytes, content_type: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in the body of a create or update request, and the faults that a strict decoder reports."""
    resource = served.resource
    accepted = _CUSTOM_BODY_TYPES if served.custom else BODY_TYPES
    obj, repeated = _decoded(data, content_type, accepted, resource.api_version, resource.kind)
    if obj is None and not served.custom:
        return {}, repeated
    if fault := header_fault(obj):
        raise statuses.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {fault}")
    _check_kind(served, obj)
    return obj, repeated


def read_options(
    data: bytes, content_type: str, api_version: str = "meta.k8s.io/v1", kind: str = "DeleteOptions"
) -> Mapping[str, Any]:
    """Return the options in the body of a request; empty without a body.

    Args:
        api_version: required apiVersion; that of the resource is accepted as well.
    """
    options, _ = _decoded(data, content_type, BODY_TYPES, api_version, kind) if data else ({}, [])
    if options is None:
        return {}
    if fault := header_fault(options):
        raise statuses.bad_request(fault)
    if (found := options.get("kind") or kind) != kind:
        raise statuses.bad_request(_not_registered(found, options.get("apiVersion") or api_version))
    if (schema := patch_schema("v1", kind)) is not None:
        try:
            decode_values(options, schema.schemas, schema.node)
        except FieldValueError as error:
            raise statuses.bad_request(str(error)) from None
    checked: dict[str, Any] = options
    return checked


def read_configuration(served: Served, patch: bytes, directive: str) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration in the body of an apply request, and warnings about it.

    Args:
        patch: the body: YAML, which includes JSON. Only the first of several documents counts.
    """
    wanted, repeated = _from_yaml(patch)
    if wanted is None:
        wanted = {}
    if not isinstance(wanted, dict):
        raise statuses.bad_request(f"error decoding YAML: it must be an object, not {json_type(wanted)}")
    resource = served.resource
    header = (wanted.get("apiVersion"), wanted.get("kind"))
    if header != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {header[0]}, Kind={header[1]}")
    if isinstance(metadata := wanted.get("metadata"), dict) and metadata.get("managedFields"):
        raise statuses.bad_request("metadata.managedFields must be nil")
    if repeated and directive == "Strict":
        raise statuses.bad_request(f"error strict decoding YAML: {', '.join(repeated)}")
    return wanted, [] if directive == "Ignore" else repeated


def name_configuration(wanted: dict[str, Any], name: str, *, exists: bool) -> None:
    """Set the name of an applied configuration to that of the URL.

    Args:
        wanted: is changed; it may omit the name if the object exists.

    Raises:
        StatusError: 400, it has another name, or none and the object does not exist.
    """
    metadata = wanted.get("metadata")
    if metadata is None:
        metadata = {}
        wanted["metadata"] = metadata
    if not isinstance(metadata, dict):
        return
    own_name = metadata.get("name")
    if not own_name:
        if not exists:
            why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
            raise statuses.bad_request(why)
        metadata["name"] = name
    elif isinstance(own_name, str) and own_name != name:
        raise statuses.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")


def header_fault(obj: Any) -> str:
    """Return why the kind of an object cannot be read; "" if it can."""
    if not isinstance(obj, dict):
        return f"couldn't get version/kind: the body must be an object, not {json_type(obj)}"
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str | None):
            return f"couldn't get version/kind: {field} must be a string, not {json_type(obj[field])}"
    return ""


def of_another_kind(resource: Resource[Any], kind: str, version: str) -> str:
    """Return why an object of another kind does not fit this resource."""
    if patch_schema(version, kind) is None:
        return _not_registered(kind, version)
    return f"an object of {version}, Kind={kind} cannot be stored as {resource.api_version}, Kind={resource.kind}"


def _decoded(
    data: bytes, content_type: str, accepted: tuple[str, ...], api_version: str, kind: str
) -> tuple[Any, list[str]]:
    sent_as = media_type(content_type) or "application/json"
    if sent_as not in accepted:
        raise statuses.unsupported_media_type(accepted)
    try:
        if sent_as == MEDIA_TYPE:
            return decode_protobuf(data, api_version=api_version, kind=kind), []
        return _from_yaml(data) if sent_as == "application/yaml" else decode_json(data)
    except (JSONError, ProtobufError) as error:
        raise statuses.bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None


def _from_yaml(data: bytes) -> tuple[Any, list[str]]:
    """Return the first document, and a message for each key that a mapping repeats."""
    try:
        document = next(documents(data), None)
    except yaml.YAMLError as error:
        raise statuses.bad_request(f"error decoding YAML: {error}") from None
    if document is None:
        return None, []
    return document.value, [f'line {line}: key "{key}" already set in map' for line, key in document.repeated]


def _check_kind(served: Served, obj: Mapping[str, Any]) -> None:
    resource = served.resource
    kind = obj.get("kind") or ""
    version = obj.get("apiVersion") or ""
    if served.custom:
        if not kind:
            raise statuses.bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
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
    kind = kind or resource.kind
    version = version or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        raise statuses.bad_request(of_another_kind(resource, kind, version))


def _not_registered(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}"'
