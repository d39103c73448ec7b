"""Replicas of an earlier version are replaced by this one, and back, under load on a real API server.

    AIOINFORMER_TEST_CLUSTER=../cluster python -m tests.real.e2e.upgrade

Three replicas with a ring, an election, `apply_set` and webhooks are replaced one by one, first by replicas of this
version, then by those of the earlier one again. In each direction, one replica of each version is killed. Objects
change meanwhile, and the CA of the webhooks is replaced every 16 seconds by whoever notices it first. It prints what an
observer has found as JSON, and fails if

- an object had two owners at a time, by the rules of `ring_observer`, or two leaders;
- a child was deleted that always belonged to its owner, or children do not fit their owner in the end;
- a review was refused, other than by a connection to a replica that was killed, for the time in which the Service still
  had it, or by the end of a replica of the earlier version, which does not answer reviews after SIGTERM: it gets the
  signal once the Service has forgotten it, as with a `preStop` hook, and closes the connections that are left;
- a change was not processed.

It waits until a replica of each version has made a CA.

The API server, etcd, the replicas and this program share the cores of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.real.e2e.ring_faults import watch
from tests.real.e2e.ring_observer import AuditLog, Observer, audited, quantiles
from tests.real.e2e.rollouts import LAG, Replica, Service
from tests.support.former import COMMIT, extract_former
from tests.support.real_cluster import Operator, RealCluster
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

RING = "widgets"
#: How many objects the ring has, and the leader.
SHARED, ELECTED = 24, 6
#: Changes a second, at most.
RATE = 12.0
#: Those that each object has always, and the one that it has after every other change.
KEPT, EXTRA = ("keep-0", "keep-1"), "extra"
_PATCH = {"Content-Type": "application/merge-patch+json"}
_PATIENCE = 60.0
#: What the API server says of a webhook whose process has died.
_CUT_OFF = re.compile(r"connection refused|connection reset|EOF|broken pipe|http2: ")


def children_of(count: int) -> str:
    """Return the children that an object has after this many changes."""
    return ",".join((*KEPT, *([EXTRA] if count % 2 else [])))


class Refused(NamedTuple):
    """A request that failed for a webhook."""

    at: float
    message: str


class Elected(NamedTuple):
    """What a leader has written."""

    version: int
    by: str
    token: int


class Audit:
    """What the API server has logged of all writes.

    Attributes:
        ring: of the objects that the ring shares.
        elected: the writes of leaders.
        reviews: how many requests webhooks were asked about.
        refused: those that failed for a webhook.
        applied, pruned: how many writes of children there were, and how many deletions.
        created: how often each child was created.
        wrongly_pruned: the children that were deleted although they always belonged to their owner.
    """

    def __init__(self, folder: Path) -> None:
        self._log = AuditLog(folder)
        self.ring = Observer(folder, RING)
        self.elected: list[Elected] = []
        self.reviews = 0
        self.refused: list[Refused] = []
        self.applied = self.pruned = 0
        self.created: dict[str, int] = {}
        self.wrongly_pruned: list[str] = []

    def read(self) -> None:
        for event in self._log.events():
            if event["stage"] == "ResponseComplete":
                self._take(event)

    async def follow(self) -> None:
        while True:
            self.read()
            await asyncio.sleep(0.1)

    def _take(self, event: Mapping[str, Any]) -> None:
        code, about = event["responseStatus"]["code"], event["objectRef"]
        name = about.get("name") or event.get("requestObject", {}).get("metadata", {}).get("generateName", "")
        if about["resource"] == "secrets":
            if code < 300 and "-webhook-ca" not in name:
                self._take_child(event["verb"], name, code)
            return
        message = str(event["responseStatus"].get("message", ""))
        if "webhook" in message:
            at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            self.refused.append(Refused(at, f"{event['verb']} {name}: {message}"))
        is_reviewed = name.startswith(("web-", "elected-", "probe-")) and event["verb"] != "delete"
        self.reviews += is_reviewed and (code < 300 or "webhook" in message)
        if code >= 300 or "dryRun=All" in event["requestURI"]:
            return
        self.ring.take(event)
        sent = event.get("requestObject", {}).get("data", {})
        if name.startswith("elected-") and "by" in sent:
            version = int(event["responseObject"]["metadata"]["resourceVersion"])
            self.elected.append(Elected(version, sent["by"], int(sent["epoch"])))

    def _take_child(self, verb: str, name: str, code: int) -> None:
        if verb == "delete":
            self.pruned += 1
            if name.endswith(KEPT):
                self.wrongly_pruned.append(name)
            return
        self.applied += 1
        if code == 201:
            self.created[name] = self.created.get(name, 0) + 1

    def leaders(self) -> list[str]:
        """Return what two leaders at a time have written."""
        found, last = [], Elected(0, "", -1)
        for each in sorted(self.elected):
            if each.token < last.token or (each.token == last.token and each.by != last.by):
                found.append(f"{last.by} in term {last.token}, and then {each.by} in {each.token}")
            last = each
        return found


class Changed:
    """The changes of objects.

    Attributes:
        counts, sequence: how often each object was changed, and the number of its last change.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.counts = dict.fromkeys(names, 0)
        self.sequence = dict(self.counts)

    def add(self, name: str, number: int) -> None:
        self.counts[name] += 1
        self.sequence[name] = number

    def unprocessed(self, objects: list[dict[str, Any]]) -> list[str]:
        """Return the objects whose last change is not processed."""
        data = {each["metadata"]["name"]: each["data"] for each in objects}
        return [name for name, number in self.sequence.items() if not int(data[name].get("done", -1)) >= number]

    def unfit(self, secrets: list[dict[str, Any]]) -> list[str]:
        """Return the children that are missing, or too many."""
        found = {each["metadata"]["name"] for each in secrets if "child" in each["metadata"].get("labels", {})}
        wanted = {f"{name}-{child}" for name, count in self.counts.items() for child in children_of(count).split(",")}
        return sorted(found ^ wanted)


