"""The writes of a reconciler are checked before they are sent: declared, permitted by the fence, and no dry run."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.cache.objects.record import decode_record
from aioinformer.client.requests import PATCHES
from aioinformer.client.targets import target_of
from aioinformer.controller.errors import UndeclaredWrite
from aioinformer.controller.writes import OwnWrites, WritePolicy
from aioinformer.controller.writes.dry_run import pretend
from aioinformer.controller.writes.permits import Leaving, Permit
from aioinformer.errors import ApiError, ApiNotFound, OptionError, TransportError, UsageError, WriteOutcomeUnknown
from aioinformer.leaderelection import LeadershipLost
from aioinformer.transport import HttpRequest
from tests.support.cluster import built_in
from tests.support.written_collection import CONFIG_MAPS, DEPLOYMENTS, PODS, Server
from tests.unit.controller.writes.support import KEY, config_map, running, settling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer import Client
    from aioinformer.client import ResourceClient
    from aioinformer.client.targets import Target
    from aioinformer.transport import Response

SECRETS = built_in("v1/secrets")


WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.core.v1.configmaps.create(config_map("b")),
    "replace": lambda client: client.core.v1.configmaps.replace(config_map("a")),
    "delete": lambda client: client.core.v1.configmaps.delete("shop/a"),
    "delete collection": lambda client: client.core.v1.configmaps.delete_collection(namespace="shop"),
    "patch scale": lambda client: client.apps.v1.deployments.scale.patch("shop/a", {"spec": {"replicas": 2}}),
    "patch status": lambda client: client.apps.v1.deployments.status.patch("shop/a", {"status": {"replicas": 2}}),
    "evict": lambda client: client.core.v1.pods.evict("shop/a"),
}


@pytest.fixture
def server() -> Server:
    """Return a server with a ConfigMap, a Deployment and a Pod of the name `a`."""
    server = Server()
    for plural in ("configmaps", "deployments", "pods", "secrets"):
        server.put(plural, {**config_map("a"), "spec": {"replicas": 1}})
    return server


# The fence.


class Fence:
    """A term of leadership that ends after a number of calls, or at a time."""

    def __init__(self, calls: int, seconds: float | None = None) -> None:
        self.left = calls
        self.seconds = seconds

    def __call__(self) -> float | None:
        if not self.left:
            raise LeadershipLost("lost")
        self.left -= 1
        return self.seconds


@pytest.mark.behaviour("C-46")
async def test_each_attempt_needs_the_permission_of_the_fence(server: Server) -> None:
    async with running(server, policy=WritePolicy(fence=Fence(0))) as writes:
        maps = writes.client(KEY, fence=Fence(2)).core.v1.configmaps
        await maps.create(config_map("b"))
        server.fault = lambda request: "busy"
        with pytest.raises(LeadershipLost):
            await maps.create(config_map("c"))
        assert len(server.writes) == 2
        await maps.get("shop/a")
        with pytest.raises(LeadershipLost):
            await writes.client(KEY).core.v1.configmaps.create(config_map("d"))
        assert len(server.writes) == 2


@pytest.mark.behaviour("C-46")
async def test_write_under_way_ends_with_the_leadership(server: Server) -> None:
    async with running(server, informer := server.informer(), policy=WritePolicy(fence=Fence(1, 3.0))) as writes:
        server.answers.clear()
        begun = asyncio.get_running_loop().time()
        with pytest.raises(WriteOutcomeUnknown, match="before the leadership ended"):
            await writes.client(KEY).core.v1.configmaps.create(config_map("b"))
        assert 3 <= asyncio.get_running_loop().time() - begun < 4
        await settling(writes)
        assert informer.get_indexer().get_by_key("shop/b")


async def test_slow_write_is_awaited_while_the_leadership_lasts(server: Server) -> None:
    async with running(server, policy=WritePolicy(fence=Fence(6, 3.0))) as writes:
        answers = server.hold_answers()
        write = asyncio.create_task(writes.client(KEY).core.v1.configmaps.create(config_map("b")))
        await asyncio.sleep(8)
        answers.set()
        assert (await write).metadata.name == "b"


class Connecting:
    """A transport that connects to the server for ever, and asks for permission afterwards."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def request(self, request: HttpRequest) -> Response:
        if request.check is not None:
            request.check.unsent = True
            await asyncio.Event().wait()
        return await self._server.request(request)


