"""Discovery with scripted servers: aggregated, older, partly failing, and unreachable."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import ApiError, DecodeError, TransportError, UsageError
from aioinformer.resources import Discovery, DiscoveryIncomplete, UnknownResource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport import HttpRequest


class Answer:
    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body[:7]
        await asyncio.sleep(0)
        yield self._body[7:]

    async def close(self) -> None:
        self.closed = True


class Server:
    """Answers each path with the scripted document, status or error."""

    def __init__(self) -> None:
        self.script: dict[str, Any] = {"/api": AGGREGATED_CORE, "/apis": AGGREGATED}
        self.requests: list[HttpRequest] = []
        self.answers: list[Answer] = []

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def request(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        scripted = self.script.get(request.path, 404)
        if isinstance(scripted, list):
            scripted = scripted.pop(0) if len(scripted) > 1 else scripted[0]
        if isinstance(scripted, Exception):
            raise scripted
        headers = {}
        if isinstance(scripted, tuple):
            scripted, headers = scripted
        if isinstance(scripted, int):
            answer = Answer(scripted, b'{"kind":"Status","reason":"Scripted","message":"as told"}', headers)
        else:
            body = scripted if isinstance(scripted, bytes) else json.dumps(scripted).encode()
            answer = Answer(200, body, headers)
        self.answers.append(answer)
        return answer


def aggregated(plural: str, kind: str, *short_names: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "singularResource": kind.lower(),
        "verbs": ["get", "list", "watch"],
        "shortNames": list(short_names),
        "subresources": [{"subresource": "status", "responseKind": None, "verbs": ["get"]}],
    }


def group(name: str, **versions: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": None},
        "versions": [
            {"version": version, "resources": resources, "freshness": "Stale" if resources is None else "Current"}
            for version, resources in versions.items()
        ],
    }


def group_list(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups}


AGGREGATED_CORE = group_list(
    group(
        "",
        v1=[
            aggregated("pods", "Pod", "po"),
            aggregated("nodes", "Node", "no", scope="Cluster"),
            aggregated("events", "Event", "ev"),
        ],
    )
)
APPS = group("apps", v1=[aggregated("deployments", "Deployment", "deploy")])
EVENTS = group("events.k8s.io", v1=[aggregated("events", "Event", "ev")])
WIDGETS = group(
    "example.com",
    v2=[aggregated("widgets", "Widget", "w", "po")],
    v1=[aggregated("widgets", "Widget", "w"), aggregated("gadgets", "Gadget")],
)
METRICS = group("metrics.k8s.io", v1beta1=[aggregated("pods", "PodMetrics")])
AGGREGATED = group_list(APPS, EVENTS, WIDGETS, METRICS)

LEGACY_CORE = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
LEGACY_GROUPS = {
    "kind": "APIGroupList",
    "groups": [
        {
            "name": "example.com",
            "versions": [{"groupVersion": "example.com/v1", "version": "v1"}, {"version": "v2"}],
            "preferredVersion": {"groupVersion": "example.com/v2", "version": "v2"},
        },
        {"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}], "preferredVersion": {"version": "v1beta1"}},
    ],
}


def legacy(*resources: tuple[str, str]) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "resources": [
            {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}
            for name, kind in resources
        ],
    }


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def old_server(server: Server) -> Server:
    server.script = {
        "/api": LEGACY_CORE,
        "/apis": LEGACY_GROUPS,
        "/api/v1": legacy(("pods", "Pod"), ("pods/status", "Pod"), ("pods/log", "Pod")),
        "/apis/example.com/v1": legacy(("widgets", "Widget"), ("gadgets", "Gadget")),
        "/apis/example.com/v2": legacy(("widgets", "Widget")),
        "/apis/metrics.k8s.io/v1beta1": {"kind": "APIResourceList", "resources": None},
    }
    return server


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace `asyncio.sleep` by a function that returns at once, and return the recorded delays."""
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds:
            slept.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept


