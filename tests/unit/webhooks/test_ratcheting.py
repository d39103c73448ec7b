"""Updates of objects that the class refuses: only what cannot hide a new mistake passes without the function."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from aioinformer import Resource
from aioinformer.controller import Manager
from aioinformer.crds import custom_resource
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec needs it
from aioinformer.webhooks import AdmissionRequest  # noqa: TC001 - as above
from tests.support.managers import Server
from tests.support.reviews import response, review, widget

Small = Annotated[int, msgspec.Meta(le=10)]
PATHS = {purpose: f"/{purpose}/widgets.example.com" for purpose in ("validate", "default")}


class Labels(msgspec.Struct, frozen=True):
    team: Annotated[str, msgspec.Meta(max_length=3)] = ""


class Meta(msgspec.Struct, frozen=True):
    labels: Labels = Labels()


class Spec(msgspec.Struct, frozen=True):
    size: Small = 1
    count: Small = 1
    flag: bool = False


class Status(msgspec.Struct, frozen=True):
    seen: Small = 0


class Widget(msgspec.Struct, frozen=True):
    spec: Spec = Spec()
    metadata: Meta = Meta()
    status: Status = Status()


class Whole(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.spec.get("size", 0) > 10 or "labels" in self.metadata:
            raise ValueError


def obj(size: int = 50, *, metadata: Any = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    made = widget(size=size, **spec)
    made["metadata"] |= metadata or {}
    return made if status is None else {**made, "status": status}


async def answered(new: Any, old: Any, cls: Any = Widget, *, status_apart: bool = False) -> tuple[str, list[str]]:
    """Return what became of an update: "passed", "called", or the refused field; and the warnings."""
    subresources = ("status",) if status_apart else ()
    resource: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget", decoder=cls, subresources=subresources)
    manager, called = Manager("test", client=Server()), []

    @manager.validate(resource)
    async def check(request: AdmissionRequest[Any]) -> None:
        called.append(request)

    async with manager:
        found = await response(manager.admission, PATHS["validate"], review(new, old))
    if not found["allowed"]:
        assert found["status"]["code"] == 422
        return found["status"]["details"]["causes"][0]["field"], []
    return "called" if called else "passed", found.get("warnings", [])


LONG = {"labels": {"team": "long"}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}


@pytest.mark.behaviour("C-131")
@pytest.mark.parametrize(
    "metadata", [{"labels": {"team": "a"}}, {"finalizers": []}, {"annotations": {"a": "b"}}, DELETED]
)
async def test_change_of_metadata_passes_with_a_warning(metadata: Any) -> None:
    result, warnings = await answered(obj(metadata=metadata), obj(metadata=DELETED))
    assert result == "passed"
    expected = "spec.size: the class refuses it, but it is unchanged, so validate/widgets.example.com is skipped"
    assert warnings == [expected]


@pytest.mark.behaviour("C-131")
@pytest.mark.parametrize(
    ("new", "old", "field"),
    [
        (obj(60), obj(), "spec.size"),
        (obj(count=50), obj(), "spec.size"),
        (obj(flag=True), obj(flag=1), "spec.size"),
        (obj(flag=1), obj(flag=1.0), "spec.size"),
        (obj(extra="x"), obj(), "spec.size"),
        (obj(), obj(5), "spec.size"),
        (obj(60, metadata=DELETED), obj(metadata=DELETED), "spec.size"),
        (obj(metadata={**DELETED, "finalizers": []}, count=3), obj(metadata=DELETED), "spec.size"),
        (obj(metadata={"labels": {"team": "long"}}), obj(), "metadata.labels.team"),
        (
            obj(metadata={"labels": {"team": "long"}}),
            obj(metadata={"labels": {"team": "long"}}),
            "metadata.labels.team",
        ),
        (obj(status={"seen": 5}), obj(status={"seen": 6}), "spec.size"),
    ],
)
async def test_every_other_update_is_refused(new: Any, old: Any, field: str) -> None:
    assert await answered(new, old) == (field, [])


@pytest.mark.behaviour("C-131")
@pytest.mark.parametrize(
    ("new", "old", "result"),
    [
        ({"seen": 5}, {"seen": 6}, "passed"),
        ({"seen": 50}, {"seen": 50}, "passed"),
        ({"seen": 50}, {"seen": 6}, "spec.size"),
        ({"seen": 51}, {"seen": 50}, "spec.size"),
    ],
)
async def test_status_may_change_where_it_is_a_subresource(new: Any, old: Any, result: str) -> None:
    assert (await answered(obj(status=new), obj(status=old), status_apart=True))[0] == result


class Metadatas(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    metadatas: Small = 1


@pytest.mark.behaviour("C-131")
async def test_field_whose_name_begins_like_metadata_is_no_part_of_it() -> None:
    old = {**obj(5), "metadatas": 50}
    new = {**obj(5, metadata={"labels": {"team": "a"}}), "metadatas": 50}
    assert (await answered(new, old, Metadatas))[0] == "passed"


@pytest.mark.behaviour("C-131")
async def test_unknown_place_of_a_mistake_may_be_the_metadata() -> None:
    assert (await answered(obj(metadata={"annotations": {"a": "b"}}), obj(), Whole))[0] == ""


@pytest.mark.behaviour("C-131")
async def test_object_that_decodes_always_reaches_the_function() -> None:
    for new, old in ((obj(5), obj()), (obj(5, metadata=DELETED), obj(5, metadata=DELETED))):
        assert await answered(new, old) == ("called", [])


class Declared(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec = Spec()


async def test_default_leaves_mistakes_to_the_schema_of_its_class() -> None:
    for resource, allowed in (
        (custom_resource(Declared, "example.com", "v1", kind="Widget"), True),
        (Resource("example.com", "v1", "widgets", "Widget", decoder=Declared), False),
    ):
        manager = Manager("test", client=Server())

        @manager.default(resource)
        async def fill(request: AdmissionRequest[Declared]) -> Declared:
            raise AssertionError

        async with manager:
            found = await response(manager.admission, PATHS["default"], review(obj()))
        assert found["allowed"] is allowed
        if not allowed:
            assert found["status"]["details"]["causes"][0]["field"] == "spec.size"
