"""No request goes astray: names and namespaces that change its path are refused, and its target is known."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Client, LeaderElector, ListWatch, Resource, SharedInformerFactory, UsageError
from aioinformer.client.targets import target_of
from aioinformer.events import CoreEventSink, Event
from aioinformer.leaderelection import LeaseCandidate
from aioinformer.resources import ObjectReference
from aioinformer.transport import HttpRequest
from tests.support.scripted_transport import OBJECT, Scripted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


WRONG = [".", "..", "a/b", "../x", "a%2Fb", "%2e", "a\nb", "\x00", "a\x7f", "a\u0085b"]
CUSTOM = Resource("example.com", "v1", "widgets", "Widget")


def named(name: Any, namespace: Any = "shop", **more: Any) -> dict[str, Any]:
    return {**OBJECT, "metadata": {"name": name, "namespace": namespace, **more}, "data": {}}


async def read(generator: Any) -> None:
    async with aclosing(generator) as items:
        async for _ in items:
            return


#: Each sends a request for the object `name` of the namespace `space`.
CALLS: dict[str, Callable[[Client, str, str], Awaitable[Any]]] = {
    "get": lambda c, name, space: c.core.v1.configmaps.get(name, namespace=space),
    "get by key": lambda c, name, space: c.core.v1.configmaps.get(f"{space}/{name}"),
    "get an object": lambda c, name, space: c.core.v1.configmaps.get(named(name, space)),
    "get_or_none": lambda c, name, space: c.core.v1.configmaps.get_or_none(name, namespace=space),
    "create": lambda c, name, space: c.core.v1.configmaps.create(named(name, space)),
    "create without a type": lambda c, name, space: c.core.v1.configmaps.create(
        {"metadata": {"name": name, "namespace": space}}
    ),
    "generate": lambda c, name, space: c.core.v1.configmaps.create(
        {"metadata": {"generateName": f"{name}/", "namespace": space}}
    ),
    "replace": lambda c, name, space: c.core.v1.configmaps.replace(named(name, space)),
    "patch": lambda c, name, space: c.core.v1.configmaps.patch(name, {"data": {}}, namespace=space),
    "patch the name": lambda c, name, space: c.core.v1.configmaps.patch(
        "shop/a", {"metadata": {"name": name, "namespace": space}}
    ),
    "apply": lambda c, name, space: c.core.v1.configmaps.apply(named(name, space)),
    "apply_if_changed": lambda c, name, space: c.core.v1.configmaps.apply_if_changed(named(name, space), None),
    "edit": lambda c, name, space: c.core.v1.configmaps.edit(name, lambda obj: obj, namespace=space),
    "delete": lambda c, name, space: c.core.v1.configmaps.delete(name, namespace=space),
    "status": lambda c, name, space: c.core.v1.pods.status.get(name, namespace=space),
    "scale": lambda c, name, space: c.apps.v1.deployments.scale.patch(name, {"spec": {}}, namespace=space),
    "evict": lambda c, name, space: c.core.v1.pods.evict(name, namespace=space),
    "bind": lambda c, name, space: c.core.v1.pods.bind(name, "node", namespace=space),
    "token": lambda c, name, space: c.core.v1.serviceaccounts.create_token(name, namespace=space),
    "subresource": lambda c, name, space: c.core.v1.pods.subresource("eviction").create("shop/a", named(name, space)),
    "logs": lambda c, name, space: read(c.core.v1.pods.logs(name, namespace=space)),
    "custom": lambda c, name, space: c.resource(CUSTOM).get(name, namespace=space),
    "raw": lambda c, name, space: c.request("GET", f"/api/v1/namespaces/{space}/pods/{name}"),
}
#: Each sends a request that names a namespace, and no object.
COLLECTIONS: dict[str, Callable[[Client, str], Awaitable[Any]]] = {
    "list": lambda c, space: c.core.v1.pods.list(namespace=space)._whole(),
    "watch": lambda c, space: read(c.core.v1.pods.watch(namespace=space)),
    "delete_collection": lambda c, space: c.core.v1.pods.delete_collection(namespace=space),
    "create": lambda c, space: c.core.v1.configmaps.create({"metadata": {"name": "a"}}, namespace=space),
}


def wrong_segments() -> st.SearchStrategy[str]:
    text = st.text(st.characters(codec="utf-8"), max_size=4)
    return st.builds(lambda a, bad, b: a + bad + b, text, st.sampled_from(["/", "%", "\x00", "\n", "\x1b"]), text)


def of(transport: Scripted) -> Client:
    return Client(cast("Any", transport), field_manager="tests", retry=False)


@pytest.mark.parametrize(
    ("call", "wrong"),
    [(call, wrong) for call in CALLS for wrong in WRONG if (call, wrong) != ("raw", "a/b")],  # a path has slashes
)
async def test_no_request_leaves_with_a_wrong_name_or_namespace(call: str, wrong: str) -> None:
    transport = Scripted()
    for name, namespace in ((wrong, "shop"), ("a", wrong)):
        with pytest.raises(UsageError):
            await CALLS[call](of(transport), name, namespace)
    assert transport.requests == []


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", COLLECTIONS)
async def test_no_request_leaves_for_a_collection_in_a_wrong_namespace(call: str, wrong: str) -> None:
    transport = Scripted()
    with pytest.raises(UsageError):
        await COLLECTIONS[call](of(transport), wrong)
    assert transport.requests == []


@given(wrong=wrong_segments())
def test_no_path_has_a_segment_that_changes_it(wrong: str) -> None:
    for namespace, name in ((wrong, "a"), ("shop", wrong)):
        with pytest.raises(UsageError, match="cannot be a part of a URL"):
            CUSTOM.path(namespace, name)


@pytest.mark.parametrize("wrong", [*WRONG, ""])
async def test_no_request_leaves_for_a_wrong_subresource_or_node(wrong: str) -> None:
    transport = Scripted()
    with pytest.raises(UsageError, match="subresource"):
        await of(transport).resource(CUSTOM).subresource(wrong).get("shop/a")
    with pytest.raises(UsageError, match="node"):
        await of(transport).core.v1.pods.bind("shop/a", wrong)
    assert transport.requests == []


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("part", ["group", "version", "plural"])
async def test_no_request_leaves_for_a_wrong_resource(part: str, wrong: str) -> None:
    parts: dict[str, Any] = {"group": "example.com", "version": "v1", "plural": "widgets", part: wrong}
    resource: Resource[Any] = Resource(**parts, kind="Widget")
    transport = Scripted()
    with pytest.raises(UsageError, match=part):
        await of(transport).resource(resource).delete("shop/a")
    with pytest.raises(UsageError, match=part):
        ListWatch(cast("Any", transport), resource)
    assert transport.requests == []


@pytest.mark.parametrize("wrong", WRONG)
async def test_informers_elections_and_events_refuse_it_too(wrong: str) -> None:
    transport: Any = Scripted()
    with pytest.raises(UsageError):
        SharedInformerFactory(transport, namespace=wrong)
    with pytest.raises(UsageError):
        SharedInformerFactory(transport).core.v1.pods.informer(namespace=wrong)
    for name, namespace in ((wrong, "shop"), ("a", wrong)):
        with pytest.raises(UsageError):
            LeaderElector(transport, name, namespace, identity="me")
        with pytest.raises(UsageError):
            LeaseCandidate(transport, name, namespace, lease="a", binary_version="1.0.0")
    sink = CoreEventSink(transport)
    for name, namespace in ((wrong, "shop"), ("a", wrong)):
        about = ObjectReference("v1", "Pod", name, namespace)
        event = Event(namespace, f"{name}/", about, "Normal", "Seen", "", "", "", "", 0, 0, count=2)
        for write in (sink.create, sink.patch):
            with pytest.raises(UsageError):
                await write(event)
    assert transport.requests == []


@pytest.mark.parametrize("path", ["version", "", "//version", "/a//b", "/api/../version", "/a%2e", "/a\n", "/./a"])
async def test_no_raw_request_leaves_with_a_wrong_path(path: str) -> None:
    transport = Scripted()
    with pytest.raises(UsageError):
        await of(transport).request("GET", path)
    assert transport.requests == []


async def test_other_characters_of_names_are_quoted() -> None:
    transport = Scripted()
    await of(transport).resource(CUSTOM).get("system:a b?c#d\\é", namespace="shop")
    assert transport.requests[0].path.endswith("/widgets/system%3Aa%20b%3Fc%23d%5C%C3%A9")


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("POST /api/v1/namespaces/shop/pods", "create pods in shop"),
        ("PATCH /api/v1/namespaces/shop/pods/web-0/status", "patch pods/status shop/web-0"),
        ("PUT /apis/apps/v1/namespaces/shop/deployments/web", "update deployments.apps shop/web"),
        ("DELETE /apis/apps/v1/namespaces/shop/deployments", "deletecollection deployments.apps in shop"),
        ("DELETE /api/v1/nodes/node-1", "delete nodes node-1"),
        ("POST /api/v1/namespaces", "create namespaces"),
        ("DELETE /api/v1/namespaces/shop", "delete namespaces shop"),
        ("PUT /api/v1/namespaces/shop/finalize", "update namespaces/finalize shop"),
        ("POST /apis/x.io/v1/namespaces/shop/status", "create status.x.io in shop"),
        (
            "PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
            "patch clusterroles.rbac.authorization.k8s.io a:b",
        ),
    ],
)
def test_target_has_verb_resource_and_name(request_line: str, expected: str) -> None:
    method, path = request_line.split()
    assert str(target_of(HttpRequest(path, method=method))) == expected


@pytest.mark.parametrize("path", ["/healthz", "/api/v1", "/apis/apps/v1"])
def test_path_of_no_resource_has_no_target(path: str) -> None:
    assert target_of(HttpRequest(path, method="POST")) is None