class Load:
    """Changes objects, and asks for reviews of objects that are not stored.

    Attributes:
        changed: the changes that have succeeded.
        failed: how many changes have failed.
        ending: set to end `run` and `probe`.
    """

    def __init__(self, operator: Operator, path: str) -> None:
        self._operator = operator
        self._path = path
        names = [*(f"web-{at:02}" for at in range(SHARED)), *(f"elected-{at:02}" for at in range(ELECTED))]
        self.changed = Changed(names)
        self.failed = 0
        self.ending = asyncio.Event()

    async def create(self) -> None:
        for name in self.changed.counts:
            metadata = {"name": name, "labels": {"app": name.split("-")[0]}}
            await self._operator.create(
                self._path, {"metadata": metadata, "data": {"seq": "0", "children": children_of(0)}}
            )

    async def run(self) -> None:
        names, number = list(self.changed.counts), 0
        while not self.ending.is_set():
            number += 1
            began = time.monotonic()
            await self._change(names[number * 7 % len(names)], number)
            await asyncio.sleep(max(0.0, began + 1 / RATE - time.monotonic()))

    async def _change(self, name: str, number: int) -> None:
        data = {"seq": str(number), "children": children_of(self.changed.counts[name] + 1)}
        url = f"{self._operator._server}{self._path}/{name}"
        async with self._operator._session.patch(url, data=json.dumps({"data": data}), headers=_PATCH) as response:
            if response.status != 200:
                self.failed += 1
                return
        self.changed.add(name, number)

    async def probe(self) -> None:
        body = {"metadata": {"name": "probe-0", "labels": {"app": "probe"}}}
        while not self.ending.is_set():
            await self._operator.request("POST", f"{self._path}?dryRun=All", body)
            await asyncio.sleep(0.03)

    async def until_called(self) -> None:
        """Wait until the API server reaches the webhooks."""
        body = {"metadata": {"name": "probe-0", "labels": {"app": "probe"}}}
        in_a_row = 0
        while in_a_row < 20:
            status, _ = await self._operator.request("POST", f"{self._path}?dryRun=All", body)
            in_a_row = in_a_row + 1 if status == 201 else 0
            await asyncio.sleep(0.05)


