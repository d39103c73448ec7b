"""Views as values: equality, hash, copies, pickling and repr."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.objects.views import ModelView, View, view_class
from tests.support.view_samples import POD, PODS, SECRETS, WIDGETS, encoded, pod, widget

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


@pytest.fixture(params=[pod, widget], ids=["model", "mapping"])
def view(request: pytest.FixtureRequest) -> Any:
    return request.param()


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


def test_different_metadata_is_not_equal() -> None:
    assert pod().metadata != pod(with_metadata(resourceVersion="8")).metadata
    assert pod().metadata != POD["metadata"]


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


def test_resource_has_one_view_class() -> None:
    assert view_class(PODS) is view_class(PODS)
    assert issubclass(view_class(PODS), ModelView)
    assert issubclass(view_class(WIDGETS), View)
    assert view_class(PODS).__name__ == "Pod"
