"""The attributes of a client: group, version, resource."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client
from aioinformer.errors import UsageError
from aioinformer.resources import BUILTIN_RESOURCES
from tests.support.scripted_transport import Scripted

if TYPE_CHECKING:
    from aioinformer import Resource


@pytest.fixture
def client() -> Any:
    return Client(Scripted())


def group_of(client: Any, resource: Resource[Any]) -> Any:
    name = resource.group.partition(".")[0] or "core"
    return getattr(client, "resource_k8s_io" if name == "resource" else name)


@pytest.mark.parametrize("resource", BUILTIN_RESOURCES, ids=lambda resource: resource.gvr)
def test_each_resource_is_an_attribute(resource: Resource[Any], client: Any) -> None:
    found = getattr(getattr(group_of(client, resource), resource.version), resource.plural)
    assert found is client.resource(resource.gvr) is client.resource(resource)
    assert found.resource is resource


def test_completion_shows_all_resources(client: Any) -> None:
    versions = {(each.group, each.version): getattr(group_of(client, each), each.version) for each in BUILTIN_RESOURCES}
    shown = {(*key, name) for key, version in versions.items() for name in dir(version) if not name.startswith("_")}
    assert shown == {(each.group, each.version, each.plural) for each in BUILTIN_RESOURCES}


def test_misspelt_name_raises_with_a_hint(client: Any) -> None:
    with pytest.raises(AttributeError, match=r"^core\.v1 has no resource 'pod'; did you mean pods\?$"):
        _ = client.core.v1.pod
    with pytest.raises(AttributeError, match=r"^resource_k8s_io has no version 'v2'; it has v1, v1alpha3, v1beta1"):
        _ = client.resource_k8s_io.v2
    with pytest.raises(AttributeError, match=r"^Client has no attribute 'app'; did you mean apps\?$"):
        _ = client.app
    with pytest.raises(UsageError, match=r"^resource: 'v1/pod' is not a built-in .* did you mean v1/pods\?$"):
        client.resource("v1/pod")


def test_copies_of_a_client_have_their_own_resources(client: Any) -> None:
    other = client.with_options(namespace="shop")
    assert other.core.v1.pods is other.core.v1.pods is not client.core.v1.pods


def test_paths_keep_no_client_alive(client: Any) -> None:
    other = client.with_options(namespace="shop")
    other.apps.v1  # noqa: B018
    gone = weakref.ref(other)
    gc.disable()
    try:
        del other
        assert gone() is None
    finally:
        gc.enable()