class Fleet:
    """The replicas, and the Service before their webhooks.

    Attributes:
        running: the replicas by name.
        moves: what was done to them.
        kills: from when until when the Service had a replica that was killed.
        ends: from when until when a replica of the earlier version ended.
    """

    def __init__(self, cluster: RealCluster, operator: Operator, service: Service, path: str, folder: Path) -> None:
        self._cluster = cluster
        self._operator = operator
        self._service = service
        self._path = path
        self._folder = folder
        self.running: dict[str, Replica] = {}
        self.moves: list[str] = []
        self.kills: list[tuple[float, float]] = []
        self.ends: list[tuple[float, float]] = []
        self._former: set[Replica] = set()

    async def start(self, name: str, version: str) -> None:
        namespace = self._path.split("/")[4]
        package = self._folder / "former" if version == "old" else None
        replica = Replica(
            namespace,
            str(self._cluster.kubeconfig),
            "tests.real.e2e.upgrade_replica",
            name,
            package=package,
            log=self._folder / f"{version}-{name}.log",
        )
        await replica.start()
        self.running[name] = replica
        if package is not None:
            self._former.add(replica)
        await replica.until_ready()
        self._service.endpoints.append(replica.port)

    async def replace(self, former: str, name: str, version: str) -> None:
        """Replace a replica as a rolling update does."""
        await self._step(f"{former} is replaced by {name} ({version})")
        await self.start(name, version)
        replica = self.running.pop(former)
        if replica in self._former:
            await asyncio.sleep(LAG)
            self._service.endpoints.remove(replica.port)
            began = time.time()
            code = await replica.end()
            self.ends.append((began, time.time()))
        else:
            ending = asyncio.create_task(replica.end())
            await asyncio.sleep(LAG)
            self._service.endpoints.remove(replica.port)
            code = await ending
        if code:
            raise RuntimeError(f"replica {former} ended with {code}")
        await self.settled()

    async def kill(self, former: str, name: str, version: str) -> None:
        """Kill a replica, and start another one in its place."""
        await self._step(f"{former} is killed, and {name} ({version}) starts")
        replica = self.running.pop(former)
        began = time.time()
        await replica.kill()
        await asyncio.sleep(LAG)
        self._service.endpoints.remove(replica.port)
        self.kills.append((began, time.time()))
        await self.start(name, version)
        await self.settled()

    async def _step(self, move: str) -> None:
        print(f"{time.strftime('%T')} {move}", file=sys.stderr)
        self.moves.append(move)

    async def settled(self) -> None:
        """Wait until the replicas share all slots."""
        names = {f"{RING}-{each}" for each in self.running}

        async def are_owners() -> bool:
            status, ring = await self._operator.request("GET", f"{self._path}/{RING}-ring")
            if status != 200:
                return False
            slots = json.loads(ring["data"]["ring.json"])["ring"]["slots"]
            return {"" if to else owner for owner, _, to in slots} == names

        await until(are_owners)

    def authorities(self, version: str) -> int:
        """Return how many CAs replicas of a version have made."""
        logs = [each.read_text(errors="replace") for each in self._folder.glob(f"{version}-*.log")]
        return sum(each.count("has a new CA") for each in logs)

    async def renewed(self, version: str) -> None:
        """Wait until a replica of this version has made a CA."""
        before = self.authorities(version)

        async def has_made_one() -> bool:
            return self.authorities(version) > before

        await until(has_made_one)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def run_upgrade(cluster: RealCluster, operator: Operator, folder: Path) -> dict[str, Any]:
    """Replace the replicas there and back, and return what was observed."""
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "upgrade-"}})
    path = f"/api/v1/namespaces/{created['metadata']['name']}/configmaps"
    audit, load = Audit(folder), Load(operator, path)
    await load.create()
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(Service())
        fleet = Fleet(cluster, operator, service, path, folder)
        stack.push_async_callback(_kill_all, fleet)
        for name in ("a1", "b1", "c1"):
            await fleet.start(name, "old")
        await fleet.settled()
        await _register(operator, service, path)
        await load.until_called()
        audit.read()
        first, ignored = time.time(), len(audit.refused)
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(audit.follow()), tasks.create_task(watch(audit.ring, operator, path))]
            loads = [tasks.create_task(each()) for each in (load.run, load.probe, load.probe)]
            await fleet.replace("a1", "a2", "new")
            await fleet.kill("b1", "b2", "new")
            await fleet.kill("a2", "a3", "new")
            await fleet.replace("c1", "c2", "new")
            await fleet.renewed("new")
            await fleet.replace("a3", "a4", "old")
            await fleet.kill("b2", "b3", "old")
            await fleet.kill("a4", "a5", "old")
            await fleet.replace("c2", "c3", "old")
            await fleet.renewed("old")
            load.ending.set()
            await asyncio.gather(*loads)
            seconds = time.time() - first
            await until(lambda: _is_done(operator, path, load.changed))
            for task in following:
                task.cancel()
        audit.read()
        _, children = await operator.request("GET", path.replace("configmaps", "secrets"))
        _, objects = await operator.request("GET", path)
        await asyncio.gather(*(each.end() for each in fleet.running.values()))
    del audit.refused[:ignored]
    cut_off = [each for each in audit.refused if _CUT_OFF.search(each.message)]
    killed = [each for each in cut_off if _is_within(each.at, fleet.kills)]
    ended = [each for each in cut_off if _is_within(each.at, fleet.ends) and each not in killed]
    faults = faults_of(audit, load.changed, objects["items"], children["items"], [*killed, *ended])
    return {
        "seconds": round(seconds, 1),
        **figures_of(audit, load, fleet, killed, ended),
        "faults": {name: found[:5] for name, found in faults.items() if found},
    }


