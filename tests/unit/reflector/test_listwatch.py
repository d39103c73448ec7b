"""Requests of a ListWatch: path, selectors and content type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import SelectorError, UsageError
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ListOptions
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from aioinformer.transport import Request, Response

DEPLOYMENTS: Resource[Any] = Resource("apps", "v1", "deployments", "Deployment")
PODS: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")
NODES: Resource[Any] = Resource("", "v1", "nodes", "Node", namespaced=False)


class Recorder:
    """A transport that records requests, and never responds."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        raise ConnectionError

    async def close(self) -> None:
        """Nothing to close."""


async def asked(options: ListOptions, resource: Resource[Any] = DEPLOYMENTS, **selection: Any) -> Request:
    transport = Recorder()
    with pytest.raises(ConnectionError):
        await ListWatch(transport, resource, **selection).request(options)
    return transport.requests[0]


async def test_list_requests_the_collection_with_its_options() -> None:
    request = await asked(ListOptions(limit=5))
    assert (request.path, dict(request.query)) == ("/apis/apps/v1/deployments", {"limit": "5"})


async def test_namespace_is_part_of_the_path() -> None:
    assert (await asked(ListOptions(), namespace="ns")).path == "/apis/apps/v1/namespaces/ns/deployments"


@pytest.mark.conformance("LW-04")
async def test_selectors_are_sent_with_every_request() -> None:
    request = await asked(ListOptions(watch=True), label_selector="app=x", field_selector="metadata.name=a")
    assert dict(request.query) == {"labelSelector": "app=x", "fieldSelector": "metadata.name=a", "watch": "true"}


@pytest.mark.conformance("LW-04")
async def test_tweak_overrides_options() -> None:
    def tweak(options: ListOptions) -> None:
        options.label_selector += ",tier=y"
        options.limit = 1

    request = await asked(ListOptions(limit=5), label_selector="app=x", tweak=tweak)
    assert dict(request.query) == {"labelSelector": "app=x,tier=y", "limit": "1"}


@pytest.mark.conformance("FAC-13")
@pytest.mark.parametrize(("watch", "kind"), [(False, "PartialObjectMetadataList"), (True, "PartialObjectMetadata")])
async def test_metadata_only_is_requested_by_accept_header(watch: bool, kind: str) -> None:
    request = await asked(ListOptions(watch=watch), metadata_only=True)
    assert f"as={kind};" in request.headers["Accept"]


async def test_whole_objects_are_requested_as_json() -> None:
    assert (await asked(ListOptions())).headers["Accept"] == "application/json"


def test_namespace_of_a_cluster_scoped_resource_is_refused() -> None:
    with pytest.raises(UsageError, match="cluster-scoped"):
        ListWatch(Recorder(), NODES, "ns")


@pytest.mark.parametrize("selection", [{"label_selector": "a in b"}, {"field_selector": "a=b=c,,=="}])
def test_invalid_selector_is_refused_before_any_request(selection: dict[str, Any]) -> None:
    with pytest.raises(SelectorError):
        ListWatch(Recorder(), DEPLOYMENTS, **selection)


@pytest.mark.conformance("REF-03")
def test_str_names_resource_and_namespace() -> None:
    assert str(ListWatch(Recorder(), DEPLOYMENTS, "ns")) == "deployments.apps in namespace ns"
    assert str(ListWatch(Recorder(), NODES)) == "nodes"


# What a collection excludes.


def _pod(namespace: str = "shop", labels: Any = None, **members: Any) -> Any:
    return {"metadata": {"name": "a", "namespace": namespace, "uid": "u", "labels": labels}, **members}


@pytest.mark.parametrize(
    ("selection", "obj", "reason"),
    [
        ({}, _pod(), ""),
        ({"namespace": "shop"}, _pod(), ""),
        ({"namespace": "shop"}, _pod("other"), "it is not in namespace shop"),
        ({"label_selector": "app=x"}, _pod(labels={"app": "x"}), ""),
        ({"label_selector": "app=x"}, _pod(), "its labels do not match app=x"),
        ({"field_selector": "spec.nodeName=n"}, _pod(spec={"nodeName": "n"}), ""),
        ({"field_selector": "spec.nodeName=n"}, _pod(), "its fields do not match spec.nodeName=n"),
        ({"field_selector": "spec.nodeName!=n"}, _pod(spec={"nodeName": "n"}), "its fields do not match"),
        ({"field_selector": "metadata.name=b"}, _pod(), "its fields do not match"),
        # Only the server knows what it compares: the default of an absent boolean, or a field of another name.
        ({"field_selector": "spec.hostNetwork=true"}, _pod(), ""),
        ({"field_selector": "status.successful=1"}, _pod(), ""),
        ({"label_selector": "app=x", "tweak": print}, _pod(), ""),
    ],
)
def test_object_outside_of_the_collection_is_excluded(selection: Any, obj: Any, reason: str) -> None:
    found = ListWatch(Recorder(), PODS, **selection).excludes(obj)
    assert found.startswith(reason)
    assert bool(found) is bool(reason)
