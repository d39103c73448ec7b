"""What a client wants to get, from its Accept header, and what it sent, from its Content-Type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import yaml

from aioinformer.testing import protobuf, statuses
from aioinformer.testing.encoding import decode
from aioinformer.testing.golike import json_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources import Resource
    from aioinformer.testing.served import Served

Form = Literal["object", "partial", "table"]

_FORMS: Mapping[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}
_BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAM_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_CUSTOM_BODY_TYPES = ("application/json", "application/yaml")
_SHOWN = 30
_UNACCEPTABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The representation of an answer.

    Attributes:
        form: whole objects, their metadata alone, or a table.
        yaml: whether as YAML.
        group_version: of the table, "meta.k8s.io/v1" or the beta.
    """

    form: Form = "object"
    yaml: bool = False
    group_version: str = "meta.k8s.io/v1"


def negotiate(accept: str, served: Served, *, watch: bool = False, is_list: bool = False) -> Wanted:
    """The first representation of an Accept header that the server has.

    Args:
        accept: the header, "" for none.
        served: what is asked for.
        watch: whether it is asked for as a watch.
        is_list: whether it is asked for as a list.

    Raises:
        StatusError: 406, none of them.
    """
    clauses = [_clause(text) for text in (accept or "*/*").split(",") if text.strip()]
    clauses.sort(key=lambda clause: -clause[2])
    refused = ""
    for media_type, params, _ in clauses:
        as_yaml = media_type == "application/yaml"
        if media_type not in ("application/json", "*/*", "application/*", "application/yaml") or (watch and as_yaml):
            continue
        kind = params.get("as", "")
        if not kind:
            return Wanted(yaml=as_yaml)
        version = params.get("v", "")
        if params.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1"):
            form = _FORMS.get(kind)
            if form == "partial" and (kind == "PartialObjectMetadataList") != is_list:
                form, refused = None, _wrong_partial(kind, served, is_list)
                break
            if form:
                return Wanted(form, as_yaml, f"meta.k8s.io/{version}")
        refused = f"only the following media types are accepted: {', '.join(_BODY_TYPES)}"
    if watch and any(clause[0] == "application/yaml" for clause in clauses):
        refused = f"only the following media types are accepted: {', '.join(_STREAM_TYPES)}"
    if refused:
        raise statuses.not_acceptable(refused)
    raise statuses.StatusError(406, "NotAcceptable", _UNACCEPTABLE, details={})


def _wrong_partial(kind: str, served: Served, is_list: bool) -> str:
    resource = served.resource
    name = f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
    if served.custom:
        name = "unstructured.Unstructured"
    return (
        f"you requested {kind}, but the requested object is {'a' if is_list else 'not a'} list "
        f"(*{name}{'List' if is_list else ''})"
    )


