"""Dispatch requests about resources to the handler of their verb and subresource."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from aioinformer.testing.api import statuses
from aioinformer.testing.api.responses import DEPRECATED, negotiate
from aioinformer.testing.api.routes import check_name
from aioinformer.testing.http.converting import Conversions
from aioinformer.testing.http.reading.reads import Reads

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.faults import FaultSet
    from aioinformer.testing.http.reading.streams import WatchStream
    from aioinformer.testing.http.writing.writes import Writes
    from aioinformer.testing.state.cluster import Cluster

#: Subresources of pods that a kubelet answers.
_STREAMS = frozenset({"attach", "exec", "log", "portforward"})
#: Subresources of pods that are only posted.
_ACTIONS = frozenset({"binding", "eviction"})
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_WITH_OTHER_KINDS = frozenset({"scale", "token"}) | _ACTIONS
_WRITTEN_AS_PARTS = frozenset({"status", "finalize", "approval", "resize", "ephemeralcontainers"})


class ResourceHandlers:
    """Answer all requests about resources."""

    def __init__(
        self,
        cluster: Cluster,
        access: Access,
        faults: FaultSet,
        *,
        bookmark_interval: float,
        version_wait: float,
        watch_timeout: float,
        rng: random.Random,
        webhook_services: Mapping[str, str],
    ) -> None:
        self._cluster = cluster
        self._webhook_services = webhook_services
        self._conversions = Conversions(webhook_services)
        self._reads = Reads(
            cluster,
            faults,
            bookmark_interval=bookmark_interval,
            version_wait=version_wait,
            watch_timeout=watch_timeout,
            rng=rng,
            conversions=self._conversions,
        )
        self._access = access

    @property
    def streams(self) -> set[WatchStream]:
        """The open watches."""
        return self._reads.streams

    @cached_property
    def _writes(self) -> Writes:
        # Loaded by the first write: most servers in tests are only read over HTTP.
        from aioinformer.testing.http.writing.writes import Writes

        return Writes(self._cluster, self._access, self._webhook_services, self._conversions)

    async def answer(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        """Answer a request.

        Raises:
            StatusError: the API refuses the request.
        """
        served = target.served
        verb = target.verb
        assert served is not None
        self._conversions.begin()
        if served.deprecated:
            request[DEPRECATED] = served.deprecated
        if target.subresource in _STREAMS and served.resource.group_resource == "pods":
            return await self._cluster.admission.answer(request, target, served, None)
        if (
            target.subresource
            and target.subresource not in _WITH_OTHER_KINDS
            and target.subresource not in _WRITTEN_AS_PARTS
        ):
            message = f"this server does not implement {served.resource.plural}/{target.subresource}"
            raise statuses.StatusError(501, "NotImplemented", message)
        wanted = negotiate(request.headers.get("Accept", ""), watch=verb == "watch")
        if verb not in ("update", "patch"):
            check_name(target.name)
        if target.subresource == "scale":
            from aioinformer.testing.http.writing.subresources import Scaling

            return await Scaling(self._cluster, self._writes.webhooks).answer(request, target, served, wanted)
        if target.subresource == "token":
            from aioinformer.testing.http.writing.subresources import TokenRequests

            return await TokenRequests(self._cluster, self._access).answer(request, target, served, wanted)
        if _is_answered_only(served, target):
            return await self._cluster.admission.answer(request, target, served, wanted)
        match verb:
            case "list":
                return await self._reads.list(request, target, served, wanted)
            case "watch":
                return await self._reads.watch(request, target, served, wanted)
            case "get":
                return await self._reads.get(request, target, served, wanted)
            case "create":
                return await self._writes.create(request, target, served, wanted)
            case "update":
                return await self._writes.update(request, target, served, wanted)
            case "patch":
                return await self._writes.patch(request, target, served, wanted)
            case "delete":
                return await self._writes.delete(request, target, served, wanted)
            case _:
                return await self._writes.delete_collection(request, target, served, wanted)


def _is_answered_only(served: Served, target: Target) -> bool:
    """Return whether a request stores nothing of its own: a review, or an action on a pod."""
    if target.subresource in _ACTIONS or served.resource.group_resource == "bindings":
        return True
    return served.resource.group in _REVIEWS and target.verb == "create"
