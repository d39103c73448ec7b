"""A collection of pods in memory that can be listed and watched, with scripted responses."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError
from aioinformer.resources.catalog import find

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from aioinformer.reflector.options import ListOptions
    from aioinformer.resources.resource import Resource

_PODS = find("", "v1", "pods")
assert _PODS is not None
PODS: Resource[Any] = _PODS

_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


class Answer:
    """One response: the client reads the data that is fed to it.

    Attributes:
        closed: the client let go of it.
    """

    def __init__(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.closed = False
        self._chunks: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()

    def feed(self, chunk: bytes) -> None:
        self._chunks.put_nowait(chunk)

    def end(self, error: BaseException | None = None) -> None:
        self._chunks.put_nowait(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True


class Collection:
    """A `ListerWatcher` of pods; each change increments the version.

    Attributes:
        requests: what was asked.
        answers: what was answered, in the same order, but for requests that got no answer.
        refusals: answers, or errors to raise, instead of the next answers.
        gate: closed, it lets no request through until it is opened.
    """

    def __init__(self, *names: str, resource: Resource[Any] = PODS) -> None:
        self.resource = resource
        self.version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[ListOptions] = []
        self.answers: list[Answer] = []
        self.refusals: deque[Answer | BaseException] = deque()
        self.gate = asyncio.Event()
        self.gate.set()
        self._log: list[tuple[int, bytes]] = []
        self._oldest = 0
        self._muted = False
        self._lists: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._watches: list[Answer] = []
        self._held: list[bytes] | None = None
        for name in names:
            self.put(name)

    # What happens to the objects.

    def put(self, name: str, namespace: str = "default", **fields: Any) -> str:
        """Create or change an object; return its version."""
        self.version += 1
        key = f"{namespace}/{name}"
        known = self.objects.get(key)
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self.version)}
        self.objects[key] = {"metadata": metadata | fields.pop("metadata", {}), **fields}
        self._happened("MODIFIED" if known else "ADDED", self.objects[key])
        return str(self.version)

    def delete(self, name: str, namespace: str = "default") -> str:
        """Delete an object; return the version of the deletion."""
        self.version += 1
        obj = deepcopy(self.objects.pop(f"{namespace}/{name}"))
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._happened("DELETED", obj)
        return str(self.version)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all changes in the block to watches as one chunk."""
        self._held = []
        yield
        held, self._held = self._held, None
        self.send(b"".join(held))

    def unseen(self) -> None:
        """Send changes in the block to no watch; watches from earlier versions expire."""
        self._oldest = self.version

    # What happens to watches.

    @property
    def open_watches(self) -> int:
        return len(self._open())

    def send(self, data: bytes) -> None:
        """Send data to all watches."""
        for watch in () if self._muted else self._open():
            watch.feed(data)

    def bookmark(self) -> str:
        """Send a bookmark with a new version; return the version."""
        self.version += 1
        self.send(line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self.version)}}))
        return str(self.version)

    def end_watches(self, error: BaseException | None = None) -> None:
        """End all watches without an error."""
        for watch in self._open():
            watch.end(error)
        self._watches.clear()

    def mute(self) -> None:
        """Make watches silent, as on a server that was restored from a backup."""
        self._muted = True

    def expire_watches(self) -> None:
        """End all watches with 410."""
        self.unseen()
        self.send(_EXPIRED)
        self.end_watches()

    def refuse(self, status: int, reason: str = "", **headers: str) -> None:
        """Refuse the next request."""
        answer = Answer(status, {name.replace("_", "-"): value for name, value in headers.items()})
        answer.feed(json.dumps({"kind": "Status", "code": status, "reason": reason}).encode())
        answer.end()
        self.refusals.append(answer)

    # What is asked.

    async def request(self, options: ListOptions) -> Answer:
        """Implement `ListerWatcher`."""
        self.requests.append(replace(options))
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.refusals:
            refusal = self.refusals.popleft()
            if isinstance(refusal, BaseException):
                raise refusal
            self.answers.append(refusal)
            return refusal
        answer = Answer()
        self.answers.append(answer)
        if not options.watch:
            page = self._page(options)
            half = len(page) // 2
            answer.feed(page[:half])
            answer.feed(page[half:])
            answer.end()
        elif options.send_initial_events:
            mark = {"resourceVersion": str(self.version), "annotations": _INITIAL_EVENTS_END}
            lines = [line("ADDED", obj) for obj in self.objects.values()]
            answer.feed(b"".join([*lines, line("BOOKMARK", {"metadata": mark})]))
            self._watches.append(answer)
        elif int(options.resource_version) < self._oldest:
            answer.feed(_EXPIRED)
            answer.end()
        else:
            for version, data in self._log:
                if version > int(options.resource_version) and not self._muted:
                    answer.feed(data)
            self._watches.append(answer)
        return answer

    def _page(self, options: ListOptions) -> bytes:
        """Return one page of a list; all pages show the same state."""
        if options.continue_token:
            version, items = self._lists.pop(options.continue_token)
        else:
            version = self.version
            items = [{key: value for key, value in obj.items() if key != "kind"} for obj in self.objects.values()]
        metadata = {"resourceVersion": str(version)}
        if options.limit and len(items) > options.limit:
            metadata["continue"] = f"{version} {len(items)}"
            self._lists[metadata["continue"]] = (version, items[options.limit :])
            items = items[: options.limit]
        return json.dumps({"kind": "PodList", "metadata": metadata, "items": items}).encode()

    def _open(self) -> list[Answer]:
        return [watch for watch in self._watches if not watch.closed]

    def _happened(self, kind: str, obj: dict[str, Any]) -> None:
        data = line(kind, obj)
        self._log.append((self.version, data))
        if self._held is not None:
            self._held.append(data)
        else:
            self.send(data)


def line(kind: str, obj: Mapping[str, Any]) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


_EXPIRED = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def cut() -> TransportError:
    """Return the error of a broken connection."""
    return TransportError("the connection broke")
