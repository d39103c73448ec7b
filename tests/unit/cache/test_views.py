"""Views of cached objects: values that are immutable, decoded on first access, with shared bodies."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
import threading
import tracemalloc
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from kubernetes_asyncio.client import ApiClient

from aioinformer import Indexer
from aioinformer.cache.objects import views
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.errors import DecodeError
from tests.support.view_samples import POD, PODS, SECRETS, WIDGET, WIDGETS, encoded, pod, widget

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer import Resource
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


def test_identity_and_labels_equal_in_every_view(view: Any) -> None:
    meta = view.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version) == ("a", "ns", "u", "7")
    assert meta.labels == {"app": "x"}


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


# As a request body.


def sent(obj: Any) -> Any:
    """Return what the client library sends, which formats times differently."""
    plain = ApiClient.sanitize_for_serialization(ApiClient.__new__(ApiClient), obj)
    return json.loads(json.dumps(plain).replace("+00:00", "Z"))


def test_client_library_sends_a_view_unchanged(view: Any) -> None:
    assert sent(view) == view.to_dict()


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


# As values.


def with_metadata(**changes: str) -> Any:
    return {**POD, "metadata": {**POD["metadata"], **changes}}  # type: ignore[dict-item]  # it is a dict


UNEQUAL: dict[str, Any] = {
    "content": pod({**POD, "spec": {"nodeName": "n2"}}),
    "version": pod(with_metadata(resourceVersion="8")),
    "incarnation": pod(with_metadata(uid="another")),
    "name": pod(with_metadata(name="b")),
    "kind": view_class(SECRETS)(encoded(POD)),
    "a-dict": POD,
}


def test_views_of_the_same_state_are_equal(view: Any) -> None:
    for again in (type(view)(view._record), type(view)(encoded(view.to_dict()))):
        assert again == view
        assert not again != view  # noqa: SIM202  # what handlers ask of old and new
        assert again.metadata == view.metadata
        assert not again.metadata != view.metadata  # noqa: SIM202
        assert len({again, view}) == len({again.metadata, view.metadata}) == 1


@pytest.mark.parametrize("difference", UNEQUAL)
def test_different_views_are_not_equal(difference: str) -> None:
    other = UNEQUAL[difference]
    assert pod() != other
    assert not pod() == other  # noqa: SIM201


@pytest.mark.conformance("REF-04")
def test_missing_kind_is_that_of_the_resource() -> None:
    assert (widget({"metadata": {"name": "a"}}).api_version, widget({"metadata": {"name": "a"}}).kind) == (
        "example.com/v1",
        "Widget",
    )


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_view_can_be_pickled(view: Any, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(view, protocol))
    assert again == view
    assert again.to_dict() == view.to_dict()
    assert type(again) is type(view)


def test_copy_returns_the_same_view(view: Any) -> None:
    assert copy.copy(view) is view
    assert copy.deepcopy(view) is view


@pytest.mark.parametrize("resource", [SECRETS, WIDGETS], ids=["model", "mapping"])
def test_repr_never_shows_content(resource: Resource[Any]) -> None:
    metadata = {"name": "a", "namespace": "ns", "annotations": {"k": "hunter2"}}
    found = encoded({"metadata": metadata, "data": {"p": "hunter2"}})
    seen: Any = view_class(resource)(found)
    assert seen.data is not None
    assert "hunter2" not in repr(seen) + str(seen) + repr(seen.metadata) + repr(found)
    assert "ns/a" in repr(seen)


# References between records, their bytes and decoded bodies.


@dataclass
class Meta:
    name: str


@dataclass
class Pod:
    """A user's model."""

    metadata: Meta


class Struct(msgspec.Struct, weakref=True):
    """The same, for msgspec; it can be referred to weakly."""

    metadata: Meta


def raw_pod(version: int, padding: int = 0) -> bytes:
    return b'{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"%d"},"spec":{"nodeName":"%b"}}' % (
        version,
        b"n" * padding,
    )


def references_to(raw: bytes) -> int:
    return sys.getrefcount(raw) - 2  # the arguments of both functions


def admitted(objects: ObjectType[Any], raw: bytes) -> Record:
    return objects.on_arrival(objects.decode(raw))


def test_cached_model_does_not_keep_its_json() -> None:
    gc.disable()
    try:
        for decoder in (Pod, Struct, lambda raw: Struct(Meta("a"))):
            objects: ObjectType[Any] = ObjectType(PODS, decoder=decoder)
            raw = raw_pod(1)
            before = references_to(raw)
            record = admitted(objects, raw)
            kept = objects.to_view(record), objects.to_view(record)
            assert kept[0] is kept[1]
            del record
            assert references_to(raw) == before
    finally:
        gc.enable()


def test_shared_model_does_not_keep_old_versions() -> None:
    shared = Struct(Meta("a"))
    objects: ObjectType[Any] = ObjectType(PODS, decoder=lambda raw: shared)
    store: Indexer[Any] = Indexer(to_view=objects.to_view)
    gc.disable()
    try:
        _turn_over(store, objects, range(200))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        _turn_over(store, objects, range(200, 5200))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 20_000, "5,000 versions of 1,000 bytes left something behind"
    assert weakref.getweakrefcount(shared) == 1


def _turn_over(store: Indexer[Any], objects: ObjectType[Any], versions: range) -> None:
    for version in versions:
        store.store.put("ns/a", admitted(objects, raw_pod(version, 1000)))
        assert store.get_by_key("ns/a") is objects.to_view(store.store.item("ns/a"))


def test_threads_recall_bodies_that_others_drop() -> None:
    record = decode_record(raw_pod(1, 3))
    view: Any = view_class(PODS)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(2000):
                held = view(record)
                assert held.spec.node_name == "nnn"
                assert held.spec is held.spec
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        _in_threads(4, read)
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def _in_threads(count: int, function: Callable[[], None]) -> None:
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
