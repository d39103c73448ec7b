from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.testing.openapi.v3 import patch_schema
from aioinformer.testing.patches.media_types import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    PatchSchema,
    apply_patch,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)

UNHURRIED = settings(deadline=None)
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
DEPLOYMENT = schema("apps/v1", "Deployment")


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [*containers], **spec}}


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def patched(current: dict[str, Any], patch: dict[str, Any], kind: PatchSchema = POD) -> dict[str, Any]:
    return strategic_merge_patch(current, patch, kind)


def names(obj: dict[str, Any]) -> list[str]:
    return [item["name"] for item in obj["spec"]["containers"]]


def refusal(media_type: str, patch: Any, current: dict[str, Any] | None = None) -> PatchError:
    body = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    with pytest.raises(PatchError) as caught:
        apply_patch(media_type, pod(container("c", image="i")) if current is None else current, body, POD)
    return caught.value


class TestJSONPatch:
    @pytest.mark.parametrize(
        ("operation", "expected"),
        [
            ({"op": "add", "path": "/b", "value": 1}, {"a": [1, 2], "b": 1}),
            ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2]}),
            ({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9]}),
            ({"op": "add", "path": "/a/-1", "value": 9}, {"a": [1, 2, 9]}),
            ({"op": "remove", "path": "/a/-2"}, {"a": [2]}),
            ({"op": "replace", "path": "/a", "value": {}}, {"a": {}}),
            ({"op": "replace", "path": "/new", "value": 1}, {"a": [1, 2], "new": 1}),
            ({"op": "move", "from": "/a/0", "path": "/c"}, {"a": [2], "c": 1}),
            ({"op": "copy", "from": "/a", "path": "/c"}, {"a": [1, 2], "c": [1, 2]}),
            ({"op": "copy", "from": "/none", "path": "/c"}, {"a": [1, 2], "c": None}),
            ({"op": "test", "path": "/none", "value": None}, {"a": [1, 2]}),
            ({"op": "test", "path": "/a", "value": [1, 2]}, {"a": [1, 2]}),
            ({"op": "add", "path": "/x~1y~0z", "value": 1}, {"a": [1, 2], "x/y~z": 1}),
        ],
    )
    def test_an_operation_does_what_an_api_server_does(self, operation: Any, expected: Any) -> None:
        assert json_patch({"a": [1, 2]}, [operation]) == expected

    @pytest.mark.parametrize(
        ("operation", "cause"),
        [
            ({"op": "remove", "path": "/b"}, "Unable to remove nonexistent key: b"),
            ({"op": "test", "path": "/a/0", "value": True}, "testing value /a/0 failed"),
            ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
            ({"op": "add", "path": "/b/c", "value": 1}, 'add operation does not apply: doc is missing path: "/b/c"'),
            ({"op": "add", "path": "/a/7", "value": 1}, "Unable to access invalid index: 7"),
            ({"op": "remove", "path": "/a/one"}, "value was not a proper array index: 'one'"),
            ({"op": "add"}, "add operation, missing path field"),
        ],
    )
    def test_an_operation_that_does_not_apply_is_rejected_without_a_word_why(self, operation: Any, cause: str) -> None:
        with pytest.raises(PatchError) as caught:
            json_patch({"a": [1, 2]}, [operation])

        assert (caught.value.status, caught.value.reason, caught.value.message) == (422, "Invalid", REJECTED)
        assert caught.value.cause == cause

    def test_a_failed_test_undoes_what_came_before(self) -> None:
        current = {"a": [1]}

        with pytest.raises(PatchError):
            json_patch(current, [{"op": "add", "path": "/a/0", "value": 0}, {"op": "test", "path": "/b", "value": 1}])

        assert current == {"a": [1]}

    def test_more_operations_than_the_limit_are_refused(self) -> None:
        with pytest.raises(PatchError, match="maximum operations in a JSON patch is 10000, got 10001") as caught:
            json_patch({}, [{"op": "test", "path": "/a", "value": None}] * 10_001)

        assert caught.value.status == 413

    @UNHURRIED
    @given(OBJECTS, st.text("ab~/", max_size=2), VALUES)
    def test_what_is_added_is_found_under_its_escaped_name(self, current: Any, key: str, value: Any) -> None:
        pointer = "/" + key.replace("~", "~0").replace("/", "~1")
        operations = [{"op": "add", "path": pointer, "value": value}, {"op": "test", "path": pointer, "value": value}]

        assert json_patch(current, operations) == current | {key: value}


