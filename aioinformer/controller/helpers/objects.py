"""The object of a request in full, even if the user's class or the storage of the informer leaves out a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioinformer.cache.objects.changes import evolve
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.views import View, json_of
from aioinformer.client.changes.patches import contains, document_of
from aioinformer.controller.request import NothingToDo, RetryAfter, TerminalError
from aioinformer.errors import DecodeError
from aioinformer.resources.keys import metadata_field, metadata_of

if TYPE_CHECKING:
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.request import Request, Result
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


def whole_objects(request: Request[Any], resource: Resource[Any] | None = None) -> ResourceClient[Any]:
    """Return the client of a resource, by default the request's, that returns objects without the user's class."""
    return request.client.resource(msgspec.structs.replace(resource or request.resource, decoder=None))


async def reconcile_undecodable(
    controller: Controller[Any], reason: str, version: str, request: Request[Any]
) -> Result | None:
    """Run the controller's handler for an object that its class cannot decode; without one, record an Event and park.

    The request gets the object as the server has it now: a mapping, by the decoder of its resource. The reason says why
    this version cannot be decoded; the version is "" if it could not be read.

    Raises:
        NothingToDo: the object is gone.
        RetryAfter: the cache does not show the current version yet.
        TerminalError: the controller has no handler, so the key is parked.
    """
    objects = request.client.resource(request.resource)
    # A list, which the inputs have the permission for.
    found = await objects.list("", {"metadata.name": request.name}, namespace=request.namespace)
    if not found:
        raise NothingToDo(f"{request.key} is gone")
    request.object = found[0]
    if version not in ("", request.object["metadata"].get("resourceVersion")):
        raise RetryAfter(1.0, f"the watch has not delivered the current version of {request.key}")
    error = DecodeError(f"{request.key} cannot be decoded: {reason}", key=str(request.key), version=version)
    if controller.undecodable_handler is not None:
        return await controller.undecodable_handler(request, error)
    request.event("Undecodable", str(error), type="Warning")
    raise TerminalError(str(error))


def is_being_deleted(obj: Any) -> bool:
    """Return whether an object has a deletionTimestamp."""
    if isinstance(obj, View) and b'"deletionTimestamp"' not in json_of(obj):  # decoding takes 5 us, and the search 0.2
        return False
    return bool(metadata_field(metadata_of(obj), "deletion_timestamp", "deletionTimestamp"))


def as_mapping(obj: Any) -> Any:
    """Return an object as a view or a mapping with the keys of the JSON."""
    return obj if isinstance(obj, (View, Mapping)) else document_of(obj)


def keeps(request: Request[Any], parts: Mapping[str, Any]) -> bool:
    """Return whether the class of the request's object keeps members such as these, in depth."""
    if isinstance(request.as_stored(), (View, Mapping)):
        return True
    probe = document_of(evolve(document_of(request.object), parts))
    try:
        return contains(document_of(from_document(request, probe)), probe)
    except DecodeError:  # the class has another idea of these members
        return False


def from_document(request: Request[T], document: Any) -> T:
    """Return a view or a mapping as listers of the request's resource return it: as the user's class, if there is one.

    Raises:
        DecodeError: the class refuses the object.
    """
    objects = ObjectType(request.resource)
    if isinstance(document, View) and request.resource.decoder is not None:
        document = document.to_dict()  # its record may share the body of another class
    return objects.to_view(objects.record_of(document))
