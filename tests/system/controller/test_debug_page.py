"""The debug page over HTTP: what it says, what it never says, who may read it, and the report at a signal."""

from __future__ import annotations

import ast
import asyncio
import base64
import gc
import json
import os
import re
import signal
import tracemalloc
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import uvicorn
from aiohttp import web

from aioinformer import HttpTransport, ListWatch, SharedIndexInformer
from aioinformer.authorization import Rbac
from aioinformer.controller import LeaderElection, Manager, Owns, Request, TerminalError, Watch
from aioinformer.controller.debug import DebugRequest
from aioinformer.controller.debug import problems as problems_module
from aioinformer.controller.debug.access import refusal
from aioinformer.controller.debug.history import CHANGES, Histories
from aioinformer.controller.debug.recording import writers
from aioinformer.controller.program import reports_at_signal
from aioinformer.controller.scrubbing import scrubbed
from aioinformer.errors import OptionError, UsageError
from aioinformer.handlers.backlog import Batch
from aioinformer.handlers.notifications import UpdateNotification
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from tests.support.loopback import free_port
from tests.support.rights import grant_paths
from tests.support.view_samples import view_of
from tests.support.written_collection import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

PASSWORD = "correct-horse-battery"
ENCODED = base64.b64encode(PASSWORD.encode()).decode().rstrip("=")
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzaG9wIn0.c2lnbmF0dXJl"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def maps(request: Request[Any]) -> None:
    if request.name == "parked":
        raise TerminalError("the colour is not known")
    if request.name == "failing":
        raise KeyError(f"password={PASSWORD}")
    if request.name == "hanging":
        await asyncio.sleep(1e6)