async def _kill_all(fleet: Fleet) -> None:
    for each in fleet.running.values():
        await each.kill()


async def _register(operator: Operator, service: Service, path: str) -> None:
    namespace = path.split("/")[4]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    selectors = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    }
    for kind, purpose in (("MutatingWebhookConfiguration", "default"), ("ValidatingWebhookConfiguration", "validate")):
        url = f"https://127.0.0.1:{service.port}/{purpose}/configmaps"
        hook = webhook("hook", {"url": url}, rules=[rule], **selectors)
        body = configuration(kind, hook, name=f"hooks.{namespace}")
        await operator.create(f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s", body)


async def _is_done(operator: Operator, path: str, changed: Changed) -> bool:
    """Return whether all changes are processed, and all objects have their children."""
    _, objects = await operator.request("GET", path)
    _, secrets = await operator.request("GET", path.replace("configmaps", "secrets"))
    return not changed.unprocessed(objects["items"]) and not changed.unfit(secrets["items"])


def faults_of(
    audit: Audit,
    changed: Changed,
    objects: list[dict[str, Any]],
    secrets: list[dict[str, Any]],
    lost: list[Refused],
) -> dict[str, list[str]]:
    """Return what is wrong.

    Args:
        audit: has read all of the log.
        changed: the changes of objects.
        objects, secrets: the objects and their children in the end.
        lost: the refused reviews that are no fault.
    """
    twice = [name for name, count in audit.created.items() if name.endswith(KEPT) and count > 1]
    return {
        "objects with two owners": [how for some in audit.ring.violations().values() for _, how in some],
        "terms with two leaders": audit.leaders(),
        "children pruned that belong to their owner": audit.wrongly_pruned + twice,
        "children that are missing or too many": changed.unfit(secrets),
        "reviews refused": [each.message for each in audit.refused if each not in lost],
        "changes not processed": changed.unprocessed(objects),
    }


def figures_of(audit: Audit, load: Load, fleet: Fleet, killed: list[Refused], ended: list[Refused]) -> dict[str, Any]:
    """Return how much has happened."""
    histories = dict(audit.ring.histories())
    return {
        "versions": f"{COMMIT}, this one, and back",
        "moves": fleet.moves,
        "changes": sum(load.changed.counts.values()),
        "changes that failed": load.failed,
        "writes of members": sum(bool(each.by) for some in histories.values() for each in some),
        "rings": len(audit.ring.ring),
        "writes of leaders": len(audit.elected),
        "terms": len({each.token for each in audit.elected}),
        "reviews": audit.reviews,
        "reviews cut off by a killed replica": len(killed),
        "reviews cut off by the end of an earlier version": len(ended),
        "children written": audit.applied,
        "children pruned": audit.pruned,
        "CAs made by the old version": fleet.authorities("old"),
        "CAs made by the new version": fleet.authorities("new"),
        "s from a change to its write": quantiles([each for began, each in audit.ring.delays() if each < float("inf")]),
    }


def _is_within(at: float, spans: list[tuple[float, float]]) -> bool:
    return any(began <= at <= ended + 1 for began, ended in spans)


async def measure(tools: Path, logs: Path | None) -> dict[str, Any]:
    """Run it on a cluster of its own; copy the logs of the replicas to a folder."""
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        (folder / "former").mkdir()
        extract_former(folder / "former")
        cluster = RealCluster(tools, folder / "data", audited(folder, "secrets"))
        cluster.up()
        try:
            async with Operator(cluster) as operator:
                return await run_upgrade(cluster, operator, folder)
        finally:
            if logs is not None:
                shutil.copytree(folder, logs, ignore=shutil.ignore_patterns("data", "former*"), dirs_exist_ok=True)
            cluster.down()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Path, help="a folder for the logs of the replicas and of the API server's audit")
    options = parser.parse_args()
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        parser.error("AIOINFORMER_TEST_CLUSTER must name the folder with the tools of the cluster")
    try:
        found = asyncio.run(measure(Path(tools), options.logs))
    except pytest.skip.Exception as reason:
        parser.error(str(reason))
    print(json.dumps(found, indent=2))
    sys.exit(bool(found["faults"]))


if __name__ == "__main__":
    main()
