"""`Admission` for built-in kinds; each method imports what the kind at hand needs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.admission.service_network import ServiceNetwork
    from aioinformer.testing.admission.tables.renderer import TableMaker
    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.state.cluster import Cluster

_CRD = "customresourcedefinitions.apiextensions.k8s.io"
_SIGNING_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_RANKED = frozenset({"pods", "priorityclasses.scheduling.k8s.io"})


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
        from aioinformer.testing.admission.kinds.defaults import default_object

        default_object(served.resource.group_resource, obj)

    def assign(
        self,
        served: Served,
        obj: dict[str, Any],
        old: Mapping[str, Any] | None,
        *,
        name: str,
        dry_run: bool,
        whole: bool,
    ) -> None:
        """Set priorities of pods, and addresses and ports of services."""
        if old is None and served.resource.group_resource in _RANKED:
            from aioinformer.testing.admission.kinds.priorities import settle_priority

            settle_priority(self._cluster.store, served, obj, whole=whole)
        if served.resource.group_resource == "services":
            self._network.settle(served, obj, old, name=name, dry_run=dry_run, whole=whole)

    def prepare(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None, subresource: str) -> None:
        """Bring an object into the form in which its kind is stored."""
        from aioinformer.testing.admission.kinds.preparation import prepare_changed, prepare_new

        name = served.resource.group_resource
        if old is None:
            prepare_new(name, obj)
            return
        if subresource and name == _SIGNING_REQUESTS:
            from aioinformer.testing.admission.kinds.signing_conditions import settle_conditions

            settle_conditions(obj, old, subresource, self._cluster.now())
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
            from aioinformer.testing.admission.rules.custom_objects import rule_faults

            return rule_faults(served, obj, old, causes)
        if name == _CRD:
            from aioinformer.testing.admission.rules.definition_checks import definition_causes

            return definition_causes(obj, obj["status"]["storedVersions"])
        from aioinformer.testing.admission.specs.specifications import specification_causes

        found = specification_causes(served, obj, old, subresource=subresource, whole=whole)
        if old is not None and not found and name == "persistentvolumeclaims":
            from aioinformer.testing.admission.kinds.claim_growth import check_growth

            check_growth(self._cluster.store, served, obj, old)
        return found

    def warn(self, served: Served, body: bytes, *, subresource: str = "", created: bool) -> list[str]:
        """Return the warnings about an object that was written."""
        from aioinformer.testing.admission.kinds.creation_warnings import creation_warnings, update_warnings

        name = served.resource.group_resource
        return creation_warnings(name, body) if created else update_warnings(name, body, subresource)

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableMaker:
        """Return what renders objects as tables."""
        from aioinformer.testing.admission.tables.renderer import TableMaker

        return TableMaker(served, wanted, query, self._cluster.clock)

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Answer reviews, bindings, evictions and streams of pods."""
        if wanted is None:
            from aioinformer.testing.admission.subresources.streams import pod_stream_response

            return pod_stream_response(request, self._cluster, target, served)
        if target.subresource or served.resource.group_resource == "bindings":
            from aioinformer.testing.admission.subresources.pods import PodActions

            return await PodActions(self._cluster).answer(request, target, wanted)
        from aioinformer.testing.admission.reviews.reviews import review_response

        return await review_response(request, target, served, wanted, self._cluster, self._access)

    @cached_property
    def _network(self) -> ServiceNetwork:
        from aioinformer.testing.admission.service_network import ServiceNetwork

        return ServiceNetwork(self._cluster.store)