def media_type(header: str) -> str:
    """The type of a Content-Type header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def read_object(served: Served, data: bytes, content_type: str) -> dict[str, Any]:
    """The object in the body of a create or update request.

    Raises:
        StatusError: 400 or 415, as the API has it.
    """
    kind = media_type(content_type) or "application/json"
    accepted = _CUSTOM_BODY_TYPES if served.custom else _BODY_TYPES
    if kind not in accepted:
        raise statuses.unsupported_media_type(accepted)
    if kind == protobuf.MEDIA_TYPE:
        obj = _parse_protobuf(served.resource, data)
    else:
        obj = _parse(served, data, is_yaml=kind == "application/yaml")
    _check_kind(served, obj, data)
    return obj


def read_options(
    data: bytes, content_type: str, api_version: str = "meta.k8s.io/v1", kind: str = "DeleteOptions"
) -> Mapping[str, Any]:
    """What the body of a request says that is not about an object as it is stored; empty without a body.

    Args:
        data: the body.
        content_type: of the body.
        api_version: of what it has to be; options may also come in that of the resource which they are for.
        kind: what it has to be.

    Raises:
        StatusError: 400.
    """
    if not data:
        return {}
    sent_as = media_type(content_type) or "application/json"
    if sent_as not in _BODY_TYPES:
        raise statuses.unsupported_media_type(_BODY_TYPES)
    if sent_as == protobuf.MEDIA_TYPE:
        return _parse_protobuf_options(data, api_version, kind)
    if sent_as == "application/yaml":
        options = yaml.safe_load(data)
    else:
        reason = json_error(data)
        if reason:
            raise statuses.bad_request(f"couldn't get version/kind; json parse error: {reason}")
        options = decode(data)
    return options if isinstance(options, dict) else {}


def _parse_protobuf(resource: Resource[Any], data: bytes) -> dict[str, Any]:
    try:
        return protobuf.decode_protobuf(data, api_version=resource.api_version, kind=resource.kind)
    except protobuf.ProtobufError as error:
        if error.kind:
            version = error.api_version.rpartition("/")[2]
            why = f'{error.kind} in version "{version}" cannot be handled as a {resource.kind}: {error}'
        else:
            shown = _summary(data)
            why = f"the object provided is unrecognized (must be of type {resource.kind}): {error} ({shown})"
        raise statuses.bad_request(why) from None


def _parse_protobuf_options(data: bytes, api_version: str, kind: str) -> dict[str, Any]:
    try:
        options = protobuf.decode_protobuf(data, api_version=api_version, kind=kind)
    except protobuf.ProtobufError as error:
        raise statuses.bad_request(str(error)) from None
    if options["kind"] != kind:
        raise statuses.bad_request(
            f'no kind "{options["kind"]}" is registered for version "{options["apiVersion"]}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    return options


def _summary(data: bytes) -> str:
    start = data[:_SHOWN]
    text = start.decode("utf-8", "replace") if data[:1] == b"{" else start.hex()
    return f"{text} ..." if len(data) > _SHOWN else text or "<empty>"


def _parse(served: Served, data: bytes, *, is_yaml: bool) -> dict[str, Any]:
    kind = served.resource.kind
    prefix = (
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error"
    )
    if is_yaml:
        try:
            obj = yaml.safe_load(data)
        except yaml.YAMLError as error:
            raise statuses.bad_request(f"{prefix}: {error}") from None
        obj = _plain(obj)
    else:
        try:
            obj = decode(data)
        except ValueError:
            shown = data.decode("utf-8", "replace") if data else "<empty>"
            raise statuses.bad_request(f"{prefix}: {json_error(data)} ({shown})") from None
    if not isinstance(obj, dict):
        go_type = (
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
        json_type = {list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
        why = f"json: cannot unmarshal {json_type} into Go value of type {go_type} ({data.hex()})"
        raise statuses.bad_request(f"{prefix}: {why}")
    return obj


def _check_kind(served: Served, obj: Mapping[str, Any], data: bytes) -> None:
    resource = served.resource
    kind, version = obj.get("kind", ""), obj.get("apiVersion", "")
    if served.custom:
        shown = data.decode("utf-8", "replace")
        for name, value in (("Kind", kind), ("apiVersion", version)):
            if not value:
                raise statuses.bad_request(
                    f"the object provided is unrecognized (must be of type {resource.kind}): "
                    f"Object '{name}' is missing in '{shown}' ({shown})"
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
    if version and version != resource.api_version:
        raise statuses.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: no kind "{kind}" is registered '
            f'for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if kind and kind != resource.kind:
        version = version or resource.api_version
        internal = resource.group or "core"
        raise statuses.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"converting ({version.replace('/', '.')}.{kind}) to ({internal}.{resource.kind}): unknown conversion"
        )


def _plain(value: Any) -> Any:
    """YAML's own types as JSON has them: keys are strings, dates are text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    name, *rest = text.split(";")
    params = dict(part.strip().partition("=")[::2] for part in rest)
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return name.strip().lower(), params, quality