@pytest.mark.behaviour("C-111")
async def test_write_that_waits_for_a_connection_ends_unsent(server: Server) -> None:
    async with running(server, informer := server.informer()):
        own = OwnWrites(lambda group, plural: [informer], Connecting(server))
        maps = own.client(KEY, fence=Fence(1, 3.0)).core.v1.configmaps
        with pytest.raises(LeadershipLost):
            await maps.create(config_map("b"))
        assert not own.pending(KEY)
        maps = own.client(KEY, fence=Fence(1, None)).core.v1.configmaps
        with pytest.raises(TransportError) as failure:
            await maps.create(config_map("b"), timeout=2)
        assert not isinstance(failure.value, WriteOutcomeUnknown)
        assert not own.pending(KEY)


# Permits.


class Owning(Permit):
    """A permit that knows the uid of each object, or has it read before, and records what leaves."""

    def __init__(self, uid: str = "", *, reads: bool = False) -> None:
        super().__init__(lambda: None)
        self.uid = uid
        self.reads = reads
        self.left: list[Leaving] = []

    def check(self, write: Leaving) -> float | None:
        self.left.append(write)
        return None

    def must_read(self, target: Target, request: HttpRequest) -> bool:
        return self.reads

    def uid_of(self, target: Target) -> str:
        return self.uid


NAMED: dict[str, tuple[Callable[[Client], Awaitable[Any]], Any]] = {
    "replace": (
        WRITES["replace"],
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "own"}},
    ),
    "merge patch": (
        lambda client: client.core.v1.configmaps.patch("shop/a", {"data": {"n": "1"}}),
        {"data": {"n": "1"}, "metadata": {"uid": "own"}},
    ),
    "JSON patch": (
        lambda client: client.core.v1.configmaps.patch("shop/a", [{"op": "remove", "path": "/data/n"}], "json"),
        [{"op": "test", "path": "/metadata/uid", "value": "own"}, {"op": "remove", "path": "/data/n"}],
    ),
    "status": (WRITES["patch status"], {"status": {"replicas": 2}, "metadata": {"uid": "own"}}),
    "scale": (WRITES["patch scale"], {"spec": {"replicas": 2}, "metadata": {"uid": "own"}}),
    "delete": (
        WRITES["delete"],
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "own"}},
    ),
    "delete one version": (
        lambda client: client.core.v1.configmaps.delete("shop/a", resource_version="7"),
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "7", "uid": "own"}},
    ),
    "delete another object": (
        lambda client: client.core.v1.configmaps.delete("shop/a", uid="other"),
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}},
    ),
    "replace another object": (
        lambda client: client.core.v1.configmaps.replace(config_map("a", uid="other")),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "other"}},
    ),
}


@pytest.mark.parametrize("write", NAMED)
async def test_write_names_the_uid_that_its_permit_knows(server: Server, write: str) -> None:
    send, body = NAMED[write]
    server.fault = lambda request: "422"
    async with running(server) as writes:
        for uid in "own", "":
            with pytest.raises(ApiError):
                await send(writes.client(KEY, permit=Owning(uid)))
    named, plain = (msgspec.json.decode(each.body or b"{}") for each in server.writes)
    assert named == body
    if isinstance(body, list):
        assert plain == body[1:]
    elif "another" in write:
        assert plain in (body, {"preconditions": {"uid": "other"}})
    else:
        assert "own" not in str(plain)


