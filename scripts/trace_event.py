"""Trace one watch event, or one run of a reconciler, through the package.

    python scripts/trace_event.py
    python scripts/trace_event.py --reconcile

An event: an informer with default options syncs over a transport that answers from memory. Then one ADDED event
arrives, and is traced from the chunk of bytes to the call of the handler.

A run: a manager works over HTTP, with the server for tests in another thread. The reconciler applies one child with
`apply_set`, which has changed, so that one patch is sent. The run is traced from `enqueue` until it has ended, when the
cache has the write.

`sys.setprofile` records the calls of the thread. A coroutine or generator that resumes counts as a call.

files: how many distinct files of the package have a function that is called.
moves: how often a call goes to another file of the package than the call before it.
calls: of Python functions, those of asyncio and other packages included.

Without `--json`, the script prints one line for each visit of a file: the functions that are called there in turn,
indented by the number of active functions of the package.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aioinformer
from aioinformer import SharedInformerFactory, concurrency
from aioinformer.controller import Manager, Request, apply_set
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
    from types import FrameType

    from aioinformer.transport import HttpRequest

PACKAGE = Path(aioinformer.__file__).parent
#: The server for tests.
EXCLUDED = PACKAGE / "testing"
TIMEOUT = 10.0
#: Seconds after which the informer has nothing left to do before the next event.
IDLE = 0.05
#: Seconds after which a controller has nothing left to do: the change of its child runs the reconciler once more.
SETTLED = 0.5


@dataclass
class Visit:
    """Consecutive calls of functions of one file.

    Attributes:
        file: relative to the package.
        depth: how many functions of the package are active when the first one is called.
        functions: that are called, in order.
    """

    file: str
    depth: int
    functions: list[str] = field(default_factory=list)


@dataclass
class Trace:
    """The calls that one event or one run causes.

    Attributes:
        visits: in order. Each one after the first is a move.
        calls: how many Python functions were called, of any package.
    """

    visits: list[Visit] = field(default_factory=list)
    calls: int = 0

    @property
    def files(self) -> list[str]:
        """Return the distinct files, in the order of their first calls."""
        return list(dict.fromkeys(visit.file for visit in self.visits))

    @property
    def moves(self) -> int:
        """Return how often a call goes to another file than the call before it."""
        return max(0, len(self.visits) - 1)

    def to_text(self) -> str:
        """Return one line for each visit, indented by depth, and the three figures."""
        lines = [f"{'  ' * visit.depth}{visit.file}: {', '.join(visit.functions)}" for visit in self.visits]
        return "\n".join([*lines, "", f"{len(self.files)} files, {self.moves} moves, {self.calls} calls"])

    def to_json(self) -> str:
        """Return the three figures, the files and the visits as JSON."""
        figures = {"files": len(self.files), "moves": self.moves, "calls": self.calls}
        return json.dumps(figures | {"names": self.files, "visits": [asdict(visit) for visit in self.visits]}, indent=2)


class Recorder:
    """Records calls of the package's functions in the current thread, from `start` to `stop`."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._files: dict[str, str | None] = {}

    def start(self) -> None:
        """Start recording."""
        sys.setprofile(self._record)

    def stop(self) -> None:
        """Stop recording, if it has started."""
        sys.setprofile(None)

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        self.trace.calls += 1
        file = self._file(frame)
        if file is None:
            return
        visits = self.trace.visits
        if not visits or visits[-1].file != file:
            visits.append(Visit(file, self._depth(frame)))
        visits[-1].functions.append(frame.f_code.co_name)

    def _depth(self, frame: FrameType) -> int:
        depth, caller = 0, frame.f_back
        while caller is not None:
            depth += self._file(caller) is not None
            caller = caller.f_back
        return depth

    def _file(self, frame: FrameType) -> str | None:
        """Return the file of a function of the package, relative to the package. Return None for other functions."""
        name = frame.f_code.co_filename
        if name not in self._files:
            path = Path(name)
            counts = path.is_relative_to(PACKAGE) and not path.is_relative_to(EXCLUDED)
            self._files[name] = path.relative_to(PACKAGE).as_posix() if counts else None
        return self._files[name]


