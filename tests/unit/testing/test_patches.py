"""Properties of patches on any document; rows of tests/real/contract check their results on an API server."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.testing.patches.json_patches import PatchError, json_patch, merge_patch
from aioinformer.testing.patches.strategic import PatchSchema, strategic_merge_patch
from aioinformer.testing.schemas.openapi_v3 import patch_schema

REJECTED = "the server rejected our request due to an error in our request"
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab~/", max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
)
MAPS_ONLY = st.recursive(
    st.dictionaries(st.text("ab", max_size=1), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.text("ab", max_size=1), inner | SCALARS, max_size=3),
)
OBJECTS = st.dictionaries(st.text("ab~/", max_size=2), VALUES, max_size=4)


def schema(api_version: str, kind: str) -> PatchSchema:
    found = patch_schema(api_version, kind)
    assert found is not None
    return found


POD = schema("v1", "Pod")


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [*containers], **spec}}


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def patched(current: dict[str, Any], patch: dict[str, Any], kind: PatchSchema = POD) -> dict[str, Any]:
    return strategic_merge_patch(current, patch, kind)


def names(obj: dict[str, Any]) -> list[str]:
    return [item["name"] for item in obj["spec"]["containers"]]


class TestJSONPatch:
    def test_inapplicable_operation_is_rejected(self) -> None:
        with pytest.raises(PatchError) as caught:
            json_patch({"a": [1, 2]}, [{"op": "add", "path": "/a/7", "value": 1}])

        assert (caught.value.status, caught.value.reason, caught.value.message) == (422, "Invalid", REJECTED)
        assert caught.value.cause == "Unable to access invalid index: 7"

    def test_failed_test_operation_undoes_earlier_ones(self) -> None:
        current = {"a": [1]}

        with pytest.raises(PatchError):
            json_patch(current, [{"op": "add", "path": "/a/0", "value": 0}, {"op": "test", "path": "/b", "value": 1}])

        assert current == {"a": [1]}

    @settings(max_examples=25)
    @given(OBJECTS, st.text("ab~/", max_size=2), VALUES)
    def test_added_value_is_found_under_its_escaped_name(self, current: Any, key: str, value: Any) -> None:
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")
        operations = [{"op": "add", "path": pointer, "value": value}, {"op": "test", "path": pointer, "value": value}]

        assert json_patch(current, operations) == current | {key: value}


class TestMergePatch:
    @settings(max_examples=25)
    @given(OBJECTS, MAPS_ONLY)
    def test_merge_patch_is_idempotent(self, current: Any, patch: Any) -> None:
        once = merge_patch(current, patch)

        assert merge_patch(once, patch) == once


class TestStrategicMergePatch:
    @settings(max_examples=25)
    @given(st.permutations("abcde"), st.permutations("abcde"), st.integers(0, 5), st.integers(0, 5))
    def test_patched_map_keeps_both_orders(self, before: list[str], order: list[str], have: int, want: int) -> None:
        current, wanted = before[:have], order[:want]
        patch = pod(*map(container, wanted))
        patch["spec"]["$setElementOrder/containers"] = [container(name) for name in wanted]
        if not current and not wanted:
            return

        result = names(patched(pod(*map(container, current)), patch))

        assert [name for name in result if name in wanted] == wanted
        assert [name for name in result if name not in wanted] == [name for name in current if name not in wanted]

    @settings(max_examples=25)
    @given(OBJECTS, OBJECTS)
    def test_labels_merge_like_a_merge_patch(self, before: Any, after: Any) -> None:
        before, after = ({key: str(value) for key, value in labels.items()} for labels in (before, after))
        current, patch = {"metadata": {"labels": before}}, {"metadata": {"labels": after | dict.fromkeys("a")}}

        assert patched(current, patch) == merge_patch(current, patch)

    def test_failed_patch_changes_no_arguments(self) -> None:
        current = pod(container("a", env=[]))
        patch = pod(container("a", env=[{"name": "E"}], **{"$retainKeys": ["env"]}))
        before = deepcopy((current, patch))

        with pytest.raises(PatchError):
            patched(current, patch)

        assert (current, patch) == before