class TestMergePatch:
    @pytest.mark.parametrize(
        ("current", "patch", "expected"),
        [
            ({"a": "b"}, {"a": "c"}, {"a": "c"}),
            ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
            ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
            ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
            ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
            ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
            ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
            ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ],
    )
    def test_the_examples_of_the_standard_hold(self, current: Any, patch: Any, expected: Any) -> None:
        assert merge_patch(current, patch) == expected

    @UNHURRIED
    @given(OBJECTS, MAPS_ONLY)
    def test_patching_twice_is_patching_once(self, current: Any, patch: Any) -> None:
        once = merge_patch(current, patch)

        assert merge_patch(once, patch) == once

    @UNHURRIED
    @given(OBJECTS)
    def test_nulls_leave_nothing(self, current: Any) -> None:
        assert merge_patch(current, dict.fromkeys(current)) == {}


class TestStrategicMergePatch:
    def test_elements_are_merged_by_their_key(self) -> None:
        current = pod(container("a", image="1", tty=True), container("b", image="1"))

        result = patched(current, pod(container("b", image="2"), container("c", image="3")))

        assert {item["name"]: item["image"] for item in result["spec"]["containers"]} == {"a": "1", "b": "2", "c": "3"}
        assert result["spec"]["containers"][names(result).index("a")]["tty"] is True

    def test_an_element_is_deleted_by_its_key(self) -> None:
        current = pod(container("a"), container("b"))

        assert names(patched(current, pod(container("a", **{"$patch": "delete"})))) == ["b"]

    def test_a_list_is_replaced_on_request(self) -> None:
        current = pod(container("a"), container("b"))

        assert names(patched(current, pod({"$patch": "replace"}, container("c")))) == ["c"]

    def test_a_list_without_a_strategy_is_replaced(self) -> None:
        current = pod(container("a", command=["x", "y"]))

        result = patched(current, pod(container("a", command=["z"])))

        assert result["spec"]["containers"][0]["command"] == ["z"]

    def test_a_list_of_scalars_is_a_set(self) -> None:
        current = {"metadata": {"finalizers": ["a", "b"]}}

        result = patched(current, {"metadata": {"finalizers": ["b", "c"]}})

        assert sorted(result["metadata"]["finalizers"]) == ["a", "b", "c"]

    def test_scalars_are_deleted_by_a_parallel_list(self) -> None:
        current = {"metadata": {"finalizers": ["a", "b", "c"]}}
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}}

        assert sorted(patched(current, patch)["metadata"]["finalizers"]) == ["a", "c", "d"]

    def test_the_order_of_the_patch_wins_and_the_rest_stays_where_it_was(self) -> None:
        current = pod(*map(container, ("a", "server", "b", "c")))
        patch = pod(container("c", image="2"))
        patch["spec"]["$setElementOrder/containers"] = [container(name) for name in ("c", "b", "a")]

        assert names(patched(current, patch)) == ["server", "c", "b", "a"]

    def test_a_map_is_replaced_or_emptied_on_request(self) -> None:
        current = {"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}}
        patch = {"metadata": {"labels": {"$patch": "replace", "c": "3"}, "annotations": {"$patch": "delete"}}}

        assert patched(current, patch) == {"metadata": {"labels": {"c": "3"}, "annotations": {}}}

    def test_only_retained_keys_survive(self) -> None:
        current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
        patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

        assert patched(current, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}

    def test_what_is_new_comes_without_nulls_and_directives(self) -> None:
        fields = {"tty": None, "env": [{"name": "E", "value": None}], "$setElementOrder/env": [{"name": "E"}]}

        assert patched(pod(), pod(container("a", **fields)))["spec"]["containers"] == [
            container("a", env=[{"name": "E"}])
        ]

    def test_ports_are_told_apart_by_number(self) -> None:
        current = pod(container("a", ports=[{"containerPort": 80, "name": "x"}]))
        patch = pod(container("a", ports=[{"containerPort": 80, "name": "y"}, {"containerPort": 81}]))

        ports = patched(current, patch)["spec"]["containers"][0]["ports"]

        assert ports == [{"containerPort": 80, "name": "y"}, {"containerPort": 81}]

    @UNHURRIED
    @given(st.permutations("abcde"), st.permutations("abcde"), st.integers(0, 5), st.integers(0, 5))
    def test_order_of_patch_and_order_of_the_rest_both_hold(
        self, before: list[str], order: list[str], have: int, want: int
    ) -> None:
        current, wanted = before[:have], order[:want]
        patch = pod(*map(container, wanted))
        patch["spec"]["$setElementOrder/containers"] = [container(name) for name in wanted]
        if not current and not wanted:
            return

        result = names(patched(pod(*map(container, current)), patch))

        assert [name for name in result if name in wanted] == wanted
        assert [name for name in result if name not in wanted] == [name for name in current if name not in wanted]

    @UNHURRIED
    @given(OBJECTS, OBJECTS)
    def test_labels_merge_as_a_merge_patch_does(self, before: Any, after: Any) -> None:
        before, after = ({key: str(value) for key, value in labels.items()} for labels in (before, after))
        current, patch = {"metadata": {"labels": before}}, {"metadata": {"labels": after | dict.fromkeys("a")}}

        assert patched(current, patch) == merge_patch(current, patch)

    def test_the_arguments_are_left_alone(self) -> None:
        current, patch = (
            pod(container("a", env=[])),
            pod(container("a", env=[{"name": "E"}], **{"$retainKeys": ["env"]})),
        )
        before = deepcopy((current, patch))

        with pytest.raises(PatchError):
            patched(current, patch)

        assert (current, patch) == before


class TestRefusals:
    """Every text was taken from kube-apiserver's answer to the same patch."""

    @pytest.mark.parametrize(
        ("patch", "status", "message"),
        [
            ({"$patch": "frob"}, 500, "unknown patch type: frob in map: map[$patch:frob]"),
            (
                {"spec": {"containers": [{"image": "x"}]}},
                500,
                "map: map[image:x] does not contain declared merge key: name",
            ),
            (
                {"spec": {"containers": ["x"]}},
                500,
                "list element types are not identical: [[map[image:i name:c]] [x]]",
            ),
            (
                {"spec": {"$setElementOrder/nope": [{"name": "x"}]}},
                500,
                'unable to find api field in struct PodSpec for the json field "nope"',
            ),
            (
                {"spec": {"$setElementOrder/containers": 5}},
                500,
                "expected a []interface {}, but received a int64",
            ),
            (
                {"spec": {"containers": [{"name": "c", "$patch": "merge"}]}},
                500,
                "merging lists cannot yet be specified in the patch",
            ),
            ({"spec": {"$retainKeys": ["x"], "containers": []}}, 400, "invalid patch format of retainKeys"),
            ({"metadata": {"$deleteFromPrimitiveList": [5]}}, 400, "invalid patch format of primitive list"),
            (
                {"spec": {"$setElementOrder/containers": [{"name": "x"}], "containers": [{"name": "q", "image": "x"}]}},
                500,
                "The order in patch list:\n[map[image:x name:q]]\n"
                " doesn't match $setElementOrder list:\n[map[name:x]]\n",
            ),
            ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
            (b"garbage", 400, "invalid character 'g' looking for beginning of value"),
        ],
    )
    def test_a_bad_strategic_patch_is_told_as_the_api_server_tells_it(
        self, patch: Any, status: int, message: str
    ) -> None:
        error = refusal(STRATEGIC_MERGE_PATCH, patch)

        assert (error.status, error.reason, error.message) == (status, "BadRequest" if status == 400 else "", message)

    @pytest.mark.parametrize(
        ("media_type", "patch", "message"),
        [
            (
                JSON_PATCH,
                {"op": "add"},
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                JSON_PATCH,
                [1],
                "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
            ),
            (
                JSON_PATCH,
                [{"op": "add", "path": 5}],
                "error decoding patch: "
                "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            ),
            (
                MERGE_PATCH,
                [1],
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (MERGE_PATCH, None, "Invalid JSON Patch"),
            (MERGE_PATCH, b"garbage", "error decoding patch: invalid character 'g' looking for beginning of value"),
        ],
    )
    def test_a_body_that_is_no_patch_is_a_bad_request(self, media_type: str, patch: Any, message: str) -> None:
        error = refusal(media_type, patch)

        assert (error.status, error.reason, error.message) == (400, "BadRequest", message)

    def test_custom_resources_have_no_strategic_patch(self) -> None:
        with pytest.raises(PatchError) as caught:
            apply_patch(STRATEGIC_MERGE_PATCH, {}, b"{}", None)

        assert caught.value.status == 415
        assert caught.value.message == (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )

    def test_parameters_of_the_media_type_are_ignored(self) -> None:
        assert apply_patch(f"{MERGE_PATCH}; charset=utf-8", {}, b'{"a":1}') == {"a": 1}
