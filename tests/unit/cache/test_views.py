"""Views of cached objects: immutable, decoded on first access, with shared bodies."""

from __future__ import annotations

import gc
import json
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import ApiClient

from aioinformer.cache.objects import views
from aioinformer.cache.objects.views import view_class
from aioinformer.errors import DecodeError
from tests.support.view_samples import POD, PODS, WIDGET, encoded, pod, widget

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record


@pytest.fixture(params=[pod, widget], ids=["model", "mapping"])
def view(request: pytest.FixtureRequest) -> Any:
    return request.param()


# Reading.


def test_pod_has_the_attributes_of_the_client_library() -> None:
    seen = pod()
    assert (seen.kind, seen.api_version) == ("Pod", "v1")
    assert (seen.spec.node_name, seen.spec.containers[0].env[0].value) == ("n1", "1")
    assert seen.metadata.creation_timestamp == datetime(2025, 2, 1, 10, tzinfo=UTC)
    assert seen.metadata.owner_references[0].kind == "Node"
    assert seen.status.host_ip is None


def test_custom_resource_is_a_mapping_with_wire_keys() -> None:
    seen = widget()
    assert (seen["spec"]["size"], seen.spec["parts"][0]["name"], seen.get("nothing", 5)) == (3, "p", 5)
    assert (seen.kind, seen.api_version, len(seen), "spec" in seen) == ("Widget", "example.com/v1", 4, True)
    assert list(seen) == list(seen.keys()) == list(WIDGET)
    assert dict(seen)["kind"] == "Widget"


def test_custom_resource_metadata_has_attributes() -> None:
    assert widget().metadata.creation_timestamp.year == 2025
    assert widget().metadata.owner_references[0].name == "n"


def test_identity_and_labels_equal_in_every_view(view: Any) -> None:
    meta = view.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version) == ("a", "ns", "u", "7")
    assert meta.labels == {"app": "x"}


def test_absent_metadata_is_none() -> None:
    meta = pod({"metadata": {"name": "a"}}).metadata
    assert (meta.namespace, meta.labels, meta.annotations) == (None, None, None)


def test_unknown_attribute_is_named(view: Any) -> None:
    for owner in (view, view.metadata):
        with pytest.raises(AttributeError, match="frobnicate"):
            owner.frobnicate  # noqa: B018


# Immutability.


def frozen_writes() -> list[Any]:
    return [
        lambda pod, widget: setattr(pod, "spec", None),
        lambda pod, widget: setattr(pod, "anything", 1),
        lambda pod, widget: delattr(pod, "spec"),
        lambda pod, widget: setattr(pod.spec, "node_name", "x"),
        lambda pod, widget: setattr(pod.metadata, "name", "x"),
        lambda pod, widget: pod.metadata.labels.update(x="y"),
        lambda pod, widget: pod.metadata.annotations.pop("k"),
        lambda pod, widget: pod.spec.containers.append(1),
        lambda pod, widget: setattr(pod.spec.containers[0].env[0], "value", "x"),
        lambda pod, widget: setattr(widget, "spec", None),
        lambda pod, widget: widget.__setitem__("spec", None),
        lambda pod, widget: widget["spec"].__setitem__("size", 4),
        lambda pod, widget: widget.spec["parts"][0].clear(),
        lambda pod, widget: widget["spec"]["parts"].append(1),
        lambda pod, widget: widget["metadata"]["labels"].update(x="y"),
        lambda pod, widget: widget.metadata.labels.update(x="y"),
    ]


@pytest.mark.conformance("ARC-06", "WEAK-07", "DET-01")
@pytest.mark.parametrize("write", frozen_writes())
def test_views_are_immutable(write: Any) -> None:
    one, other = pod(), widget()
    with pytest.raises((AttributeError, TypeError)):
        write(one, other)
    assert one.to_dict() == {"apiVersion": "v1", "kind": "Pod", **POD}
    assert other.to_dict() == WIDGET


def test_to_dict_returns_a_copy(view: Any) -> None:
    mine = view.to_dict()
    mine["metadata"]["labels"]["app"] = "changed"
    mine["spec"].clear()
    assert view.metadata.labels == {"app": "x"}
    assert view.to_dict()["spec"]
    assert json.loads(json.dumps(view.to_dict())) == view.to_dict()


def test_metadata_has_to_dict(view: Any) -> None:
    assert view.metadata.to_dict() == POD["metadata"]


# As a request body.


def sent(obj: Any) -> Any:
    """Return what the client library sends, which formats times differently."""
    plain = ApiClient.sanitize_for_serialization(ApiClient.__new__(ApiClient), obj)
    return json.loads(json.dumps(plain).replace("+00:00", "Z"))


def test_client_library_sends_a_view_unchanged(view: Any) -> None:
    assert sent(view) == view.to_dict()


def test_client_library_sends_parts_of_views_unchanged(view: Any) -> None:
    assert sent({"spec": view.spec, "metadata": view.metadata}) == {
        "spec": view.to_dict()["spec"],
        "metadata": POD["metadata"],
    }


# Decoding on first access.


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the kinds of decoded bodies from now on."""
    log: list[str] = []
    original = views.load_body

    def load(record: Record, decode: Any) -> Any:
        def logged(raw: bytes) -> Any:
            log.append(record.key)
            return decode(raw)

        return original(record, logged)

    monkeypatch.setattr(views, "load_body", load)
    return log


def test_identity_and_labels_do_not_decode_the_body(view: Any, decoded: list[str]) -> None:
    meta = view.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version, meta.labels) is not None
    assert (repr(view), hash(view), view == view, view._key) is not None
    assert decoded == []


def test_body_is_decoded_once(view: Any, decoded: list[str]) -> None:
    for _ in range(3):
        assert view.spec is not None
    assert decoded == ["ns/a"]


def test_views_of_one_version_share_the_body(decoded: list[str]) -> None:
    found = encoded(POD)
    made: Any = view_class(PODS)
    first, second = made(found), made(found)
    assert first.spec is second.spec
    assert decoded == ["ns/a"]


def test_body_is_dropped_with_its_last_view(view: Any) -> None:
    found = view._record
    again = type(view)(found)
    assert again.spec is not None
    body = weakref.ref(again._body)
    del again
    gc.collect()
    assert body() is None
    assert found.recall() is None
    assert view.spec is not None


def test_body_that_does_not_fit_its_model_is_named_not_quoted() -> None:
    seen = pod({"metadata": {"name": "a"}, "spec": "hunter2"})
    with pytest.raises(DecodeError, match="a: not a V1Pod") as caught:
        seen.spec  # noqa: B018
    assert "hunter2" not in str(caught.value)
    assert seen.metadata.name == "a"
