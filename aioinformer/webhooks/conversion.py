"""`Conversions`: answers the conversion reviews of the API server.

A review has objects in one or several versions, and the version that they are wanted in. It has one result: if one
object cannot be converted, none is, and the list, watch or write that needs it fails. The message names all of them.

A conversion needs no cache, and does not wait for the start of a manager: the caches of the manager itself may be
filled from lists that are converted.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from aioinformer.crds.conversion.converter import Converter, unread_annotation
from aioinformer.crds.conversion.steps import ConversionError
from aioinformer.errors import UsageError
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from aioinformer.crds.declaration import CustomResource

_log = get_logger("aioinformer.webhooks")

#: The end of the path of the requests.
PATH: Final = "convert"
#: Bytes of a review: all objects of a list are in one.
LARGEST: Final = 24 * 2**20
_VERSION: Final = "apiextensions.k8s.io/v1"
#: Seconds for which the loop is blocked at most, but for a single object.
_SLICE: Final = 0.005
#: Objects that a message names.
_NAMED: Final = 50


class _Request(msgspec.Struct, rename={"desired": "desiredAPIVersion"}):
    uid: str
    desired: str
    objects: list[msgspec.Raw]


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    metadata: dict[str, Any]


class Reviewed(NamedTuple):
    """The answer to a review.

    Attributes:
        status: of HTTP.
        body: the review with its response, or a text.
        failure: why objects cannot be converted; "" if all of them are, and if there is no review.
    """

    status: int
    body: bytes
    failure: str = ""


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_request = msgspec.json.Decoder(_Request).decode
_decode_named = msgspec.json.Decoder(_Named).decode


class Conversions:
    """The resources whose versions a manager converts."""

    def __init__(self) -> None:
        #: By group and kind.
        self._converters: dict[tuple[str, str], Converter] = {}
        self._errors = RepeatedErrors(_log)

    def declare(self, resource: CustomResource[Any]) -> None:
        """Convert between the versions of a resource.

        Raises:
            UsageError: no version of it declares how it is converted.
        """
        if not resource.converts:
            raise UsageError(f"{resource.kind}: no version of it declares conversion=[…]")
        self._converters[resource.group, resource.kind] = Converter(resource)

    def declared(self) -> list[CustomResource[Any]]:
        """Return the resources as they were declared, with their other versions."""
        return [each.declared for _, each in sorted(self._converters.items())]

    def resources(self) -> list[CustomResource[Any]]:
        """Return the resources in their stored versions, by group and kind."""
        return [each.resource for _, each in sorted(self._converters.copy().items())]

    def has(self, group_resource: str) -> bool:
        """Return whether objects of a resource may need a conversion."""
        return any(each.resource.group_resource == group_resource for each in self._converters.copy().values())

    async def answer(self, body: bytes) -> Reviewed:
        """Answer a ConversionReview."""
        try:
            review = _decode_review(body)
            if (review.api_version, review.kind) != (_VERSION, "ConversionReview"):
                given = f"{review.api_version or 'no apiVersion'} {review.kind or 'and no kind'}"
                return Reviewed(400, f"expected a ConversionReview of {_VERSION}, not {given}\n".encode())
            request = _decode_request(review.request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Reviewed(400, f"the body is no ConversionReview: {error}\n".encode())
        converted: list[msgspec.Raw] = []  # encoded at once: a list may be large
        failed: list[str] = []
        began = time.monotonic()
        for place, raw in enumerate(request.objects):
            if time.monotonic() - began > _SLICE:
                await asyncio.sleep(0)
                began = time.monotonic()
            try:
                document = _decode_object(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                failed.append(f"{_name_of_part(raw, place)}: it cannot be decoded: {error}")
                continue
            try:
                found = self._convert(document, request.desired)
            except ConversionError as error:
                failed.append(f"{_name(document)}: {error}")
            else:
                converted.append(msgspec.Raw(msgspec.json.encode(found)))
        if failed:
            message = self._message(request, failed)
            return Reviewed(200, _response(request.uid, [], message), message)
        return Reviewed(200, _response(request.uid, converted, ""))

    def _convert(self, document: dict[str, Any], version: str) -> dict[str, Any]:
        group = version.rpartition("/")[0]
        kind = str(document.get("kind"))
        converter = self._converters.get((group, kind))
        if converter is None:
            known = ", ".join(f"{kind} of {group}" for group, kind in self._converters) or "none"
            raise ConversionError(f"this manager converts {known}, not {kind} of {group}")
        found = converter.convert(document, version)
        annotation, reason = unread_annotation(found)
        if reason:
            key = f"{kind} {_name(document)}"
            field = f"metadata.annotations[{annotation}]"
            error = ConversionError(f"{annotation} {reason}")
            text = "%s: %s of %s %s; what it kept is not restored"
            self._errors.report(annotation, error, text, version, field, key, reason, key=key, lines=10, once=True)
        return found

    def _message(self, request: _Request, failed: list[str]) -> str:
        more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        named = "; ".join(failed[:_NAMED])
        message = f"{len(failed)} of {len(request.objects)} objects cannot be converted: {named}{more}"
        error = ConversionError(message)
        self._errors.report("conversion", error, "conversion to %s: %s", request.desired, message)
        return message


def _name(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return "/".join(filter(None, (str(found.get("namespace") or ""), str(found.get("name") or "<unnamed>"))))


def _name_of_part(raw: msgspec.Raw, place: int) -> str:
    """Return the name of an object that cannot be decoded as a whole, or where it is in the review."""
    try:
        return _name({"metadata": _decode_named(raw).metadata})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"objects[{place}]"


def _response(uid: str, objects: list[msgspec.Raw], failure: str) -> bytes:
    result = {"status": "Failure", "message": failure} if failure else {"status": "Success"}
    response = {"uid": uid, "convertedObjects": objects, "result": result}
    return msgspec.json.encode({"kind": "ConversionReview", "apiVersion": _VERSION, "response": response})