class ScriptedTransport:
    """A transport that answers a list and a watch of pods from memory.

    Args:
        pods: that the list contains.
    """

    def __init__(self, pods: Iterable[dict[str, Any]]) -> None:
        self._pods = list(pods)
        self._watch = ScriptedResponse(200)

    async def request(self, request: HttpRequest) -> ScriptedResponse:
        """Answer a list with the pods, a watch with the events of `send`, and refuse streaming lists."""
        query = dict(request.query)
        if "sendInitialEvents" in query:
            return ScriptedResponse(400, _status(400, "sendInitialEvents is forbidden"))
        if "watch" in query:
            return self._watch
        pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1000"}, "items": self._pods}
        return ScriptedResponse(200, pods)

    def send(self, kind: str, obj: dict[str, Any]) -> None:
        """Let one event arrive, as one chunk."""
        self._watch.feed(json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n")


class ScriptedResponse:
    """A response with a body from memory.

    Args:
        status: of HTTP.
        body: the whole body; without it, the body consists of the chunks given to `feed` and does not end.
    """

    def __init__(self, status: int, body: object = None) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self._chunks: deque[bytes] = deque() if body is None else deque([json.dumps(body).encode()])
        self._endless = body is None
        self._arrived = asyncio.Event()

    def feed(self, chunk: bytes) -> None:
        """Append a chunk to the body."""
        self._chunks.append(chunk)
        self._arrived.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks as they arrive."""
        while self._chunks or self._endless:
            while self._chunks:
                yield self._chunks.popleft()
            if self._endless:
                self._arrived.clear()
                await self._arrived.wait()

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def pod(number: int) -> dict[str, Any]:
    """Return a small pod with a name and a version from `number`."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "resourceVersion": str(1000 + number),
            "labels": {"app": "web"},
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]},
        "status": {"phase": "Running"},
    }


def _status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}


async def trace_event() -> Trace:
    """Return the trace of one ADDED event: one handler, default options, the informer has synced and is idle."""
    recorder = Recorder()
    called = asyncio.Event()

    async def on_add(obj: Any) -> None:
        recorder.stop()
        called.set()

    transport = ScriptedTransport([pod(0)])
    concurrency.SLICE_SECONDS = 100  # no slice ends by the clock, however busy the machine is
    factory = SharedInformerFactory(transport)
    registration = factory.core.v1.pods.informer().add_event_handler(on_add=on_add)
    async with factory, asyncio.timeout(TIMEOUT):
        await registration.wait_for_sync()
        # The first event of a watch also reports that the watch works. The second one only takes the usual way.
        for number in (1, 2):
            await asyncio.sleep(IDLE)
            called.clear()
            if number == 2:
                recorder.start()
            try:
                transport.send("ADDED", pod(number))
                await called.wait()
            finally:
                recorder.stop()
    return recorder.trace


@contextmanager
def server_elsewhere() -> Iterator[str]:
    """Run a server with one config map in another thread, and yield its URL."""
    loop = asyncio.new_event_loop()
    started = threading.Event()
    ended = asyncio.Event()
    url = ""

    async def serve() -> None:
        nonlocal url
        async with ApiServer() as server:
            server.create("configmaps", {"metadata": {"name": "cm", "namespace": "default"}})
            url = server.url
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        started.wait()
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


async def trace_reconcile(url: str) -> Trace:
    """Return the trace of one run with one write, in a manager that has synced and is idle."""
    recorder = Recorder()
    version = 0
    ended = asyncio.Event()
    manager = Manager("trace", client=url)

    @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
    async def maps(request: Request[core_v1.ConfigMap]) -> None:
        metadata = {"name": request.name}
        child = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"version": str(version)}}
        await apply_set(request, [child], resources=[core_v1.SECRETS])

    concurrency.SLICE_SECONDS = 100  # no slice ends by the clock, however busy the machine is
    async with manager, asyncio.timeout(TIMEOUT):
        assert manager._session is not None
        queue = manager._session.controllers["maps"].active.queue
        finish = queue.finish

        def finished(*arguments: Any) -> Any:
            following = finish(*arguments)
            recorder.stop()
            ended.set()
            return following

        queue.finish = finished  # type: ignore[assignment]
        # The run after the start makes the child, and the connections. The ones after it only take the usual way.
        await ended.wait()
        for version in (1, 2):
            await asyncio.sleep(SETTLED)
            ended.clear()
            if version == 2:
                recorder.start()
            try:
                manager.enqueue(maps, "default/cm")
                await ended.wait()
            finally:
                recorder.stop()
    return recorder.trace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures, the files and the visits as JSON")
    parser.add_argument("--reconcile", action="store_true", help="trace a run of a reconciler with one write")
    arguments = parser.parse_args()
    if arguments.reconcile:
        with server_elsewhere() as url:
            trace = asyncio.run(trace_reconcile(url))
    else:
        trace = asyncio.run(trace_event())
    print(trace.to_json() if arguments.json else trace.to_text())


if __name__ == "__main__":
    main()