def ignore(failure: Exception, delay: float) -> None:
    pass


@pytest.mark.parametrize(
    ("name", "gvr"),
    [
        ("pods", "v1/pods"),
        ("Pod", "v1/pods"),
        ("po", "v1/pods"),
        ("pods.v1.", "v1/pods"),
        ("events", "v1/events"),
        ("ev.events.k8s.io", "events.k8s.io/v1/events"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1/pods"),
        ("podmetrics", "metrics.k8s.io/v1beta1/pods"),
        ("deployments.apps", "apps/v1/deployments"),
        ("Deployment.v1.apps", "apps/v1/deployments"),
        ("deployments.app", "apps/v1/deployments"),
        ("widgets", "example.com/v2/widgets"),
        ("widget.v1.example.com", "example.com/v1/widgets"),
        ("w.example", "example.com/v2/widgets"),
        ("example.com/v1/widgets", "example.com/v1/widgets"),
    ],
)
async def test_names_mean_the_same_as_for_kubectl(server: Server, name: str, gvr: str) -> None:
    assert (await Discovery(server).resolve(name)).gvr == gvr


@pytest.mark.parametrize(
    "name", ["gizmos", "pods.apps", "deployments.v2.apps", "apps/v1/gizmos", "example.com/v1/Widget"]
)
async def test_name_missing_in_a_complete_discovery_is_unknown(server: Server, name: str) -> None:
    with pytest.raises(UnknownResource, match="group/version/plural"):
        await Discovery(server).resolve(name)


@pytest.mark.parametrize("name", ["", "a/b/c/d", "/v1/pods", "apps//deployments", ".apps", "po ds", "v1/"])
async def test_invalid_name_raises_without_a_request(server: Server, name: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a resource"):
        await Discovery(server).resolve(name)
    assert server.paths == []


async def test_aggregated_discovery_takes_two_requests(server: Server) -> None:
    served = await Discovery(server).resources()
    assert server.paths == ["/api", "/apis"]
    assert served.complete
    assert [resource.gvr for resource in served][:4] == ["v1/pods", "v1/nodes", "v1/events", "apps/v1/deployments"]
    assert all(answer.closed for answer in server.answers)


async def test_accept_prefers_aggregated_discovery(server: Server) -> None:
    await Discovery(server).resources()
    accept = server.requests[0].headers["Accept"]
    assert (
        accept.index("v=v2;") < accept.index("v=v2beta1;") < accept.index(",application/json", accept.index("v2beta1"))
    )


async def test_resource_has_the_model_of_the_catalog(server: Server) -> None:
    pods = await Discovery(server).resolve("po")
    assert (pods.kind, pods.model, pods.singular, pods.short_names) == ("Pod", "V1Pod", "pod", ("po",))
    assert (pods.namespaced, pods.subresources, pods.verbs) == (True, ("status",), ("get", "list", "watch"))
    assert not (await Discovery(server).resolve("nodes")).namespaced
    assert (await Discovery(server).resolve("widgets")).model == ""


FULL = {"verbs": ["get", "list"], "shortNames": ["d"], "categories": ["all"]}
EMPTY = {"verbs": None, "shortNames": None, "categories": None}
SAID = (("get", "list"), ("d",), ("all",))


@pytest.mark.parametrize(
    ("entry", "said", "singular"),
    [
        ({**FULL, "singular": "one"}, SAID, "one"),
        (FULL, SAID, "door"),
        (EMPTY, ((), (), ()), "door"),
        ({}, ((), (), ()), "door"),
    ],
)
@pytest.mark.parametrize("form", ["aggregated", "legacy"])
async def test_resource_has_what_the_document_says(
    server: Server, form: str, entry: dict[str, Any], said: Any, singular: str
) -> None:
    entry = {**entry}
    given = entry.pop("singular", "")
    if form == "aggregated":
        kind = {"group": "x.io", "version": "v1", "kind": "Door"}
        parts = [{"subresource": "status"}, {"subresource": "scale"}]
        door = {"resource": "doors", "responseKind": kind, "scope": "Cluster", "subresources": parts, **entry}
        bare = {"resource": "bare", "responseKind": kind, "subresources": None}
        only_parts = {"resource": "gone", "responseKind": None, "subresources": parts}
        server.script["/apis"] = group_list(
            group("x.io", v1=[{**door, "singularResource": given}, bare, only_parts]), {"versions": None}
        )
    else:
        names = [{"name": f"doors/{part}", "kind": "Door"} for part in ("status", "scale")]
        door = {"name": "doors", "kind": "Door", "namespaced": False, **entry}
        server.script["/apis"] = {
            "kind": "APIGroupList",
            "groups": [{"name": "x.io", "versions": [{"version": "v1"}]}, {"name": "y.io", "versions": None}],
        }
        bare = {"name": "bare", "kind": "Door"}
        server.script["/apis/x.io/v1"] = {"resources": [{**door, "singularName": given}, *names, bare]}
    found = await Discovery(server).resolve("doors.x.io")
    assert (found.verbs, found.short_names, found.categories) == said
    assert (found.kind, found.singular, found.namespaced) == ("Door", singular, False)
    assert found.subresources == ("scale", "status")
    assert (await Discovery(server).resolve("bare.x.io")).subresources == ()


@pytest.mark.parametrize("root", [{"kind": "APIGroupDiscoveryList"}, {"kind": "APIGroupList"}])
async def test_empty_root_serves_nothing_else(server: Server, root: dict[str, Any]) -> None:
    others: list[dict[str, Any]] = [{}, {"items": None, "groups": None}, {"items": [], "groups": []}]
    for members in others:
        server.script["/apis"] = {**root, **members}
        served = await Discovery(server).resources()
        assert {each.group for each in served} == {""}
        assert not served.failures


async def test_older_server_is_read_version_by_version(old_server: Server) -> None:
    served = await Discovery(old_server).resources()
    assert [resource.gvr for resource in served] == [
        "v1/pods",
        "example.com/v2/widgets",
        "example.com/v1/widgets",
        "example.com/v1/gadgets",
    ]
    assert (served.resolve("pod").subresources, served.resolve("Widget").version) == (("log", "status"), "v2")


async def test_406_leads_to_legacy_discovery(old_server: Server) -> None:
    for path in ("/api", "/apis"):
        old_server.script[path] = [406, old_server.script[path]]
    assert (await Discovery(old_server).resolve("gadgets")).gvr == "example.com/v1/gadgets"


async def test_failed_group_is_part_of_the_result(old_server: Server) -> None:
    old_server.script["/apis/metrics.k8s.io/v1beta1"] = 503
    served = await Discovery(old_server).resources()
    assert served.failures == {"metrics.k8s.io/v1beta1": "503 Scripted: as told"}
    assert served.resolve("widgets").group == "example.com"


async def test_lost_server_fails_the_discovery(old_server: Server) -> None:
    old_server.script["/apis/example.com/v1"] = TransportError("gone")
    with pytest.raises(TransportError, match="gone"):
        await Discovery(old_server).resources()


async def test_name_is_not_unknown_if_its_group_was_not_read(server: Server) -> None:
    server.script["/apis"] = group_list(APPS, group("metrics.k8s.io", v1beta1=None))
    discovery = Discovery(server)
    with pytest.raises(DiscoveryIncomplete, match=r"metrics.k8s.io/v1beta1 \(its server does not answer"):
        await discovery.resolve("nodemetrics")
    with pytest.raises(UnknownResource):
        await discovery.resolve("gizmos.apps")


async def test_unread_preferred_version_is_not_skipped(server: Server) -> None:
    server.script["/apis"] = group_list(group("example.com", v2=None, v1=[aggregated("widgets", "Widget")]))
    with pytest.raises(DiscoveryIncomplete, match=r"example\.com/v2"):
        await Discovery(server).resolve("widgets")
    assert (await Discovery(server).resolve("widgets.v1.example.com")).version == "v1"


async def test_full_name_of_a_built_in_resource_needs_no_request(server: Server) -> None:
    deployments = await Discovery(server).resolve("apps/v1/deployments")
    assert (deployments.kind, server.paths) == ("Deployment", [])


async def test_fresh_resolution_reads_the_server(server: Server) -> None:
    with pytest.raises(UnknownResource):
        await Discovery(server).resolve("batch/v1/jobs", fresh=True)


async def test_result_is_cached_until_a_name_is_missing(server: Server) -> None:
    discovery = Discovery(server)
    await discovery.resolve("pods")
    await discovery.resolve("deploy")
    assert len(server.requests) == 2
    server.script["/apis"] = group_list(group("new.example.com", v1=[aggregated("gizmos", "Gizmo")]))
    assert (await discovery.resolve("gizmos")).group == "new.example.com"


async def test_concurrent_calls_share_a_discovery(server: Server) -> None:
    discovery = Discovery(server)
    await asyncio.gather(*(discovery.resolve(name) for name in ("po", "no", "deploy")))
    assert len(server.requests) == 2


async def test_server_may_lack_one_root(server: Server) -> None:
    server.script["/api"] = 404
    assert (await Discovery(server).resolve("deploy")).group == "apps"


@pytest.mark.parametrize(
    ("api", "error"),
    [
        (404, ApiError),
        (401, ApiError),
        (403, ApiError),
        (503, ApiError),
        (TransportError("refused"), TransportError),
        (b"<html>", DecodeError),
        ({"kind": "PodList", "items": []}, DecodeError),
        ({"kind": "APIGroupDiscoveryList", "items": [{"versions": [{}]}]}, DecodeError),
    ],
)
async def test_error_of_the_server_fails_the_discovery(server: Server, api: object, error: type[Exception]) -> None:
    server.script = {"/api": api}
    with pytest.raises(error):
        await Discovery(server).resources()
    assert all(answer.closed for answer in server.answers)


async def test_wait_for_retries_failures_with_backoff(server: Server, delays: list[float]) -> None:
    server.script["/api"] = [TransportError("refused"), 401, 403, 500, b"{", AGGREGATED_CORE]
    failures: list[tuple[str, float]] = []
    resource = await Discovery(server, random=lambda: 0.0).wait_for(
        "po", lambda failure, delay: failures.append((type(failure).__name__, delay))
    )
    assert resource.gvr == "v1/pods"
    assert [name for name, _ in failures] == ["TransportError", "ApiError", "Forbidden", "ApiError", "DecodeError"]
    assert delays == [delay for _, delay in failures] == [0.8, 1.6, 3.2, 6.4, 12.8]


async def test_wait_for_follows_retry_after(server: Server, delays: list[float]) -> None:
    server.script["/api"] = [(429, {"Retry-After": "7"}), AGGREGATED_CORE]
    await Discovery(server).wait_for("po", ignore)
    assert delays == [7.0]


async def test_wait_for_reads_twice_for_an_unknown_resource(server: Server, delays: list[float]) -> None:
    with pytest.raises(UnknownResource):
        await Discovery(server).wait_for("gizmos", ignore)
    assert (delays, server.paths) == ([2.0], ["/api", "/apis"] * 2)


async def test_wait_for_retries_an_incomplete_discovery(server: Server, delays: list[float]) -> None:
    broken = group_list(APPS, group("metrics.k8s.io", v1beta1=None))
    server.script["/apis"] = [broken, broken, broken, AGGREGATED]
    assert (await Discovery(server).wait_for("podmetrics", ignore)).group == "metrics.k8s.io"
    assert len(delays) == 3
