"""What a client wants to get, from its Accept header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aioinformer.testing import statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.served import Served

Form = Literal["object", "partial", "table"]

_FORMS: Mapping[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}
BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAM_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
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
        refused = f"only the following media types are accepted: {', '.join(BODY_TYPES)}"
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


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    name, *rest = text.split(";")
    params = dict(part.strip().partition("=")[::2] for part in rest)
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return name.strip().lower(), params, quality
