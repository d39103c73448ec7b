"""Two watchers of ConfigMaps, through the command line and through the library, and a replay of their notifications."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from aioinformer import (
    DeletedFinalStateUnknown,
    ListWatch,
    Resource,
    SharedIndexInformer,
    connect,
    meta_namespace_key_func,
)
from tests.support.real_cluster import Version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from kubernetes_asyncio.client import V1ConfigMap


class Account:
    """Replays notifications in the format of `aioinformer watch -o jsonl`.

    Attributes:
        objects: the objects that result from the notifications.
        delivered: key, uid and resourceVersion of all adds and updates.
        deleted: key and uid of all deletes.
        violations: inconsistent notifications.
        is_synced: whether `synced` was received.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Version] = {}
        self.delivered: set[tuple[str, str, str]] = set()
        self.deleted: set[tuple[str, str]] = set()
        self.violations: list[str] = []
        self.is_synced = False
        self._last: dict[str, int] = {}

    def take(self, line: dict[str, Any]) -> None:
        """Replay one notification."""
        match line["event"]:
            case "synced":
                self._expect(not self.is_synced, line, "synced twice")
                self.is_synced = True
            case "add":
                self._expect(line["key"] not in self.objects, line, "add of a present object")
                self._put(line)
            case "update":
                current = self._current(line).resource_version
                self._expect(current == line["oldResourceVersion"], line, "update from another state than the last")
                self._put(line)
            case "delete":
                self._delete(line)

    def _put(self, line: dict[str, Any]) -> None:
        key, number = line["key"], int(line["resourceVersion"])
        self._expect(number > self._last.get(key, 0), line, "not newer than the last notification")
        self._last[key] = number
        self.objects[key] = Version(line["uid"], line["resourceVersion"])
        self.delivered.add((key, *self.objects[key]))

    def _delete(self, line: dict[str, Any]) -> None:
        key, number, last = line["key"], int(line["resourceVersion"]), self._current(line)
        self._expect(line["uid"] == last.uid, line, "delete of another object")
        if line["tombstone"]:
            self._expect(line["resourceVersion"] == last.resource_version, line, "not the last known version")
        self._expect(number >= self._last.get(key, 0), line, "older than the last notification")
        self._last[key] = number
        self.objects.pop(key, None)
        self.deleted.add((key, line["uid"]))

    def _current(self, line: dict[str, Any]) -> Version:
        return self.objects.get(line["key"], Version("", ""))

    def _expect(self, holds: bool, line: dict[str, Any], violation: str) -> None:
        if not holds:
            self.violations.append(f"{violation}: {line}")


CONFIG_MAPS: Resource[V1ConfigMap] = Resource("", "v1", "configmaps", kind="ConfigMap", model="V1ConfigMap")
_CONVERGENCE = 90.0


class Witness(ABC):
    """A watcher of the ConfigMaps of a cluster. An async context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        self.account = Account()
        self._lines: list[dict[str, Any]] = []
        self._kubeconfig = kubeconfig
        self._news = asyncio.Event()

    async def until(self, predicate: Callable[[Account], bool]) -> None:
        """Wait until a condition holds for the notifications."""
        async with asyncio.timeout(_CONVERGENCE):
            while not predicate(self.account):
                self._news.clear()
                await self._news.wait()

    async def until_matching(self, truth: dict[str, Version]) -> None:
        """Wait until the notifications result in these objects; fail with the difference otherwise."""
        try:
            await self.until(lambda account: account.objects == truth)
        except TimeoutError as error:
            delivered, actual = self.account.objects.items(), truth.items()
            raise AssertionError(
                f"missing: {dict(actual - delivered)}; delivered instead: {dict(delivered - actual)}"
            ) from error

    @abstractmethod
    async def stop(self) -> dict[str, Version]:
        """End the watcher and return the contents of its cache."""

    def about(self, key: str) -> list[dict[str, Any]]:
        """Return the notifications about one object, in order."""
        return [line for line in self._lines if line.get("key") == key]

    def _take(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        self.account.take(line)
        self._news.set()

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class CommandLine(Witness):
    """`aioinformer watch configmaps -A -o jsonl --dump-on-exit` in a separate process."""

    async def __aenter__(self) -> Self:
        command = ["-m", "aioinformer", "watch", "configmaps", "-A", "-o", "jsonl", "--dump-on-exit"]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *command, "--kubeconfig", str(self._kubeconfig), stdout=asyncio.subprocess.PIPE
        )
        self._stored: dict[str, Version] = {}
        self._reader = asyncio.create_task(self._read(), name="reader of the command line")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._reader
        await self._process.wait()

    async def stop(self) -> dict[str, Version]:
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(200):
            await self._reader
            assert await self._process.wait() == 0
        return self._stored

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            line = json.loads(text)
            if line["event"] == "store":
                self._stored[line["key"]] = Version(line["uid"], line["resourceVersion"])
            else:
                self._take(line)


class Library(Witness):
    """A SharedIndexInformer with a handler, in this process."""

    async def __aenter__(self) -> Self:
        self._connection = await connect(kubeconfig=self._kubeconfig)
        self._informer = SharedIndexInformer(ListWatch(self._connection.transport, CONFIG_MAPS))
        self._informer.add_event_handler(self)
        self._waiter = asyncio.create_task(self._record_sync(), name="waits for the sync")
        await self._informer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiter.cancel()
        await asyncio.wait([self._waiter])
        await self._informer.__aexit__(kind, error, trace)
        await self._connection.aclose()

    async def stop(self) -> dict[str, Version]:
        return {_key(each): _version(each) for each in self._informer.get_store().list()}

    def on_add(self, obj: V1ConfigMap, is_in_initial_list: bool) -> None:
        self._record("add", obj, initial=is_in_initial_list)

    def on_update(self, old: V1ConfigMap, new: V1ConfigMap) -> None:
        self._record("update", new, oldResourceVersion=old.metadata.resource_version)

    def on_delete(self, obj: V1ConfigMap | DeletedFinalStateUnknown[V1ConfigMap]) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            assert obj.obj is not None
            self._record("delete", obj.obj, tombstone=True)
        else:
            self._record("delete", obj, tombstone=False)

    def _record(self, event: str, obj: V1ConfigMap, **fields: Any) -> None:
        uid, version = _version(obj)
        self._take({"event": event, "key": _key(obj), "uid": uid, "resourceVersion": version, **fields})

    async def _record_sync(self) -> None:
        await self._informer.wait_for_sync()
        self._take({"event": "synced"})


def _key(obj: V1ConfigMap) -> str:
    return meta_namespace_key_func(obj)


def _version(obj: V1ConfigMap) -> Version:
    return Version(obj.metadata.uid, obj.metadata.resource_version)
