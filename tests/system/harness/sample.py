"""A controller for the tests of the harness: a Widget has a ConfigMap for each part, a disk in a cloud, and a status.

`Widgets` is right. The planted bugs, which are those that people write into controllers, override one of its methods.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer import Client, Resource
from aioinformer.controller import Controller, Manager, RetryAfter, TerminalError
from aioinformer.errors import AioinformerError, AlreadyExists, ApiNotFound, Conflict
from aioinformer.models import ObjectMeta, core_v1

if TYPE_CHECKING:
    from aioinformer.controller import Request
    from aioinformer.harness import Harness


FINALIZER = "example.com/disk"


class Spec(msgspec.Struct, frozen=True):
    parts: dict[str, str] = {}


class Status(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    parts: list[str] = []


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec = Spec()
    status: Status = Status()


WIDGETS = Resource("example.com", "v1", "widgets", kind="Widget", decoder=Widget)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def widget(name: str, **parts: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"parts": parts}}


class Widgets:
    """The right controller.

    Args:
        harness: its world has the disks of the cloud: the name of the widget by its uid.
    """

    def __init__(self, harness: Harness) -> None:
        self.disks: dict[str, str] = harness.world.setdefault("disks", {})
        self.transport = harness.transport

    def manager(self) -> Manager:
        controller = Controller("widgets", WIDGETS, self.reconcile, owns=[core_v1.CONFIG_MAPS])
        return Manager("widgets", [controller], client=self.transport)

    async def reconcile(self, request: Request[Widget]) -> None:
        widget = request.object
        if widget is None:
            return
        finalizers = list(widget.metadata.finalizers or ())
        if widget.metadata.deletion_timestamp is not None:
            if FINALIZER in finalizers:
                await self.clean_up(request, widget)
            return
        if FINALIZER not in finalizers:
            widget = await self.set_finalizers(request, widget, [*finalizers, FINALIZER])
        self.disks[widget.metadata.uid or ""] = widget.metadata.name or ""
        await self.make_parts(request, widget)
        await self.write_status(request, widget)

    async def clean_up(self, request: Request[Widget], widget: Widget) -> None:
        self.disks.pop(widget.metadata.uid or "", None)
        left = [each for each in widget.metadata.finalizers or () if each != FINALIZER]
        await self.set_finalizers(request, widget, left)

    async def set_finalizers(self, request: Request[Widget], widget: Widget, finalizers: list[str]) -> Widget:
        metadata = {"finalizers": finalizers, "resourceVersion": widget.metadata.resource_version}
        return await request.client.resource(WIDGETS).patch(str(request.key), {"metadata": metadata})

    async def make_parts(self, request: Request[Widget], widget: Widget) -> None:
        client = request.client.core.v1.configmaps
        owned = {each.metadata.name or "": each for each in request.owned(core_v1.CONFIG_MAPS)}
        wanted = {f"{request.name}-{part}": value for part, value in widget.spec.parts.items()}
        for name, value in wanted.items():
            if name not in owned:
                await self.make_part(request, widget, name, value)
            elif (owned[name].data or {}).get("value") != value:
                await client.patch(f"{request.namespace}/{name}", {"data": {"value": value}})
        for name in owned.keys() - wanted.keys():
            with suppress(ApiNotFound, Conflict):  # it is gone, and the cache will say so
                await client.delete(f"{request.namespace}/{name}", uid=owned[name].metadata.uid or "")

    async def make_part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> None:
        client = request.client.core.v1.configmaps
        try:
            await client.create(self.part(request, widget, name, value))
        except AlreadyExists:
            found = await client.get(f"{request.namespace}/{name}")
            if any(each.kind == "Widget" for each in found.metadata.owner_references or ()):
                raise RetryAfter(1.0, "waiting for the garbage of an earlier widget of this name") from None
            raise TerminalError(f"the ConfigMap {name} belongs to another owner") from None

    def part(self, request: Request[Widget], widget: Widget, name: str, value: str) -> dict[str, Any]:
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": request.name, "uid": widget.metadata.uid}
        metadata = {"name": name, "namespace": request.namespace, "ownerReferences": [{**owner, "controller": True}]}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}

    async def write_status(self, request: Request[Widget], widget: Widget) -> None:
        status = Status(widget.metadata.generation or 0, sorted(widget.spec.parts))
        if status != widget.status:
            patch = {"status": msgspec.to_builtins(status)}
            await request.client.resource(WIDGETS).status.patch(str(request.key), patch)


async def life(harness: Harness) -> None:
    """What users do with widgets, and what must hold."""
    harness.always(check_status)
    await harness.create(widget("first", a="1", b="2"))
    await harness.create(widget("second", d="5"))
    await harness.settle()
    check_parts(harness, first="12", second="5")
    await harness.patch(WIDGETS, "default/first", {"spec": {"parts": {"a": "3", "b": None}}})
    await harness.patch(WIDGETS, "default/first", {"spec": {"parts": {"c": "4"}}})
    await harness.delete("configmaps", f"default/{harness.objects('configmaps')[-1]['metadata']['name']}")
    await harness.settle()
    check_parts(harness, first="34", second="5")
    await harness.patch(WIDGETS, "default/second", {"spec": {"parts": {"a": "1"}}})
    await harness.create(widget("third", a="1"))
    await harness.delete(WIDGETS, "default/first")
    await harness.delete(WIDGETS, "default/third")
    await harness.settle()
    check_parts(harness, second="15")
    assert [each["metadata"]["name"] for each in harness.objects(WIDGETS)] == ["second"]
    assert list(harness.world["disks"].values()) == ["second"], "a disk is left"


async def namesake(harness: Harness) -> None:
    """A widget is deleted, and another one gets its name as soon as it is gone."""
    await harness.create(widget("first", a="1"))
    await harness.settle()
    await harness.delete(WIDGETS, "default/first")
    while harness.objects(WIDGETS):
        await harness.step()
    await harness.create(widget("first", a="2"))
    await harness.settle()
    check_parts(harness, first="2")
    assert list(harness.world["disks"]) == [harness.objects(WIDGETS)[0]["metadata"]["uid"]], "a disk is left"


async def taken_name(harness: Harness) -> None:
    """Another controller has a ConfigMap with the name of a part."""
    metadata, data = {"name": "first-a", "namespace": "default"}, {"value": "of another controller"}
    await harness.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    await harness.create(widget("first", a="1"))
    await harness.settle()
    assert harness.server.get("configmaps", "first-a")["data"] == data, "it was taken over"


def check_parts(harness: Harness, **parts: str) -> None:
    """Compare the values of the parts of each widget."""
    found: dict[str, list[str]] = {}
    for each in harness.objects("configmaps"):
        owners = each["metadata"].get("ownerReferences") or [{"name": "nobody"}]
        found.setdefault(owners[0]["name"], []).append(each["data"]["value"])
    values = {name: "".join(sorted(each)) for name, each in found.items()}
    assert values == parts, f"the parts are {values}, not {parts}"


def check_status(harness: Harness) -> None:
    """Compare the status of each widget with the generation that it is about."""
    for each in harness.objects(WIDGETS):
        status = each.get("status", {})
        if status.get("observedGeneration") == each["metadata"]["generation"]:
            assert status["parts"] == sorted(each["spec"]["parts"]), "the status is that of another generation"


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
