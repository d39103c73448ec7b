"""Conversion by webhook: what is asked about custom resources, and what of the answer is accepted.

Everything that reads or writes an object is synchronous, and a webhook is not. So a conversion is looked up among those
that are known to the request. If it is missing, `ConversionNeeded` ends the work, which has changed nothing so far; the
shell asks the webhook, and the work begins anew. Of the metadata, a result depends on labels and annotations only: uids
and times are others each time.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from aioinformer.errors import UsageError
from aioinformer.testing.api.encoding import decode, encode_sorted
from aioinformer.testing.api.statuses import internal_error
from aioinformer.testing.api.validation import labelling_causes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import StatusError

API_VERSION: Final = "apiextensions.k8s.io/v1"
KNOWN: ContextVar[dict[tuple[str, bytes], bytes] | None] = ContextVar("known_conversions", default=None)
"""The conversions that the current request knows; None outside of requests, where no webhook is called."""
_FREE: Final = ("labels", "annotations")


class Stored(Protocol):
    """An object as it is stored."""

    @property
    def body(self) -> bytes: ...


class ConversionNeeded(Exception):
    """The work needs conversions that are not known.

    Attributes:
        by: the conversions of the definition.
        objects: what to convert, all of one kind.
        api_version: into which version.
        is_list: whether a list needs them.
    """

    def __init__(
        self, by: WebhookConversion, objects: Sequence[Mapping[str, Any]], api_version: str, *, is_list: bool = False
    ) -> None:
        super().__init__(f"{len(objects)} objects to {api_version}")
        self.by = by
        self.objects = objects
        self.api_version = api_version
        self.is_list = is_list


class WebhookConversion:
    """The conversions of one definition.

    Args:
        webhook: of the definition.
        versions: all of them, by API version, as if each were the stored one; those that are not served, too.

    Attributes:
        webhook: as given.
        versions: as given.
        replaced: whether the definition has changed since; then watches end, as with kube-apiserver.
    """

    def __init__(self, webhook: Mapping[str, Any], versions: Mapping[str, Served]) -> None:
        self.webhook = webhook
        self.versions = versions
        self.replaced = False
        # By API version: what lists and watches have read already, as in the cache of kube-apiserver.
        self._forms: dict[str, WeakKeyDictionary[Stored, bytes]] = {each: WeakKeyDictionary() for each in versions}

    def convert(self, document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
        """Return an object in another version.

        Raises:
            ConversionNeeded: it is not known.
            StatusError: 500, the object has a version that the definition does not have any more.
            UsageError: no request is under way.
        """
        source = document["apiVersion"]
        if source == api_version:
            return dict(document)
        if source not in self.versions:
            raise internal_error(f"request to convert CR from an invalid group/version: {source}")
        known = KNOWN.get()
        if known is None:
            raise UsageError(
                f"a webhook converts {document['kind']} from {source} to {api_version}, and the methods "
                "of a server call no webhook: name the version that is stored, or send a request"
            )
        found = known.get((api_version, _content(document)))
        if found is None:
            raise ConversionNeeded(self, [document], api_version)
        return _with_metadata(decode(found), document)

    def note(self, document: Mapping[str, Any], converted: Mapping[str, Any]) -> None:
        """Note the result of a conversion for the current request."""
        known = KNOWN.get()
        assert known is not None
        known[converted["apiVersion"], _content(document)] = encode_sorted(converted)

    def form(self, record: Stored, api_version: str) -> bytes | None:
        """Return what lists and watches read of an object; None if it has not been converted."""
        return self._forms[api_version].get(record)

    def note_form(self, record: Stored, api_version: str, body: bytes) -> None:
        """Note what lists and watches read of an object, for as long as it is kept."""
        self._forms[api_version][record] = body

    def accepted(self, needed: ConversionNeeded, uid: str, review: Any) -> list[dict[str, Any]]:
        """Return the objects of an answer, with the metadata that a conversion cannot change.

        Args:
            uid: of the request.
            review: the answer, as JSON has it.

        Raises:
            StatusError: 500, the answer is none; the message is that of kube-apiserver.
        """
        found = _response(needed, uid, review)
        if len(found) != len(needed.objects):
            raise failure(needed, f"returned {len(found)} objects, expected {len(needed.objects)}")
        pairs = enumerate(zip(needed.objects, found, strict=True))
        return [_checked(needed, index, before, after) for index, (before, after) in pairs]


def failure(needed: ConversionNeeded, why: str) -> StatusError:
    """Return the error of a conversion that has failed."""
    first = needed.objects[0]
    group, _, version = str(first["apiVersion"]).rpartition("/")
    kind = f"{first['kind']}List" if needed.is_list else first["kind"]
    return internal_error(f"conversion webhook for {group}/{version}, Kind={kind} {why}")


def _response(needed: ConversionNeeded, uid: str, review: Any) -> list[Any]:
    if not isinstance(review, dict):
        raise failure(needed, f"failed: couldn't get version/kind; the answer is {type(review).__name__}, no object")
    kind = (review.get("apiVersion"), review.get("kind"))
    if kind != (API_VERSION, "ConversionReview"):
        expected = f"{API_VERSION}, Kind=ConversionReview"
        raise failure(needed, f"failed: expected webhook response of {expected}, got {kind[0]}, Kind={kind[1]}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise failure(needed, "failed: no response provided")
    if response.get("uid") != uid:
        raise failure(needed, f'failed: expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result") or {}
    status = result.get("status") or ""
    if status != "Success":
        why = result.get("message") or f"response.result.status was '{status}', not 'Success'"
        raise failure(needed, f"failed: {why}")
    return list(response.get("convertedObjects") or ())


def _checked(needed: ConversionNeeded, index: int, before: Mapping[str, Any], after: Any) -> dict[str, Any]:
    at = f"returned invalid converted object at index {index}: "
    alone = "returned invalid object: "
    if not isinstance(after, dict):
        raise failure(needed, f"{at}it is {type(after).__name__}, no object")
    form = at if needed.is_list else f"returned invalid object at index {index}: "
    for field, expected, what in (
        ("apiVersion", needed.api_version, "groupVersion"),
        ("kind", before["kind"], "kind"),
    ):
        if after.get(field) != expected:
            raise failure(needed, f"{form}invalid {what} (expected {expected}, received {after.get(field) or ''})")
    given = before.get("metadata") or {}
    metadata = after.get("metadata") or {}
    if not isinstance(metadata, dict):
        metadata = {}
    for field, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        old = given.get(field) or ""
        new = metadata.get(field) or ""
        if old != new:
            raise failure(needed, f"{at if needed.is_list else alone}must have the same {shown}: {old} != {new}")
    place = f" in object at index {index}" if needed.is_list else ""
    for why in _metadata_faults(after):
        raise failure(needed, f"returned invalid metadata{place}: {why}")
    return _with_metadata(after, before)


def _metadata_faults(after: Mapping[str, Any]) -> Iterable[str]:
    if "metadata" not in after:
        yield "missing metadata in converted object"
        return
    for field in _FREE:
        values = after["metadata"].get(field)
        if values is not None and not isinstance(values, dict):
            yield f"metadata.{field} must be a map, but is {_go_type(values)} in converted object"
            continue
        for name, value in (values or {}).items():
            if not isinstance(value, str):
                yield f"metadata.{field}[{name}] must be a string, but is {_go_type(value)} in converted object"
    for cause in labelling_causes(after["metadata"]):
        yield f"{cause.field}: {cause.message}"


def _go_type(value: Any) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def _with_metadata(converted: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a converted object with the metadata of the one that it was made of, but for labels and annotations."""
    if "metadata" not in document:
        return {name: value for name, value in converted.items() if name != "metadata"}
    metadata = {name: value for name, value in document["metadata"].items() if name not in _FREE}
    free = converted.get("metadata") or {}
    return {**converted, "metadata": metadata | {name: free[name] for name in _FREE if free.get(name)}}


def _content(document: Mapping[str, Any]) -> bytes:
    metadata = document.get("metadata") or {}
    return encode_sorted({**document, "metadata": {name: metadata[name] for name in _FREE if metadata.get(name)}})
