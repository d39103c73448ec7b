"""A collection of pods in memory that can be listed and watched, with scripted responses."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError
from aioinformer.models import core_v1

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from aioinformer import Resource
    from aioinformer.reflector import ListOptions

PODS: Resource[Any] = core_v1.PODS

_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


class Response:
    """One response: the client reads the data that is fed to it.

    Attributes:
        closed: whether the client has closed it.
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
        responses: what was answered, in the same order, but for requests that got none.
        refusals: responses, or errors to raise, instead of the next responses.
        gate: closed, it lets no request through until it is opened.
    """

    def __init__(self, *names: str, resource: Resource[Any] = PODS) -> None:
        self.resource = resource
        self.version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[ListOptions] = []
        self.responses: list[Response] = []
        self.refusals: deque[Response | BaseException] = deque()
        self.gate = asyncio.Event()
        self.gate.set()
        self._log: list[tuple[int, bytes]] = []
        self._oldest = 0
        self._muted = False
        self._lists: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._watches: list[Response] = []
        self._buffered: list[bytes] | None = None
        for name in names:
            self.put(name)

    # Changes of objects.

    def put(self, name: str, namespace: str = "default", **fields: Any) -> str:
        """Create or change an object; return its version."""
        self.version += 1
        key = f"{namespace}/{name}"
        known = self.objects.get(key)
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self.version)}
        self.objects[key] = {"metadata": metadata | fields.pop("metadata", {}), **fields}
        self._record("MODIFIED" if known else "ADDED", self.objects[key])
        return str(self.version)

    def delete(self, name: str, namespace: str = "default") -> str:
        """Delete an object; return the version of the deletion."""
        self.version += 1
        obj = deepcopy(self.objects.pop(f"{namespace}/{name}"))
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", obj)
        return str(self.version)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all changes in the block to watches as one chunk."""
        self._buffered = []
        yield
        buffered, self._buffered = self._buffered, None
        self.send(b"".join(buffered))

    def unseen(self) -> None:
        """Make watches from earlier versions expire, so that only a list shows the changes so far."""
        self._oldest = self.version

    # Watches.

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
        """End all watches, cleanly or with an error."""
        for watch in self._open():
            watch.end(error)
        self._watches.clear()

    def mute(self) -> None:
        """Make watches silent, as on a server that was restored from a backup."""
        self._muted = True

    def unmute(self) -> None:
        """Let watches have events again."""
        self._muted = False

    def expire_watches(self) -> None:
        """End all watches with 410."""
        self.unseen()
        self.send(_EXPIRED)
        self.end_watches()

    def refuse(self, status: int, reason: str = "", **headers: str) -> None:
        """Refuse the next request."""
        response = Response(status, {name.replace("_", "-"): value for name, value in headers.items()})
        response.feed(json.dumps({"kind": "Status", "code": status, "reason": reason}).encode())
        response.end()
        self.refusals.append(response)

    # Requests.

    async def request(self, options: ListOptions) -> Response:
        """Implement `ListerWatcher`."""
        self.requests.append(copy(options))
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.refusals:
            refusal = self.refusals.popleft()
            if isinstance(refusal, BaseException):
                raise refusal
            self.responses.append(refusal)
            return refusal
        response = Response()
        self.responses.append(response)
        if not options.watch:
            page = self._page(options)
            half = len(page) // 2
            response.feed(page[:half])
            response.feed(page[half:])
            response.end()
        elif options.send_initial_events:
            mark = {"resourceVersion": str(self.version), "annotations": _INITIAL_EVENTS_END}
            lines = [line("ADDED", obj) for obj in self.objects.values()]
            response.feed(b"".join([*lines, line("BOOKMARK", {"metadata": mark})]))
            self._watches.append(response)
        elif options.resource_version in ("", "0"):  # a watch without a version begins with what there is
            response.feed(b"".join(line("ADDED", obj) for obj in self.objects.values()))
            self._watches.append(response)
        elif int(options.resource_version) < self._oldest:
            response.feed(_EXPIRED)
            response.end()
        else:
            for version, data in self._log:
                if version > int(options.resource_version) and not self._muted:
                    response.feed(data)
            self._watches.append(response)
        return response

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

    def _open(self) -> list[Response]:
        return [watch for watch in self._watches if not watch.closed]

    def _record(self, kind: str, obj: dict[str, Any]) -> None:
        data = line(kind, obj)
        self._log.append((self.version, data))
        if self._buffered is not None:
            self._buffered.append(data)
        else:
            self.send(data)


def line(kind: str, obj: Mapping[str, Any]) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


_EXPIRED = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def cut() -> TransportError:
    """Return the error of a broken connection."""
    return TransportError("the connection broke")
