"""Bugs that people write into controllers, planted into `Widgets`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer import Client
from aioinformer.errors import AioinformerError, ApiNotFound
from aioinformer.models import core_v1
from tests.system.harness.sample import FINALIZER, WIDGETS, Widget, Widgets

if TYPE_CHECKING:
    from aioinformer.controller import Request
    from aioinformer.testing.harness import Harness


class CreatesFromStaleCache(Widgets):
    """Generates names, so nothing but the cache tells it that a part exists; and its writes are not recorded."""

    async def make_parts(self, request: Request[Widget], widget: Widget) -> None:
        client = Client(self.transport).core.v1.configmaps
        owned = {(each.data or {})["value"]: each for each in request.owned(core_v1.CONFIG_MAPS)}
        for value in widget.spec.parts.values():
            if value not in owned:
                body = self.part(request, widget, "", value)
                body["metadata"] |= {"generateName": f"{request.name}-", "name": None}
                await client.create(body)
        for value in owned.keys() - widget.spec.parts.values():
            with suppress(ApiNotFound):
                await client.delete(f"{request.namespace}/{owned[value].metadata.name}")


class CountsRuns(Widgets):
    """Counts its runs, in the object that makes it run."""

    async def write_status(self, request: Request[Widget], widget: Widget) -> None:
        runs = int((widget.metadata.annotations or {}).get("example.com/runs", 0)) + 1
        stamp = {"annotations": {"example.com/runs": str(runs)}}
        await request.client.resource(WIDGETS).patch(str(request.key), {"metadata": stamp})


class RemovesFinalizerFirst(Widgets):
    """Deletes the disk after the finalizer that protects it."""

    async def clean_up(self, request: Request[Widget], widget: Widget) -> None:
        left = [each for each in widget.metadata.finalizers or () if each != FINALIZER]
        await self.set_finalizers(request, widget, left)
        self.disks.pop(widget.metadata.uid or "", None)


class MakesDiskFirst(Widgets):
    """Makes the disk before the finalizer that protects it."""

    async def set_finalizers(self, request: Request[Widget], widget: Widget, finalizers: list[str]) -> Widget:
        if FINALIZER in finalizers:
            self.disks[widget.metadata.uid or ""] = request.name
        return await super().set_finalizers(request, widget, finalizers)


class AdoptsLater(Widgets):
    """Creates a part, and says whose it is in a second write."""

    def part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> dict[str, Any]:
        body = super().part(request, widget, name, value)
        del body["metadata"]["ownerReferences"]
        return body

    async def make_part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> None:
        await super().make_part(request, widget, name, value)
        owned = super().part(request, widget, name, value)["metadata"]["ownerReferences"]
        patch = {"metadata": {"ownerReferences": owned}}
        await request.client.core.v1.configmaps.patch(f"{request.namespace}/{name}", patch)


class TakesOver(Widgets):
    """Takes each object with the right name for its own."""

    async def make_part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> None:
        client = request.client.core.v1.configmaps
        await client.apply(self.part(request, widget, name, value), force=True, field_manager="widgets")


class SwallowsErrors(Widgets):
    """Logs errors, and takes the object for done."""

    async def reconcile(self, request: Request[Widget]) -> None:
        try:
            await super().reconcile(request)
        except AioinformerError as error:
            request.log.info("%s", error)


class RemembersParts(Widgets):
    """Creates a part once, and trusts its memory from then on."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness)
        self.made: set[str] = set()

    async def make_part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> None:
        if name not in self.made:
            await super().make_part(request, widget, name, value)
            self.made.add(name)


class FollowsDeletions(Widgets):
    """Has no finalizer: it deletes a disk when it sees the deletion, if it remembers the disk."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness)
        self.uids: dict[str, str] = {}

    async def reconcile(self, request: Request[Widget]) -> None:
        widget = request.object
        if widget is None:
            self.disks.pop(self.uids.pop(request.name, ""), None)
            return
        self.uids[request.name] = widget.metadata.uid or ""
        self.disks[widget.metadata.uid or ""] = request.name
        await self.make_parts(request, widget)
        await self.write_status(request, widget)


class ReportsLatestGeneration(Widgets):
    """Reports the generation that the server has, not the one that it has reconciled."""

    async def write_status(self, request: Request[Widget], widget: Widget) -> None:
        latest = await request.client.resource(WIDGETS).get(str(request.key))
        status: dict[str, Any] = {
            "observedGeneration": latest.metadata.generation,
            "parts": sorted(widget.spec.parts),
        }
        if msgspec.to_builtins(widget.status) != status:
            await request.client.resource(WIDGETS).status.patch(str(request.key), {"status": status})