class Page:
    """A page on a port, and a client of it."""

    def __init__(self, manager: Manager, session: aiohttp.ClientSession, url: str) -> None:
        self.manager = manager
        self.session = session
        self.url = url

    async def get(self, path: str = "api/report", status: int = 200, **options: Any) -> Any:
        async with self.session.get(f"{self.url}{path}", **options) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return json.loads(text) if answer.content_type == "application/json" else text

    async def key(self, name: str, status: int = 200, controller: str = "maps") -> Any:
        return await self.get("api/key", status, params={"controller": controller, "key": name})

    async def post(self, headers: dict[str, str], name: str = "default/parked") -> int:
        body = json.dumps({"controller": "maps", "key": name})
        async with self.session.post(f"{self.url}api/retry", data=body, headers=headers) as answer:
            return answer.status

    async def until(self, find: Callable[[], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(50):
            while not (found := await find()):  # noqa: ASYNC110 - a state of the wall clock
                await asyncio.sleep(0.05)
        return found

    async def problem(self, see: str) -> dict[str, Any]:
        async def find() -> Any:
            return next((each for each in (await self.get())["problems"] if each["see"] == see), None)

        found: dict[str, Any] = await self.until(find)
        return found


@asynccontextmanager
async def page_with(server: ApiServer, *names: str, client: Any = None, **options: Any) -> AsyncIterator[Page]:
    for name in names:
        server.create("configmaps", config_map(name))
    manager = Manager("shop", client=client or server.url, debug_port=free_port(), grace=0.0)
    manager.debug_app(**options)
    manager.controller(core_v1.CONFIG_MAPS, watches=[Watch(core_v1.SECRETS, to=lambda obj: [])])(maps)
    manager.controller(core_v1.SECRETS, name="secrets")(maps)
    async with manager, aiohttp.ClientSession() as session:
        yield Page(manager, session, f"http://127.0.0.1:{manager.debug_port}/")


# What it says.


async def test_problems_have_remedies_and_keys_their_lines(api_server: ApiServer) -> None:
    async with page_with(api_server, "parked", "failing", "hanging") as page:
        parked = await page.problem("parked")
        assert parked["text"] == "1 key is parked in maps; default/parked: the colour is not known."
        assert (parked["severity"], parked["key"]) == ("error", "default/parked")
        failing = await page.problem("reconciler-fails")
        assert re.search(r"default/failing: \d+ times, KeyError at controller/test_debug_page.py:\d+", failing["text"])
        report = await page.get()
        [running] = report["controllers"]["maps"]["running"]
        assert re.fullmatch(r"controller/test_debug_page.py:\d+ in maps", running["awaits"])
        assert [each["key"] for each in report["keys"]["parked"]] == ["default/parked"]
        assert [each["key"] for each in report["keys"]["running"]] == ["default/hanging"]
        stopped = await page.key("default/parked")
        assert re.fullmatch(
            r"TerminalError at controller/test_debug_page.py:\d+ - the colour is not known",
            stopped["last_error"]["error"],
        )
        hanging, key = await page.key("default/hanging"), await page.key("default/failing")
        assert (hanging["state"], hanging["awaits"]) == ("running", running["awaits"])
        assert hanging["stack"][-1].endswith("in sleep")
        assert key["runs"]["count"] >= 3
        assert (key["next_run"] is None) == (key["state"] == "running")
        caches = {each["cache"]: each for each in report["caches"]}
        assert caches["v1/configmaps"]["transitions"][0]["phase"] == "watching"
        sizes = {each["cache"]: each["objects"] for each in await page.get("api/memory")}
        assert sizes["v1/configmaps"] == 3


async def test_stale_cache_and_its_transitions_are_shown(api_server: ApiServer) -> None:
    async with page_with(api_server, "web") as page:
        await page.until(lambda: asyncio.sleep(0, page.manager.ready()))
        async with api_server.fault("forbidden", resources=["secrets"], verbs=["list", "watch"]):
            await api_server.fault("cut", resources=["secrets"], times=1)
            api_server.create("secrets", config_map("change"))
            found = await page.problem("forbidden")
            assert "The cache of v1/secrets has not followed the server for" in found["text"]
            [cache] = [each for each in (await page.get())["caches"] if each["cache"] == "v1/secrets"]
            phases = [each["phase"] for each in cache["transitions"]]
            assert (phases[0], "watching" in phases) == ("forbidden", True)


def texts_in(node: ast.AST) -> set[str]:
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return {each for each in found if re.fullmatch("[a-z]+(-[a-z]+)*", each)}


def test_every_problem_names_a_section_of_troubleshooting() -> None:
    text = (Path(__file__).parents[3] / "docs/troubleshooting.md").read_text()
    sections = set(re.findall(r"\{ #([a-z0-9-]+) \}", text))
    named: set[str] = set()
    for node in ast.walk(ast.parse(Path(problems_module.__file__).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_problem":
            named |= texts_in(node.args[3])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "see":
            named |= texts_in(node.value)
    named |= {see for _, see in problems_module._PHASES.values()}
    assert {"parked", "attempt-hangs", "blocked", "forbidden", "slots", "lasting-conflict", "reconciler-fails"} <= named
    assert named - sections == set()


async def test_last_five_changes_name_fields_and_managers(api_server: ApiServer) -> None:
    for values in (False, True):
        async with page_with(api_server, f"web-{int(values)}", values=values) as page:
            await page.until(lambda page=page: asyncio.sleep(0, page.manager.ready()))  # type: ignore[misc]
            name = f"web-{int(values)}"
            for size in range(CHANGES + 2):
                applied = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name, size=str(size))}
                async with page.session.patch(
                    f"{api_server.url}/api/v1/namespaces/default/configmaps/{name}",
                    data=json.dumps(applied),
                    headers={"Content-Type": "application/apply-patch+yaml"},
                    params={"fieldManager": f"manager-{size}", "force": "true"},
                ) as answer:
                    assert answer.status == 200

            async def last(page: Page = page, name: str = f"default/{name}") -> Any:
                found = (await page.key(name))["changes"]
                return found if found and f"manager-{CHANGES + 1}" in found[0]["managers"] else None

            changes = await page.until(last)
            assert len(changes) == CHANGES
            assert all(each["what"] == "updated" for each in changes)
            assert changes[0]["lines"] == (
                ['- data.size: "5"', '+ data.size: "6"'] if values else ["data.size changed"]
            )


def test_writers_of_a_change_are_those_whose_entries_differ_or_are_the_latest() -> None:
    def state(size: int, ready: bool, *managers: dict[str, str]) -> dict[str, Any]:
        return {"metadata": {"managedFields": list(managers)}, "spec": {"size": size}, "status": {"ready": ready}}

    scaled = {"manager": "kubectl", "subresource": "scale"}  # kubectl scale leaves no time
    applied = {"manager": "me", "time": "2026-01-01T00:00:01Z"}
    status = {"manager": "controller", "subresource": "status", "time": "2026-01-01T00:00:00Z"}
    entries = scaled, applied, status
    assert writers(state(1, False, applied, status), state(2, False, *entries)) == ["kubectl scale"]
    assert writers(state(1, False, *entries), state(2, False, *entries)) == ["me"]
    assert writers(state(1, False, *entries), state(1, True, *entries)) == ["controller status"]


async def test_changes_that_arrive_together_are_shown_with_the_last_one_first(api_server: ApiServer) -> None:
    async with page_with(api_server, "web", values=True) as page:
        await page.until(lambda: asyncio.sleep(0, page.manager.ready()))
        states = [{"data": {"n": str(n)}} for n in range(CHANGES + 1)]
        changed = [api_server.patch("configmaps", "web", state, "default") for state in states]
        versions = [each["metadata"]["resourceVersion"] for each in changed]

        async def with_the_last() -> Any:
            found = (await page.key("default/web"))["changes"]
            return found if versions[-1] in [each["version"] for each in found] else None

        changes = await page.until(with_the_last)
    assert [each["version"] for each in changes] == versions[:0:-1]
    assert [each["lines"][-1] for each in changes] == [f'+ data.n: "{n}"' for n in range(CHANGES, 0, -1)]


async def test_changes_of_owned_objects_are_shown_at_their_owner_and_hide_none_of_its_own(
    api_server: ApiServer,
) -> None:
    owner = api_server.create("configmaps", config_map("shop"))
    own = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": owner["metadata"]["uid"], "controller": True}
    for plural, name in (("secrets", "db"), ("pods", "web")):
        metadata = {"name": name, "namespace": "default", "labels": {"n": "first"}, "ownerReferences": [own]}
        child = {"metadata": metadata}
        api_server.create(plural, {**child, "data": {"password": ENCODED}} if plural == "secrets" else child)
    manager = Manager("shop", client=api_server.url, debug_port=free_port())
    api_server.create("configmaps", {"metadata": {"name": "part", "namespace": "default", "ownerReferences": [own]}})
    owns: list[Owns[Any]] = [Owns(core_v1.SECRETS), Owns(core_v1.PODS), Owns(core_v1.CONFIG_MAPS)]
    manager.controller(core_v1.CONFIG_MAPS, owns=owns)(maps)
    manager.controller(core_v1.CONFIG_MAPS, name="others", owns=[Owns(core_v1.PODS)])(maps)
    manager.debug_app(values=True)
    async with manager, aiohttp.ClientSession() as session:
        page = Page(manager, session, f"http://127.0.0.1:{manager.debug_port}/")
        await page.until(lambda: asyncio.sleep(0, manager.ready()))

        async def changed(plural: str, name: str, patch: dict[str, Any]) -> list[dict[str, Any]]:
            version = api_server.patch(plural, name, patch, "default")["metadata"]["resourceVersion"]

            async def find() -> Any:
                changes = (await page.key("default/shop"))["changes"]
                return changes if version in [each["version"] for each in changes] else None

            found: list[dict[str, Any]] = await page.until(find)
            return found

        await changed("configmaps", "shop", {"data": {"size": "1"}})
        found = await changed("configmaps", "part", {"data": {"size": "1"}})
        assert [each["child"] for each in found] == ["ConfigMap default/part", ""]
        await changed("secrets", "db", {"data": {"password": ENCODED * 4}})
        for number in range(CHANGES):
            found = await changed("pods", "web", {"metadata": {"labels": {"n": str(number)}}})
            assert found[0]["lines"][-1] == f'+ metadata.labels.n: "{number}"'
            assert ENCODED not in json.dumps(found)
    # Each change once, though two controllers have it. Those of the Secret and of the ConfigMap are too old.
    assert [each["child"] for each in found] == ["Pod default/web"] * CHANGES + [""]
    assert found[-1]["lines"] == ['+ data: {"size":"1"}']


async def test_changes_of_two_informers_of_one_resource_are_shown(api_server: ApiServer) -> None:
    owner = api_server.create("configmaps", config_map("shop"))
    own = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": owner["metadata"]["uid"], "controller": True}
    for tier in "ab":
        metadata = {"name": tier, "namespace": "default", "labels": {"tier": tier}, "ownerReferences": [own]}
        api_server.create("pods", {"metadata": metadata})
    manager = Manager("shop", client=api_server.url, debug_port=free_port())
    for tier in "ab":
        owns = [Owns(core_v1.PODS, label_selector=f"tier={tier}")]
        manager.controller(core_v1.CONFIG_MAPS, name="maps" if tier == "a" else "others", owns=owns)(maps)
    manager.debug_app()
    async with manager, aiohttp.ClientSession() as session:
        page = Page(manager, session, f"http://127.0.0.1:{manager.debug_port}/")
        await page.until(lambda: asyncio.sleep(0, manager.ready()))
        for tier in "ab":
            api_server.patch("pods", tier, {"metadata": {"annotations": {"n": "1"}}}, "default")

        async def both() -> bool:
            changes = (await page.key("default/shop"))["changes"]
            return {each["child"] for each in changes} == {"Pod default/a", "Pod default/b"}

        assert await page.until(both)


def update_of(name: str, old: str, new: str) -> UpdateNotification[Any]:
    metadata = {"name": name, "namespace": "default"}
    states = ({"metadata": metadata, "data": {"a": text}} for text in (old, new))
    return UpdateNotification(*(view_of(each, core_v1.CONFIG_MAPS) for each in states))


async def test_recorded_changes_stay_within_their_limit_and_a_hot_object_hides_no_other() -> None:
    informer = SharedIndexInformer(ListWatch(Server(), core_v1.CONFIG_MAPS))
    histories = Histories(100_000)
    histories.follow({informer})
    history = histories[informer]
    for number in range(1000):
        history.saw(Batch.of([update_of(str(number % 300), "x" * 500, "y" * 500)]))
        assert history.size() <= 100_000
    assert 0 < len(history) < 300
    quiet = history.changes("default/99")
    history.saw(Batch.of([update_of("huge", "x" * 200_000, "y")]))
    assert not history.changes("default/huge")
    for _ in range(1000):
        history.saw(Batch.of([update_of("hot", "x" * 500, "y" * 500)]))
        assert history.size() <= 100_000
    assert len(history.changes("default/hot")) == CHANGES
    assert len(quiet) == len(history.changes("default/99")) > 0


def test_flood_of_one_informer_hides_no_changes_of_others() -> None:
    informers = [SharedIndexInformer(ListWatch(Server(), core_v1.CONFIG_MAPS)) for _ in range(3)]
    histories = Histories(100_000)
    histories.follow(set(informers))
    quiet, flooded, _ = map(histories.__getitem__, informers)
    for number in range(5):
        quiet.saw(Batch.of([update_of(str(number), "x" * 500, "y" * 500)]))
    for number in range(1000):
        flooded.saw(Batch.of([update_of(str(number), "x" * 500, "y" * 500)]))
        assert histories.size() <= 100_000
    assert len(quiet) == 5
    assert flooded.size() > 100_000 // 4  # it has more than an equal part
    histories.follow({informers[1]})
    assert list(histories) == [informers[1]]


@pytest.mark.parametrize("limit", [0, 1, 5_000])
def test_smallest_limit_keeps_next_to_nothing(limit: int) -> None:
    histories = Histories(limit)
    histories.follow({SharedIndexInformer(ListWatch(Server(), core_v1.CONFIG_MAPS))})
    [history] = histories.values()
    for number in range(10):
        history.saw(Batch.of([update_of(str(number), "x" * 500, "y" * 500)]))
    assert history.size() <= limit


@pytest.mark.parametrize(("size", "names"), [(100, 3_000), (100, 300), (5_000, 3_000)])
def test_recorded_changes_take_no_more_memory_than_their_limit(size: int, names: int) -> None:
    histories = Histories(2_000_000)
    histories.follow({SharedIndexInformer(ListWatch(Server(), core_v1.CONFIG_MAPS))})
    [history] = histories.values()
    gc.collect()
    tracemalloc.start()
    try:
        before, most = tracemalloc.get_traced_memory()[0], 0
        for number in range(3_000):
            history.saw(Batch.of([update_of(f"an-object-{number % names}", "x" * size, "y" * size)]))
            most = max(most, tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    assert most < histories.limit + 100_000  # the parts of the test


async def test_recording_begins_with_the_page_and_adds_no_handler(api_server: ApiServer) -> None:
    def handlers(manager: Manager) -> list[int]:
        informers = manager.snapshot()["informers"]
        assert informers is not None
        return [len(each["handlers"]) for each in informers["informers"].values()]

    manager = Manager("shop", client=api_server.url)
    active = manager.controller(core_v1.CONFIG_MAPS)(maps)
    async with manager:
        assert manager.report()["recording"] is None
        observers = manager._session.controllers["maps"].active.inputs.primary.observers  # type: ignore[union-attr]
        assert (active.name, observers) == ("maps", [])
        manager.debug_app()
        assert len(observers) == 1
        assert handlers(manager) == [1]
    assert observers == []
    assert manager.report()["problems"][0]["text"] == "Manager shop does not run."


# What it never says.


async def test_neither_secrets_nor_credentials_are_shown(api_server: ApiServer, tmp_path: Path) -> None:
    hidden = [PASSWORD, base64.b64encode(PASSWORD.encode()).decode(), TOKEN]
    secret = {"metadata": {"name": "db", "namespace": "default", "annotations": {"note": PASSWORD}}, "type": "Opaque"}
    api_server.create("secrets", {**secret, "data": {"password": hidden[1]}})
    async with page_with(api_server, "failing", values=True) as page:
        await page.until(lambda: asyncio.sleep(0, page.manager.ready()))
        change = {"data": {"password": base64.b64encode(f"{PASSWORD}2".encode()).decode()}}
        api_server.patch("secrets", "db", {**change, "metadata": {"annotations": {"note": f"{PASSWORD}3"}}}, "default")

        async def changes() -> Any:
            return (await page.key("default/db", controller="secrets"))["changes"]

        [found] = await page.until(changes)
        assert "data.password changed: <redacted>" in found["lines"]
        await page.problem("reconciler-fails")
        page.manager._session.failed["maps"] = RuntimeError(  # type: ignore[union-attr]
            f"GET https://shop:{PASSWORD}@api/ with Authorization: Bearer {TOKEN}"
        )
        with (
            pytest.raises(UsageError, match="its folder does not exist"),
            reports_at_signal("", dict, "no/report.json"),
        ):
            pass
        written, other = tmp_path / "report.json", tmp_path / "other"
        other.write_text("of somebody else")
        written.symlink_to(other)
        with reports_at_signal("shop", page.manager.report, str(written)):
            os.kill(os.getpid(), signal.SIGUSR1)
            await page.until(lambda: asyncio.sleep(0, not written.is_symlink()))
        assert written.stat().st_mode & 0o777 == 0o600
        assert other.read_text() == "of somebody else"
        assert sorted(os.listdir(tmp_path)) == ["other", "report.json"]
        texts = [written.read_text(), await page.get(""), await page.get("page.js")]
        texts += [json.dumps(await page.get(path)) for path in ("api/report", "api/memory")]
        texts += [json.dumps([await page.key("default/db", controller="secrets"), await page.key("default/failing")])]
        async with page.session.get(f"{page.url}api/events") as answer:
            texts.append((await answer.content.readline()).decode())
        assert "default/db" in texts[-2]
        assert [(text[:40], each) for text in texts for each in hidden if each in text] == []
        assert "<redacted>@api/ with Authorization: Bearer <redacted>" in texts[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {TOKEN}", "token <redacted>"),
        ("Basic c2hvcDpwYXNzd29yZA==", "Basic <redacted>"),
        ("proxy http://u:p@w.test:80/", "proxy http://<redacted>@w.test:80/"),
        ("connect(host=db password=tr0ub4dor, port=1)", "connect(host=db password=<redacted>, port=1)"),
        ('{"client_secret": "a b", "id": 1}', '{"client_secret": <redacted>, "id": 1}'),
        ("{'token': 'abc', 'n': 2}", "{'token': <redacted>, 'n': 2}"),
        ("GET /dns?api_key=abc&zone=shop", "GET /dns?api_key=<redacted>&zone=shop"),
        ("Password: hunter2", "Password: <redacted>"),
        ("-----BEGIN EC PRIVATE KEY----- MHcC -----END EC PRIVATE KEY----- left", "<redacted> left"),
        ("secrets: 33,000 objects; secret: no such name", "secrets: 33,000 objects; secret: no such name"),
        (
            "fieldSelector=metadata.name=web, tokenreviews: forbidden",
            "fieldSelector=metadata.name=web, tokenreviews: forbidden",
        ),
    ],
)
def test_credentials_in_texts_are_redacted(text: str, shown: str) -> None:
    assert scrubbed({"a": [text], "n": 1}) == {"a": [shown], "n": 1}


# Who may read it.


async def test_other_hosts_and_proxies_are_refused(api_server: ApiServer) -> None:
    async with page_with(api_server) as page:
        for headers in ({"Host": "evil.test"}, {"X-Forwarded-For": "10.1.2.3"}, {"Host": "127.0.0.1.evil.test"}):
            refused = await page.get("api/report", 403, headers=headers)
            assert "from this machine only" in refused["error"]
            assert "check= to Manager.debug_app" in refused["error"]
            await page.get("", 403, headers=headers)
        for host in ("localhost", "127.0.0.1:99", "[::1]:8080"):
            await page.get("api/report", headers={"Host": host})


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("on_own_port", [False, True])
async def test_check_is_asked_for_every_request(
    asynchronous: bool, on_own_port: bool, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[DebugRequest] = []

    def check(request: DebugRequest) -> Any:
        asked.append(request)
        allowed = request.headers.get("authorization") == "letmein"
        return asyncio.sleep(0, allowed) if asynchronous else allowed

    async def refused(host: str, client: str, check: Any, **headers: str) -> str:
        request = DebugRequest("GET", "", {"host": host, **headers}, client)
        return await refusal(request, check, on_own_port=on_own_port)

    for host, client in (("shop.test", "10.1.2.3"), ("localhost:80", "127.0.0.1"), ("[::1]", "::ffff:127.0.0.1")):
        assert await refused(host, client, check, authorization="letmein") == ""
        assert "the check function of this page refuses" in await refused(host, client, check)
        assert "refuses" in await refused(host, client, lambda request: 1 / 0)
        assert "refuses" in await refused(host, client, lambda request: "yes")
    assert len(asked) == 6
    assert "the check function raised" in caplog.text


async def test_check_is_asked_on_the_port(api_server: ApiServer) -> None:
    async with page_with(api_server, check=lambda request: request.headers.get("x-user") == "jane") as page:
        refused = await page.get("api/report", 403)
        assert "the check function of this page refuses" in refused["error"]
        await page.get("api/report", headers={"X-User": "jane"})


async def test_users_with_the_right_may_read_the_page() -> None:
    """The page asks for paths below /debug: every user may get those below /api, which are the API server's."""
    tokens = {"t-admin": "admin,system:masters", "t-jane": "jane", "t-joe": "joe"}
    who = Rbac(audiences=["aioinformer"])
    async with (
        ApiServer(tokens=tokens, authorization_mode="RBAC") as server,
        HttpTransport(server.url, token="t-admin") as transport,
        page_with(server, client=transport, check=who) as page,
    ):
        grant_paths(server, "jane", "/debug/*")
        assert "a bearer token" in (await page.get("api/report", 401))["error"]
        refused = await page.get("api/report", 403, headers={"Authorization": "Bearer t-joe"})
        assert 'nonResourceURLs: ["/debug/api/report"]' in refused["error"]
        await page.get("api/report", headers={"Authorization": "Bearer t-jane"})
        own = {"Origin": page.url.rstrip("/"), "Content-Type": "application/json", "Authorization": "Bearer t-jane"}
        assert await page.post(own) == 403


async def test_only_the_page_itself_may_run_parked_keys(api_server: ApiServer) -> None:
    async with page_with(api_server, "parked", retry=True) as page:
        await page.problem("parked")
        own = {"Origin": page.url.rstrip("/"), "Content-Type": "application/json"}
        for headers in ({}, {**own, "Origin": "https://evil.test"}, {**own, "Content-Type": "text/plain"}):
            assert await page.post(headers) == 403
        assert await page.post({**own, "Sec-Fetch-Site": "cross-site"}) == 403
        assert (await page.key("default/parked"))["runs"]["count"] == 1
        assert await page.post(own) == 200

        async def ran() -> bool:
            return bool((await page.key("default/parked"))["runs"]["count"] == 2)

        await page.until(ran)
        assert await page.post(own, "default/nope") == 409
    async with page_with(api_server) as page:
        await page.problem("parked")
        assert await page.post({"Origin": page.url.rstrip("/"), "Content-Type": "application/json"}) == 403


async def test_page_has_a_strict_policy_and_answers_mistakes_clearly(api_server: ApiServer) -> None:
    async with page_with(api_server) as page:
        async with page.session.get(page.url) as answer:
            policy = answer.headers["Content-Security-Policy"]
            text = await answer.text()
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert not re.search(r"https?://|<script>|style=|onclick", text)
        script = await page.get("page.js")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)
        assert "does not know default/nope" in (await page.key("default/nope", 404))["error"]
        assert "no controller 'mops'; it runs maps" in (await page.key("default/web", 404, "mops"))["error"]
        assert "namespace" in (await page.key("a/b/c", 400))["error"]
        await page.get("api/nope", 404)
        await page.get("api/events", 400, params={"interval": "often"})


async def test_port_in_use_names_the_option(api_server: ApiServer) -> None:
    async with page_with(api_server) as page:
        manager = Manager("other", client=api_server.url, debug_port=page.manager.debug_port)
        with pytest.raises(UsageError, match=r"cannot listen on port \d+: .*choose another debug_port \(--debug"):
            await manager.run()
    with pytest.raises(OptionError, match="debug_port must be a number"):
        Manager(debug_port=70_000)


@pytest.mark.parametrize(
    ("options", "text"),
    [({"check": 1}, "check must be a function"), ({"memory": -1}, "memory must be"), ({"docs": "x"}, "docs must be")],
)
def test_options_of_the_page_are_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Manager().debug_app(**options)
    manager = Manager()
    manager.debug_app()
    with pytest.raises(UsageError, match="already"):
        manager.debug_app()


# Where it is mounted.


@pytest.mark.parametrize("framework", ["aiohttp", "asgi"])
async def test_page_is_mounted_into_a_service(api_server: ApiServer, framework: str) -> None:
    manager = Manager("shop", client=api_server.url, leader_election=LeaderElection("shop"))
    manager.controller(core_v1.CONFIG_MAPS)(maps)
    page = manager.debug_app(check=lambda request: request.headers["host"] != "evil.test")
    port = free_port()
    async with manager, aiohttp.ClientSession() as session:
        base = f"http://127.0.0.1:{port}/debug/"
        async with served(page, framework, port):
            for path, kind in (("", "text/html"), ("page.css", "text/css"), ("page.js", "text/javascript")):
                async with session.get(base + path) as answer:
                    assert (answer.status, answer.content_type) == (200, kind)
            if framework == "asgi":
                async with session.get(base.rstrip("/")) as answer:
                    assert str(answer.url) == base
            async with session.get(f"{base}api/events", params={"interval": 1}) as answer:
                found = [json.loads(await line_of(answer)) for _ in range(2)]
            assert found[1]["time"] > found[0]["time"]
            assert found[0]["elector"]["identity"]
            async with session.get(base, headers={"Host": "evil.test"}) as answer:
                assert answer.status == 403


@pytest.mark.parametrize("framework", ["aiohttp", "asgi"])
async def test_mounted_page_without_a_check_answers_no_request(api_server: ApiServer, framework: str) -> None:
    manager = Manager("shop", client=api_server.url)
    page, port = manager.debug_app(retry=True), free_port()
    async with manager, aiohttp.ClientSession() as session, served(page, framework, port):
        for path in ("", "page.js", "troubleshooting", "api/report", "api/events", "api/memory"):
            async with session.get(f"http://127.0.0.1:{port}/debug/{path}") as answer:
                told = await answer.json()
                assert (answer.status, "Pass check= to Manager.debug_app" in told["error"]) == (403, True)


@pytest.mark.parametrize("framework", ["aiohttp", "asgi"])
async def test_proxy_on_this_machine_does_not_avoid_the_check(api_server: ApiServer, framework: str) -> None:
    """The proxy adds no header, and names the address of the service as the host, as nginx does by default."""
    api_server.create("configmaps", config_map("parked"))
    manager = Manager("shop", client=api_server.url, grace=0.0)
    manager.controller(core_v1.CONFIG_MAPS)(maps)
    page = manager.debug_app(check=lambda request: request.headers.get("x-user") == "jane", retry=True)
    port = free_port()
    body = json.dumps({"controller": "configmaps", "key": "default/parked"})
    async with manager, aiohttp.ClientSession() as session, served(page, framework, port), proxied(port) as address:
        own = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
        for path in ("", "api/report"):
            async with session.get(f"{address}/debug/{path}") as answer:
                assert answer.status == 403
        async with session.post(f"{address}/debug/api/retry", data=body, headers=own) as answer:
            assert answer.status == 403
        async with session.get(f"{address}/debug/api/report", headers={"X-User": "jane"}) as answer:
            assert answer.status == 200


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[str]:
    """Pass requests on to a port, and return the address of the proxy."""

    async def passed_on(request: web.Request) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        url = f"http://127.0.0.1:{port}{request.path_qs}"
        async with session.request(request.method, url, headers=headers, data=await request.read()) as answer:
            return web.Response(status=answer.status, body=await answer.read())

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", passed_on)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def line_of(answer: aiohttp.ClientResponse) -> bytes:
    while not (line := await answer.content.readline()).startswith(b"data: "):
        assert line, "the events ended"
    return line[6:]


@asynccontextmanager
async def served(page: Any, framework: str, port: int) -> AsyncIterator[None]:
    if framework == "aiohttp":
        app = web.Application()
        app.add_subapp("/debug/", page.aiohttp())
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield
        finally:
            await runner.cleanup()
        return
    from fastapi import FastAPI

    service = FastAPI()
    service.mount("/debug", page)
    server = uvicorn.Server(uvicorn.Config(service, port=port, log_level="error", timeout_graceful_shutdown=1))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    server.capture_signals = nullcontext  # type: ignore[assignment, method-assign]
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await serving
