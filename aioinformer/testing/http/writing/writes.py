"""Handle creations, updates, patches and deletions."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object, encode_plain
from aioinformer.testing.api.responses import json_response
from aioinformer.testing.api.routes import check_name
from aioinformer.testing.api.statuses import Cause, warning_headers, with_warnings
from aioinformer.testing.http.reading.list_options import parse_options
from aioinformer.testing.http.reading.lists import read_page
from aioinformer.testing.http.reading.reads import object_response, page_response
from aioinformer.testing.http.writing.bodies import dry_run_faults, read_object, read_options, write_options
from aioinformer.testing.http.writing.patching import patch_object, patch_type, warned
from aioinformer.testing.http.writing.webhooks import Webhooks
from aioinformer.testing.patches.media_types import APPLY_PATCH
from aioinformer.testing.schemas.field_checks import check_object
from aioinformer.testing.state.preconditions import check_creation
from aioinformer.testing.state.strategies import is_created_by_update, returns_deleted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.converting import Conversions
    from aioinformer.testing.state.cluster import Cluster

_POLICIES = ("Foreground", "Background", "Orphan", "nil")
_WORK_AT_ONCE = 50
_PODS_ARE_LEFT = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class Writes:
    """Answer requests that change objects."""

    def __init__(self, cluster: Cluster, access: Access, services: Mapping[str, str], conversions: Conversions) -> None:
        self._cluster = cluster
        self._access = access
        self.webhooks = Webhooks(cluster, access, services, conversions)

    async def create(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = write_options(request, target, served, "CreateOptions")
        obj, repeated = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
        warnings = check_object(served, obj, options.directive, repeated)
        if served.resource.namespaced and not target.namespace:
            name = str((obj.get("metadata") or {}).get("name") or "")
            raise statuses.invalid_object(served.resource, name, [Cause.required("metadata.namespace")])

        def write(dry_run: bool) -> tuple[bytes, bool]:
            writer = self._cluster.writer
            copied = deepcopy(obj)
            return writer.create(served, target.namespace, copied, by=options.by, dry_run=dry_run), True

        with warned(warnings):
            name = str((obj.get("metadata") or {}).get("name") or "")
            body, _ = await self.webhooks.admit(served, target.namespace, name, options, write)
            body = await self._shown(served, body)
        answer = object_response(request, served, body, wanted, target.query, self._cluster, status=201)
        return with_warnings(answer, warnings)

    async def update(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        namespace = target.namespace
        name = target.name
        options = write_options(request, target, served, "UpdateOptions")
        obj, repeated = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
        warnings = check_object(served, obj, options.directive, repeated)
        check_name(name)

        def write(dry_run: bool) -> tuple[bytes, bool]:
            by = options.by
            copied = deepcopy(obj)
            if target.subresource or not is_created_by_update(served) or self._is_there(served, namespace, name):
                body = self._cluster.writer.update(
                    served, namespace, name, copied, subresource=target.subresource, by=by, dry_run=dry_run
                )
                return body, False
            self._access.check_creation(request)
            check_creation(served, namespace, name, copied)
            return self._cluster.writer.create(served, namespace, copied, by=by, dry_run=dry_run), True

        with warned(warnings):
            body, created = await self.webhooks.admit(
                served, namespace, name, options, write, subresource=target.subresource
            )
            body = await self._shown(served, body)
        answer = object_response(
            request, served, body, wanted, target.query, self._cluster, status=201 if created else 200
        )
        return with_warnings(answer, warnings)

    async def patch(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        content_type = request.headers.get("Content-Type", "")
        applies = patch_type(served, content_type) == APPLY_PATCH
        check_name(target.name)
        data = await request.read()
        options = write_options(request, target, served, "PatchOptions", applies=applies)
        if applies and not self._is_there(served, target.namespace, target.name):
            self._access.check_creation(request)
        warnings: list[str] = []

        def write(dry_run: bool) -> tuple[bytes, bool]:
            return patch_object(
                self._cluster,
                served,
                target.namespace,
                target.name,
                data,
                content_type,
                options._replace(dry_run=dry_run),
                subresource=target.subresource,
                warnings=warnings,
            )

        with warned(warnings):
            body, created = await self.webhooks.admit(
                served, target.namespace, target.name, options, write, subresource=target.subresource
            )
            body = await self._shown(served, body)
        answer = object_response(
            request, served, body, wanted, target.query, self._cluster, status=201 if created else 200
        )
        return with_warnings(answer, list(dict.fromkeys(warnings)))  # a webhook lets it be read again

    async def _shown(self, served: Served, body: bytes) -> bytes:
        """Return an object as the client reads it after a write.

        If a webhook converts it, that is what is left of it in the stored version, with its defaults.
        """
        if served.webhook is None:
            return body

        def there_and_back() -> bytes:
            return encode_object(served.from_stored(served.to_stored(decode(body))), custom=True)

        return await self.webhooks.conversions.settle(there_and_back)

    def _is_there(self, served: Served, namespace: str, name: str) -> bool:
        return self._cluster.store.find(served, namespace, name) is not None

    async def delete(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = await _delete_options(request, target.query)
        preconditions = options.get("preconditions") or {}
        there = self._cluster.store.find(served, target.namespace, target.name)
        await self.webhooks.admit_deletion(served, there, dry_run=bool(options.get("dryRun")))
        body, gone = self._cluster.delete(
            served,
            target.namespace,
            target.name,
            uid=str(preconditions.get("uid") or ""),
            version=str(preconditions.get("resourceVersion") or ""),
            policy=str(options.get("propagationPolicy") or ""),
            dry_run=bool(options.get("dryRun")),
        )
        warnings = _deletion_warnings(served, options)
        if not gone or returns_deleted(served):
            body = await self._shown(served, body)
            answer = object_response(request, served, body, wanted, target.query, self._cluster)
            return with_warnings(answer, warnings)
        if wanted.form == "table":
            # A Status is never rendered as a table, but the table options are checked.
            self._cluster.admission.render(served, wanted, target.query)
        details = statuses.resource_details(served.resource, target.name)
        details["uid"] = decode(body)["metadata"]["uid"]
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_response(request, encode_plain(status))

    async def delete_collection(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = await _delete_options(request, target.query)
        asked = parse_options(target.query, served, target.namespace)
        page = await read_page(self._cluster.store.collection(served), asked, self._cluster.store.storage.version)
        if page.records and served.resource.namespaced and not target.namespace:
            raise statuses.bad_request("Namespace parameter required.")
        for index, record in enumerate(page.records):
            try:
                await self.webhooks.admit_deletion(served, record, dry_run=bool(options.get("dryRun")))
                self._cluster.delete(
                    served,
                    record.namespace,
                    record.name,
                    policy=str(options.get("propagationPolicy") or ""),
                    dry_run=bool(options.get("dryRun")),
                )
            except statuses.StatusError as error:
                if error.code != 404:
                    raise
            if index % _WORK_AT_ONCE == _WORK_AT_ONCE - 1:
                await asyncio.sleep(0)
        warned_of = warning_headers(_deletion_warnings(served, options))
        headers = {"Warning": warned_of[0]} if warned_of else None
        await self.webhooks.conversions.prepare(served, page.records)
        return await page_response(request, served, page, wanted, target.query, self._cluster, headers)


def _deletion_warnings(served: Served, options: Mapping[str, Any]) -> list[str]:
    chosen = options.get("propagationPolicy") or served.resource.gvr != "batch/v1/jobs"
    return [] if chosen else [_PODS_ARE_LEFT]


async def _delete_options(request: web.BaseRequest, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the DeleteOptions of the body, or those of the query if there is no body."""
    data = await request.read()
    sent = read_options(data, request.headers.get("Content-Type", ""))
    return checked_delete_options(sent, {} if data else query)


def checked_delete_options(sent: Mapping[str, Any], query: Mapping[str, str]) -> Mapping[str, Any]:
    """Check DeleteOptions and return them normalized.

    Args:
        query: of the request; it takes precedence.
    """
    options = dict(sent)
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    policy = options.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        cause = Cause.invalid("propagationPolicy", f'"{policy}"', why)
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if orphan is not None:
        options["propagationPolicy"] = "Orphan" if orphan else "Background"
    if policy and policy not in _POLICIES[:3]:
        cause = Cause.unsupported("propagationPolicy", f'"{policy}"', _POLICIES)
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if (runs := options.get("dryRun")) and runs != ["All"]:
        cause = Cause.unsupported("dryRun", encode_plain(runs).decode(), ("All",))
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if causes := list(dry_run_faults(query)):
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", causes)
    if "dryRun" in query:
        options["dryRun"] = ["All"]
    return options
