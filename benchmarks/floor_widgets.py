"""The floor of a restart: the smallest program on aiohttp that sends the requests of the Widget controller.

python floor_widgets.py    for the Widgets of the cluster of KUBECONFIG

It follows Widgets and ConfigMaps into two dicts, and compares each Widget with its ConfigMaps once, by four workers.
What is missing is written by the requests that a controller sends, too: a ConfigMap, an Event and a status. The program
has no queue, no retries, no finalizer, no proof of ownership, and does not wait for what it has written.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from floor import Line
from peers.runs import Runs

_WORKERS = 4
_WIDGETS = "/apis/example.com/v1"
_STREAM = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


class Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    annotations: dict[str, str] | None = None


class Widget(msgspec.Struct, gc=False):
    metadata: Meta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Child(msgspec.Struct, gc=False):
    metadata: Meta
    data: dict[str, str] = {}


_line = msgspec.json.Decoder(Line).decode
_widget = msgspec.json.Decoder(Widget).decode
_child = msgspec.json.Decoder(Child).decode


async def follow(session: aiohttp.ClientSession, path: str, store: dict[str, bytes], synced: asyncio.Event) -> None:
    """Follow a collection without end."""
    rest = b""
    async with session.get(f"{path}?{_STREAM}") as response:
        async for chunk in response.content.iter_any():
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                event = _line(line)
                raw = bytes(event.object)
                if event.type == "BOOKMARK":
                    synced.set()
                    continue
                meta = _child(raw).metadata
                store[f"{meta.namespace}/{meta.name}"] = raw


async def converge(session: aiohttp.ClientSession, widget: Widget, children: dict[str, bytes]) -> None:
    """Compare a Widget with its ConfigMaps, and write what differs."""
    meta = widget.metadata
    size = widget.spec["size"]
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": meta.name, "uid": meta.uid}
    changed = False
    for number in range(size):
        name = f"{meta.name}-{number}"
        known = children.get(f"{meta.namespace}/{name}")
        data = {"colour": widget.spec["colour"]}
        if known is not None and _child(known).data == data:
            continue
        changed = True
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "data": data,
        }
        await send(session, "POST", f"/api/v1/namespaces/{meta.namespace}/configmaps?fieldManager=floor", body)
    text = f"{size} config maps are there"
    if changed:
        event = {
            "metadata": {"generateName": f"{meta.name}."},
            "involvedObject": {**owner, "namespace": meta.namespace},
            "reason": "Applied",
            "message": text,
            "type": "Normal",
        }
        await send(session, "POST", f"/api/v1/namespaces/{meta.namespace}/events", event)
    if widget.status.get("observedGeneration") != meta.generation:
        ready = {**widget.status["conditions"][0], "message": text, "observedGeneration": meta.generation}
        status = {"size": size, "observedGeneration": meta.generation, "conditions": [ready]}
        path = f"{_WIDGETS}/namespaces/{meta.namespace}/widgets/{meta.name}/status"
        await send(session, "PATCH", path, {"status": status})


async def send(session: aiohttp.ClientSession, method: str, path: str, body: Any) -> None:
    """Send a write, and read the answer."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    async with session.request(method, path, data=msgspec.json.encode(body), headers={"Content-Type": kind}) as answer:
        await answer.read()
        answer.raise_for_status()


async def main(config: Any) -> None:
    runs = Runs()
    runs.begin()
    cluster = config["clusters"][0]["cluster"]
    token = config["users"][0]["user"]["token"]
    authority = ssl.create_default_context(cafile=cluster["certificate-authority"])
    widgets: dict[str, bytes] = {}
    children: dict[str, bytes] = {}
    async with (
        aiohttp.ClientSession(
            cluster["server"],
            headers={"Authorization": f"Bearer {token}"},
            connector=aiohttp.TCPConnector(ssl=authority),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session,
        asyncio.TaskGroup() as tasks,
    ):
        both = [(f"{_WIDGETS}/widgets", widgets, asyncio.Event()), ("/api/v1/configmaps", children, asyncio.Event())]
        for path, store, synced in both:
            tasks.create_task(follow(session, path, store, synced))
        for _, _, synced in both:
            await synced.wait()
        keys = iter(list(widgets))

        async def work() -> None:
            for key in keys:
                await converge(session, _widget(widgets[key]), children)
                runs.note(key)
                await asyncio.sleep(0)

        for _ in range(_WORKERS):
            tasks.create_task(work())


if __name__ == "__main__":
    asyncio.run(main(yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())))