@pytest.mark.parametrize(
    ("options", "preconditions"),
    [
        ({}, {"uid": "own"}),
        ({"resource_version": "7"}, {"uid": "own", "resourceVersion": "7"}),
        ({"uid": "other"}, {"uid": "other"}),
    ],
    ids=["plain", "version", "uid"],
)
async def test_eviction_names_the_uid_beside_its_own_preconditions(
    server: Server, options: dict[str, Any], preconditions: dict[str, str]
) -> None:
    server.fault = lambda request: "422"
    async with running(server) as writes:
        with pytest.raises(ApiError):
            await writes.client(KEY, permit=Owning("own")).core.v1.pods.evict("shop/a", grace=5, **options)
    sent = msgspec.json.decode(server.writes[0].body or b"")["deleteOptions"]
    assert sent["preconditions"] == preconditions
    assert sent["gracePeriodSeconds"] == 5


class Ending(Owning):
    """A permit that is refused once it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def check_right(self, write: Leaving) -> float | None:
        if self.ended:
            raise LeadershipLost("lost")
        return None


class Carried:
    """The connection of a write."""

    def __init__(self) -> None:
        self.aborted = 0

    def abort(self) -> None:
        self.aborted += 1


async def test_refused_write_without_an_answer_is_aborted_and_no_other(server: Server) -> None:
    carried: dict[str, Carried] = {}

    def carry(request: HttpRequest) -> str:
        assert request.check is not None
        request.check.carrier = carried[str(msgspec.json.decode(request.body or b"")["metadata"]["name"])] = Carried()
        return ""

    server.fault = carry
    permit, other = Ending(), Ending()
    other.unanswered = permit.unanswered
    async with running(server) as writes:
        maps, others = (writes.client(KEY, permit=each).core.v1.configmaps for each in (permit, other))
        await maps.create(config_map("answered"))
        answers = server.hold_answers()
        async with asyncio.TaskGroup() as tasks:
            for client, name in ((maps, "refused"), (others, "permitted")):
                tasks.create_task(client.create(config_map(name)))
            await asyncio.sleep(1)
            permit.unanswered.abort_refused()
            assert not any(each.aborted for each in carried.values())
            permit.ended = True
            permit.unanswered.abort_refused()
            assert {name: each.aborted for name, each in carried.items()} == {
                "answered": 0,
                "refused": 1,
                "permitted": 0,
            }
            answers.set()
        permit.unanswered.abort_refused()
        assert carried["refused"].aborted == 1


class Stale(Owning):
    """A permit that refuses what changes something."""

    def check(self, write: Leaving) -> float | None:
        raise LeadershipLost("the caches are stale")


async def test_dry_run_by_the_server_needs_the_right_alone(server: Server) -> None:
    async with running(server) as writes:
        maps = writes.client(KEY, permit=Stale()).core.v1.configmaps
        with pytest.raises(LeadershipLost):
            await maps.create(config_map("b"))
        assert server.writes == []
        await maps.create(config_map("b"), dry_run=True)
        assert dict(server.writes[0].query)["dryRun"] == "All"


async def test_object_of_a_write_is_read_before_if_its_permit_asks_for_it(server: Server) -> None:
    async with running(server) as writes:
        permit = Owning(reads=True)
        client = writes.client(KEY, permit=permit)
        for name in "replace", "patch status":
            await WRITES[name](client)
            read, sent, left = server.reads.pop(), server.writes[-1], permit.left.pop()
            assert read.path == sent.path.removesuffix("/status")
            assert (read.query, read.body, server.reads) == ((), None, [])
            uid = server.objects["configmaps" if name == "replace" else "deployments"]["shop/a"]["metadata"]["uid"]
            assert msgspec.json.decode(sent.body or b"")["metadata"]["uid"] == uid
            assert msgspec.json.decode(left.stored or b"")["metadata"]["uid"] == uid
            assert left.body == sent.body


@pytest.mark.parametrize(
    ("write", "sent"),
    [
        (lambda client: client.core.v1.configmaps.apply(config_map("z"), field_manager="it"), True),
        (lambda client: client.core.v1.configmaps.replace(config_map("z")), True),
        (lambda client: client.core.v1.configmaps.patch("shop/z", {"data": {"n": "1"}}), False),
        (lambda client: client.core.v1.configmaps.delete("shop/z"), False),
        (lambda client: client.apps.v1.deployments.status.patch("shop/z", {"status": {}}), False),
    ],
    ids=["apply", "replace", "patch", "delete", "patch status"],
)
async def test_write_of_a_missing_object_is_sent_only_if_it_may_make_it(
    server: Server, write: Callable[[Client], Awaitable[Any]], sent: bool
) -> None:
    async with running(server) as writes:
        permit = Owning(reads=True)
        with suppress(ApiNotFound):
            await write(writes.client(KEY, permit=permit))
        assert [each.stored for each in permit.left] == [None] * sent
        assert len(server.writes) == sent


async def test_write_whose_object_cannot_be_read_is_not_sent(server: Server) -> None:
    server.refuse_reads = 403
    async with running(server) as writes:
        for name in "replace", "delete", "patch status":
            with pytest.raises(ApiError):
                await WRITES[name](writes.client(KEY, permit=Owning(reads=True)))
    assert server.writes == []


# Declared writes.


@pytest.mark.behaviour("C-47")
@pytest.mark.parametrize(
    ("write", "resource", "verb"),
    [
        ("create", CONFIG_MAPS, "create"),
        ("replace", CONFIG_MAPS, "update"),
        ("delete", CONFIG_MAPS, "delete"),
        ("delete collection", CONFIG_MAPS, "deletecollection"),
        ("patch status", DEPLOYMENTS, "patch"),
        ("patch status", DEPLOYMENTS, "status/patch"),
        ("patch scale", DEPLOYMENTS, "scale/patch"),
        ("evict", PODS, "eviction/create"),
    ],
)
async def test_undeclared_write_is_refused(server: Server, write: str, resource: Any, verb: str) -> None:
    # The roles that `aioinformer check` prints do not permit any other subresource than the status, either.
    plain = ("patch",) if verb == "scale/patch" else ()
    others = {CONFIG_MAPS: (), DEPLOYMENTS: ("update", *plain), PODS: ("delete", "create")}
    async with running(server, policy=WritePolicy(others, strict=True)) as writes:
        with pytest.raises(UndeclaredWrite, match="is not declared"):
            await WRITES[write](writes.client(KEY))
        assert server.writes == []
    async with running(server, policy=WritePolicy({**others, resource: (verb,)}, strict=True)) as writes:
        await WRITES[write](writes.client(KEY))
        assert len(server.writes) == 1


@pytest.mark.behaviour("C-47")
async def test_verb_includes_the_status_of_the_own_resource_alone(server: Server) -> None:
    declared = {DEPLOYMENTS: ("patch",)}
    async with running(server, policy=WritePolicy(declared, strict=True, status_of=CONFIG_MAPS)) as writes:
        with pytest.raises(UndeclaredWrite, match=r"add 'status/patch' for deployments\.apps"):
            await WRITES["patch status"](writes.client(KEY))
    async with running(server, policy=WritePolicy(declared, strict=True, status_of=DEPLOYMENTS)) as writes:
        await WRITES["patch status"](writes.client(KEY))
    assert len(server.writes) == 1


@pytest.mark.behaviour("C-47")
async def test_undeclared_write_is_warned_of_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with running(server, policy=WritePolicy({DEPLOYMENTS: ("update",)})) as writes:
        for name in ("patch scale", "patch status") * 2:
            await WRITES[name](writes.client(KEY))
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [message.partition(";")[0] for message in warnings] == [
        f"patch deployments.apps/{part} shop/a is not declared: add '{part}/patch' for deployments.apps to writes= "
        "of the controller"
        for part in ("scale", "status")
    ]
    with pytest.raises(OptionError, match=r"v1/configmaps has 'replace'; the verbs are create, update"):
        WritePolicy({CONFIG_MAPS: ("replace",)})


# Dry runs.


@pytest.mark.behaviour("C-48")
async def test_dry_run_logs_writes_and_sends_none(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    server.put("configmaps", {**config_map("a", labels={"app": "x"}), "data": {"n": "1", "m": "1"}})
    informers = server.informer(), server.informer(DEPLOYMENTS)
    async with running(server, *informers, policy=WritePolicy(dry_run=True), field_manager="test") as writes:
        client = writes.client(KEY)
        maps: ResourceClient[Any] = client.core.v1.configmaps
        made = await maps.create({"metadata": {"generateName": "b-", "namespace": "shop"}})
        assert (made.metadata.name, made.metadata.namespace) == ("b-dryrun", "shop")
        assert made.metadata.uid
        changed = await maps.patch("shop/a", {"data": {"n": "2", "m": None}})
        assert dict(changed.data) == {"n": "2"}
        assert changed.metadata.uid == server.objects["configmaps"]["shop/a"]["metadata"]["uid"]
        assert server.reads == []
        assert (await maps.patch("shop/a", [{"op": "remove", "path": "/data/n"}], "json")).metadata.name == "a"
        assert (await maps.apply({**config_map("c"), "data": {"n": "1"}})).data["n"] == "1"
        scale: Any = await client.apps.v1.deployments.scale.patch("shop/a", {"spec": {"replicas": 5}})
        assert (scale.spec.replicas, len(server.reads)) == (5, 2)
        with pytest.raises(ApiNotFound):
            await maps.patch("shop/none", {"data": {"n": "1"}})
        gone = await maps.delete("shop/a")
        assert gone.status == "Success"
        assert (await client.core.v1.pods.evict("shop/a")).status == "Success"
        await client.core.v1.secrets.create({**config_map("s"), "stringData": {"password": "hunter2"}})
        await maps.delete_collection("app=x", namespace="shop")
        assert not writes.pending(KEY)
    assert server.writes == []
    lines = [record.getMessage() for record in caplog.records]
    assert lines[3:12] == [
        "dry run: patch configmaps shop/a is not sent:",
        *("  ~ data.n", "  - data.m"),
        "dry run: patch configmaps shop/a is not sent:",
        "  * remove /data/n",
        "dry run: patch configmaps shop/c is not sent:",
        *("  + metadata.name", "  + metadata.namespace", "  + data.n"),
    ]
    lines = [line for line in lines if line.startswith("dry run")]
    assert lines[5] == "dry run: patch configmaps shop/none is not sent, and would fail: 404 NotFound"
    assert lines[-1] == "dry run: deletecollection configmaps in shop with a labelSelector is not sent"
    assert len(lines) == 10
    assert "hunter2" not in caplog.text


async def change(
    old: dict[str, Any], new: Any, *, plural: str = "configmaps", values: bool = True, patch: str = ""
) -> list[str]:
    """Return the lines that a dry run logs for a replacement, or a patch, of the cached object."""
    cached = decode_record(msgspec.json.encode(old))
    method = "PATCH" if patch else "PUT"
    body = msgspec.json.encode(new)
    request = HttpRequest(f"/api/v1/namespaces/shop/{plural}/a", (), method, {"Content-Type": patch}, body)
    target = target_of(request)
    assert target is not None
    return (await pretend(target, request, cached, None, values=values)).lines  # type: ignore[arg-type]


@pytest.mark.behaviour("C-48")
async def test_change_of_a_dry_run_names_members() -> None:
    old = {
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "1", "labels": {"app.io/name": "x"}},
        "spec": {"containers": [{"name": "one", "args": ["a", "b"]}, {"name": "two"}], "gone": {"deep": 1}},
    }
    new = {
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "1", "labels": {"app.io/name": "\x1b[0m"}},
        "spec": {"containers": [{"name": "one", "args": ["a"]}, {"name": "two"}, {"name": "three"}]},
    }
    assert await change(old, new) == [
        "- metadata.labels['app.io/name']: \"x\"",
        "+ metadata.labels['app.io/name']: \"\\u001b[0m\"",
        '- spec.containers.0.args: ["a","b"]',
        '+ spec.containers.0.args: ["a"]',
        '+ spec.containers.2.name: "three"',
        "- spec.gone.deep: 1",
    ]
    assert await change(old, new, values=False) == [
        "~ metadata.labels['app.io/name']",
        "~ spec.containers.0.args",
        "+ spec.containers.2.name",
        "- spec.gone.deep",
    ]
    assert await change(old, old) == []


@pytest.mark.behaviour("C-48")
async def test_operations_of_a_dry_run_have_values_on_request_only() -> None:
    old = {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "1"}, "data": {"n": "1"}}
    operations = [
        {"op": "test", "path": "/data/n", "value": "hunter2"},
        {"op": "copy", "path": "/data/m", "from": "/data/n"},
        {"op": "remove", "path": "/data/n"},
    ]
    rest = ["* copy /data/m from /data/n", "* remove /data/n"]
    assert await change(old, operations, patch=PATCHES["json"], values=False) == ["* test /data/n", *rest]
    assert await change(old, operations, patch=PATCHES["json"]) == ['* test /data/n: "hunter2"', *rest]


@pytest.mark.behaviour("C-48")
async def test_change_of_a_dry_run_hides_secret_values() -> None:
    metadata = {"name": "a", "namespace": "shop", "resourceVersion": "1"}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"p":"hunter1"}}'}
    old = {"metadata": metadata, "data": {"p": "hunter2", "same": "hunter3"}, "type": "Opaque"}
    new = {"metadata": {**metadata, "annotations": applied, "managedFields": [{"f:p": "hunter4"}]}}
    lines = await change(
        old, {**new, "data": {"p": "hunter5", "same": "hunter3"}, "stringData": {"q": "hunter6"}}, plural="secrets"
    )
    assert lines == [
        "+ metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']: <redacted>",
        "- data.p: <redacted>",
        "+ data.p: <redacted>",
        '- type: "Opaque"',
        "+ stringData.q: <redacted>",
    ]
    assert "hunter" not in "".join(await change(old, {**new, "data": None, "stringData": "hunter7"}, plural="secrets"))
    assert "hunter1" not in "".join(await change(old, new))


@pytest.mark.behaviour("C-48")
async def test_change_of_a_dry_run_is_bounded() -> None:
    metadata = {"name": "a", "namespace": "shop", "resourceVersion": "1"}
    data = {f"key{number}": "x" * 10_000 for number in range(100)}
    lines = await change({"metadata": metadata}, {"metadata": metadata, "data": data})
    assert len(lines) == 41
    assert lines[-1] == "… and 60 more lines"
    assert max(map(len, lines)) < 250


@pytest.mark.behaviour("C-48")
async def test_dry_run_patches_the_live_object_if_the_cache_has_a_part(server: Server) -> None:
    server.put("configmaps", {**config_map("a"), "data": {"n": "1", "m": "1"}})
    informer = server.informer(storage="projection", fields=["data.n"])
    async with running(server, informer, policy=WritePolicy(dry_run=True)) as writes:
        changed = await writes.client(KEY).core.v1.configmaps.patch("shop/a", {"data": {"n": "2"}})
        assert changed.data == {"n": "2", "m": "1"}
    assert server.writes == []


async def test_copies_of_the_client_record_their_writes(server: Server) -> None:
    server.delay = lambda: 2.0
    async with running(server) as writes:
        client = writes.client(KEY).with_options(field_manager="other")
        await client.resource(CONFIG_MAPS).namespaced("shop").create(config_map("b"))
        assert dict(server.writes[0].query)["fieldManager"] == "other"
        assert writes.pending(KEY)


async def test_each_warning_of_the_server_is_logged_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.warning = "deprecated"
    async with running(server) as writes:
        for name in ("b", "c"):
            await writes.client(KEY).core.v1.configmaps.create(config_map(name))
    assert [record.getMessage() for record in caplog.records] == ["the server warns: deprecated"]


async def test_dry_run_sends_no_raw_write(server: Server) -> None:
    async with running(server, server.informer(), policy=WritePolicy(dry_run=True)) as writes:
        client = writes.client(KEY)
        raw = await client.request("PUT", "/api/v1/namespaces/shop/configmaps/a", body=config_map("a"))
        assert (raw.status, raw.json()["metadata"]["name"]) == (200, "a")
        with pytest.raises(UsageError, match="dry run: POST /reports is not sent"):
            await client.request("POST", "/reports")
    assert server.writes == []
