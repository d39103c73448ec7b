"""`Admission` for built-in kinds; each method imports what the kind at hand needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.tables.rendering import TableMaker

_CRD = "customresourcedefinitions.apiextensions.k8s.io"


class BuiltinAdmission:
    """Do for built-in kinds what kube-apiserver does with its default admission plugins.

    Args:
        cluster: the state of the server.
        access: its users.
    """

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access

    def default(self, served: Served, obj: dict[str, Any]) -> None:
        """Fill in what the writer left out."""
        from aioinformer.testing.kinds.defaults import default_object

        default_object(served.resource.group_resource, obj)

    def prepare(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None, subresource: str) -> None:
        """Bring an object into the form in which its kind is stored."""
        from aioinformer.testing.kinds.preparation import prepare_changed, prepare_new

        name = served.resource.group_resource
        if old is None:
            prepare_new(name, obj)
        else:
            prepare_changed(name, obj, old, subresource)

    def validate(
        self,
        served: Served,
        obj: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        *,
        subresource: str = "",
        whole: bool = True,
        causes: Sequence[Cause] = (),
    ) -> list[Cause]:
        """Return what is wrong with an object: its specification, or the rules of its schema."""
        name = served.resource.group_resource
        if served.custom:
            from aioinformer.testing.rules.rules import rule_faults

            return rule_faults(served, obj, old, causes)
        if name == _CRD:
            from aioinformer.testing.rules.definition_checks import definition_causes

            return definition_causes(obj, obj["status"]["storedVersions"])
        from aioinformer.testing.kinds.validation import object_causes

        return object_causes(served, obj, old) if whole and not subresource else []

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableMaker:
        """Return what renders objects as tables."""
        from aioinformer.testing.tables.rendering import TableMaker

        return TableMaker(served, wanted, query, self._cluster.clock)

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Answer reviews, bindings, evictions and streams of pods."""
        if wanted is None:
            from aioinformer.testing.kinds.pod_actions import pod_stream_response

            return pod_stream_response(request, self._cluster, target, served)
        if target.subresource or served.resource.group_resource == "bindings":
            from aioinformer.testing.kinds.pod_actions import PodActions

            return await PodActions(self._cluster).answer(request, target, wanted)
        from aioinformer.testing.kinds.reviews import review_response

        return await review_response(request, target, served, wanted, self._cluster, self._access)
