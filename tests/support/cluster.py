"""A transport to collections in memory, by URL path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.reflector import ListOptions
from aioinformer.resources import BUILTIN_RESOURCES
from tests.support.collection import Collection, Response

if TYPE_CHECKING:
    from aioinformer import Resource
    from aioinformer.transport import HttpRequest


class Cluster:
    """Collections by the path of their URL; missing ones are empty.

    Attributes:
        requests: all requests so far.
    """

    def __init__(self, *collections: Collection) -> None:
        self.requests: list[HttpRequest] = []
        self._collections = {collection.resource.path(): collection for collection in collections}

    async def request(self, request: HttpRequest) -> Response:
        """Implement `Transport`."""
        self.requests.append(request)
        query = dict(request.query)
        options = ListOptions(
            resource_version=query.get("resourceVersion", ""),
            limit=int(query.get("limit", 0)),
            continue_token=query.get("continue", ""),
            watch="watch" in query,
            send_initial_events="sendInitialEvents" in query,
        )
        return await self._collections.setdefault(request.path, Collection()).request(options)

    def selections(self) -> set[tuple[str, str, str]]:
        """Return path, label selector and field selector of all requests."""
        queries = [(request.path, dict(request.query)) for request in self.requests]
        return {(path, query.get("labelSelector", ""), query.get("fieldSelector", "")) for path, query in queries}

    def paths(self) -> list[str]:
        """Return the requested paths, sorted, without repetitions."""
        return sorted({request.path for request in self.requests})


def built_in(gvr: str) -> Resource[Any]:
    """Return a resource by its name, such as "apps/v1/deployments" or "v1/pods"."""
    *group, version, plural = gvr.split("/")
    name = ("".join(group), version, plural)
    return next(each for each in BUILTIN_RESOURCES if (each.group, each.version, each.plural) == name)
