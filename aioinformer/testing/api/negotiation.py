"""Content negotiation: the form of a response, from the Accept header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aioinformer.testing.api import statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served

Form = Literal["object", "partial", "table", "nothing"]

_FORMS: Mapping[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}
BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAM_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form of a response.

    Attributes:
        form: whole objects, their metadata only, a table, or a form that watch events cannot have.
        group_version: of metadata and tables, "meta.k8s.io/v1" or the beta.
        of_list: whether the metadata of a list is requested.
    """

    form: Form = "object"
    group_version: str = "meta.k8s.io/v1"
    of_list: bool = False


def negotiate(accept: str, *, watch: bool = False) -> Wanted:
    """Return the first form in an Accept header that the server supports.

    Args:
        accept: the header, "" for none.
        watch: whether the request is a watch.

    Raises:
        StatusError: 406, none is supported.
    """
    for media_type, params, _ in clauses(accept):
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        if "as" not in params:
            return Wanted()
        kind, version = params["as"], params.get("v", "")
        form = _FORMS.get(kind)
        if form is None or params.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            continue
        of_list = kind == "PartialObjectMetadataList"
        if watch and of_list:
            return Wanted("nothing")
        return Wanted(form, f"meta.k8s.io/{version}", of_list)
    raise _only(_STREAM_TYPES if watch else ("application/json",))


def _only(media_types: tuple[str, ...]) -> statuses.StatusError:
    return statuses.not_acceptable(f"only the following media types are accepted: {', '.join(media_types)}")


def clauses(accept: str) -> list[tuple[str, dict[str, str], float]]:
    """Return media types with their parameters and qualities, best first."""
    found = [_clause(text) for text in (accept or "*/*").split(",") if text.strip()]
    return sorted(found, key=lambda clause: -clause[2])


def check_partial(served: Served, wanted: Wanted, *, is_list: bool) -> None:
    """Refuse the metadata form of one object for a list, and the reverse. It is checked once the response is known.

    Raises:
        StatusError: 406; 500 for a custom resource that is requested as a list.
    """
    if wanted.form != "partial" or wanted.of_list == is_list:
        return
    if served.custom and wanted.of_list:
        raise statuses.StatusError(500, "", "content is not a list")
    kind = "PartialObjectMetadataList" if wanted.of_list else "PartialObjectMetadata"
    found = "a list" if is_list else "not a list"
    raise statuses.not_acceptable(f"you requested {kind}, but the requested object is {found}")


def media_type(header: str) -> str:
    """Return the media type of a Content-Type header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    name, *rest = text.split(";")
    params = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return name.strip().lower(), params, quality
