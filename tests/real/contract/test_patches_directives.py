"""Strategic merge patches: directives, valid and invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH, STRATEGIC
from tests.real.contract.patched import (
    NO_FINALIZERS,
    Row,
    deployment,
    in_container,
    in_data,
    in_deployment,
    in_metadata,
    in_pods,
    in_service,
    named,
)
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

TWO = deployment({"name": "c", "image": "i", "tty": True}, {"name": "d", "image": "j"})
FOUR = deployment(*({"name": name, "image": "i"} for name in ("c", "server", "d", "e")))
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}]}
MOUNTING = deployment({"name": "c", "image": "i", **MOUNTED}, volumes=[{"name": "v", "emptyDir": {}}])
ENVIRONMENT = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
PORTS = {"ports": [{"containerPort": 80, "name": "x"}, {"containerPort": 81}]}
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}]}
HOST = {"hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}
TOLERANT = {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]}
SERVED = [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}]
FINALIZERS = {"finalizers": ["x/a", "x/b", "x/c"]}
DATA = {"a": "b", "c": "d"}
DELETE = {"$patch": "delete"}
REPLACE = {"$patch": "replace"}
RETAIN = "$retainKeys"


def containers(*patch: Any, made: dict[str, Any] = TWO, more: dict[str, Any] | None = None) -> Row:
    return in_deployment(made, containers=list(patch), **(more or {}))


def whole(patch: Any) -> Row:
    return CONFIGMAPS, named() | {"data": DATA}, patch


def strategy(patch: dict[str, Any]) -> Row:
    return DEPLOYMENTS, TWO, {"spec": {"strategy": patch}}


def order(field: str, *elements: str) -> dict[str, Any]:
    return {f"$setElementOrder/{field}": [{"name": each} for each in elements]}


DIRECTIVES: dict[str, Row] = {
    "delete": containers({"name": "c"} | DELETE),
    "delete_with_fields": containers({"name": "c", "image": "x"} | DELETE),
    "delete_none": containers({"name": "x"} | DELETE),
    "delete_and_add": containers({"name": "c"} | DELETE, {"name": "e", "image": "k"}),
    "delete_and_change": containers({"name": "c"} | DELETE, {"name": "c", "image": "k"}),
    "delete_env": in_container(ENVIRONMENT, {"env": [{"name": "A"} | DELETE]}),
    "delete_all_env": in_container(ENVIRONMENT, {"env": [{"name": "A"} | DELETE, {"name": "B"} | DELETE]}),
    "delete_list": in_container(ENVIRONMENT, {"env": None}),
    "delete_port": in_container(PORTS, {"ports": [{"containerPort": 80} | DELETE]}),
    "delete_mount": containers({"name": "c", "volumeMounts": [{"mountPath": "/v"} | DELETE]}, made=MOUNTING),
    "delete_in_a_new_list": in_container({}, {"env": [{"name": "A"} | DELETE, {"name": "B", "value": "1"}]}),
    "delete_from_an_atomic_list": in_pods(TOLERANT, {"tolerations": [{"key": "a"} | DELETE]}),
    "delete_service_port": in_service(SERVED, {"ports": [{"port": 81} | DELETE]}),
    "delete_map": in_data(DATA, DELETE),
    "delete_map_with_keys": in_data(DATA, DELETE | {"e": "f"}),
    "delete_new_map": in_data(None, DELETE | {"e": "f"}),
    "delete_root": whole(DELETE),
    "replace_map": in_data(DATA, REPLACE | {"e": "f"}),
    "replace_map_with_null": in_data(DATA, REPLACE | {"e": None}),
    "replace_new_map": in_data(None, REPLACE | {"e": "f"}),
    "replace_labels": in_metadata({"labels": DATA}, {"labels": REPLACE | {"e": "f"}}),
    "replace_list": containers(REPLACE, {"name": "e", "image": "k"}),
    "replace_list_late": containers({"name": "e", "image": "k"}, REPLACE),
    "replace_by_nothing": in_container(ENVIRONMENT, {"env": [REPLACE]}),
    "replace_by_an_element": containers({"name": "c", "image": "k"} | REPLACE, {"name": "e", "image": "k"}),
    "replace_without_a_key": in_container(ENVIRONMENT, {"env": [REPLACE, {"value": "3"}]}),
    "replace_resources": in_container(
        {"resources": {"limits": {"cpu": "1"}}}, {"resources": REPLACE | {"limits": {"memory": "2Gi"}}}
    ),
    "replace_root": whole(REPLACE | {"metadata": {"name": "a"}, "data": {"e": "f"}}),
    "replace_directives": in_metadata({"labels": DATA}, {"labels": REPLACE | {"$retainKeys": "x"}}),
    "delete_finalizers": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/z"]}),
    "delete_and_add_finalizers": in_metadata(
        FINALIZERS, {"$deleteFromPrimitiveList/finalizers": ["x/a"], "finalizers": ["x/d"]}
    ),
    "delete_from_no_list": in_metadata({}, {"$deleteFromPrimitiveList/finalizers": ["x/a"]}),
    "delete_from_command": in_container({"command": ["a", "b"]}, {"$deleteFromPrimitiveList/command": ["a"]}),
    "order_of_finalizers": in_metadata(
        FINALIZERS, {"$setElementOrder/finalizers": ["x/c", "x/d", "x/a"], "finalizers": ["x/d"]}
    ),
    "order": containers({"name": "d", "tty": True}, more=order("containers", "d", "c")),
    "order_alone": in_deployment(TWO, **order("containers", "d", "c")),
    "order_of_some": containers({"name": "e", "tty": True}, made=FOUR, more=order("containers", *"edc")),
    "order_with_a_deletion": containers(
        {"name": "c"} | DELETE, {"name": "e", "image": "k"}, more=order("containers", "e", "d")
    ),
    "order_of_env": in_container(ENVIRONMENT, {"env": [{"name": "C", "value": "3"}]} | order("env", *"BCA")),
    "order_of_a_new_list": in_container({}, {"env": [{"name": "A"}, {"name": "B"}]} | order("env", *"AB")),
    "order_in_a_new_element": containers({"name": "e", "image": "k", "env": [{"name": "A"}]} | order("env", "A")),
    "order_of_nothing": in_container({}, order("env")),
    "retain": strategy({RETAIN: ["type"], "type": "Recreate"}),
    "retain_not_said": strategy({"type": "Recreate"}),
    "retain_with_null": strategy({RETAIN: ["type"], "type": "Recreate", "rollingUpdate": None}),
    "retain_in_a_volume": in_pods(VOLUMES, {"volumes": [{"name": "v"} | HOST]}),
    "retain_in_a_new_volume": in_pods(VOLUMES, {"volumes": [{"name": "x"} | HOST]}),
    "retain_data": in_data(DATA, {RETAIN: ["a"]}),
    "retain_and_add_data": in_data(DATA, {RETAIN: ["a", "e"], "e": "f"}),
}


@variants("row", DIRECTIVES)
async def test_strategic_merge_directives(api: Conversation, row: Row) -> None:
    path, made, patch = row
    await api.create(path, made)
    answer = await api("PATCH", f"{path}/a", patch, content_type=STRATEGIC)
    assert answer.status in (200, 400, 422, 500)
    await api("PATCH", f"{path}/a", NO_FINALIZERS, content_type=MERGE_PATCH, recorded=False)


MISTAKES: dict[str, Row] = {
    "unknown_directive": whole({"$patch": "frob"}),
    "directive_is_a_number": whole({"$patch": 1}),
    "directive_is_null": whole({"$patch": None}),
    "merge": in_data(DATA, {"$patch": "merge", "e": "f"}),
    "merge_element": containers({"name": "c", "$patch": "merge"}),
    "unknown_directive_in_an_element": containers({"name": "c", "$patch": "frob"}),
    "delete_without_a_key": containers({"image": "x"} | DELETE),
    "no_key": containers({"image": "x"}),
    "key_is_a_number": containers({"name": 1, "image": "x"}),
    "key_is_null": containers({"name": None, "image": "x"}),
    "text_for_an_element": containers("x"),
    "texts_and_maps": containers("x", {"name": "c"}),
    "list_for_an_element": containers([]),
    "map_for_a_list": in_deployment(TWO, containers={"name": "c"}),
    "text_for_a_map": in_data(DATA, "x"),
    "list_for_a_map": in_data(DATA, ["x"]),
    "map_for_a_finalizer": in_metadata(FINALIZERS, {"finalizers": [{}]}),
    "list_of_lists": in_metadata(FINALIZERS, {"finalizers": [["x"]]}),
    "unknown_map": whole({"frob": {"a": "b"}}),
    "unknown_field_below_a_map": in_data({"a": "b"}, {"a": {"b": "c"}}),
    "order_of_an_unknown_list": in_deployment(TWO, **order("nope", "x")),
    "order_is_a_number": in_deployment(TWO, **{"$setElementOrder/containers": 5}),
    "order_is_null": in_deployment(TWO, **{"$setElementOrder/containers": None}),
    "order_of_no_list": in_deployment(TWO, **{"$setElementOrder": [{"name": "c"}]}),
    "order_of_a_map": in_metadata({"labels": DATA}, {"$setElementOrder/labels": ["a"]}),
    "order_of_a_text": in_pods({}, {"$setElementOrder/dnsPolicy": ["a"]}),
    "order_in_a_map": in_data(DATA, {"$setElementOrder/a": ["a"]}),
    "order_without_a_key": containers({"name": "c"}, more={"$setElementOrder/containers": [{"image": "c"}]}),
    "order_of_texts": containers({"name": "c"}, more={"$setElementOrder/containers": ["c"]}),
    "order_lacks_an_element": containers({"name": "q", "image": "x"}, more=order("containers", "c")),
    "order_is_another": containers({"name": "d", "tty": True}, {"name": "c"}, more=order("containers", "c", "d")),
    "delete_from_maps": in_deployment(TWO, **{"$deleteFromPrimitiveList/containers": ["c"]}),
    "delete_from_a_map": in_metadata({"labels": DATA}, {"$deleteFromPrimitiveList/labels": ["a"]}),
    "delete_from_an_unknown_list": in_metadata({}, {"$deleteFromPrimitiveList/frob": ["a"]}),
    "delete_is_a_text": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": "x/a"}),
    "delete_is_null": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": None}),
    "delete_numbers": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": [1]}),
    "delete_from_no_list": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList": ["x/a"]}),
    "retain_too_little": strategy({RETAIN: ["rollingUpdate"], "type": "Recreate"}),
    "retain_is_a_text": strategy({RETAIN: "type", "type": "Recreate"}),
    "retain_is_null": strategy({RETAIN: None, "type": "Recreate"}),
    "retain_numbers": strategy({RETAIN: [1]}),
    "unknown_prefix": in_metadata({}, {"$frob/finalizers": ["x"]}),
    "unknown_prefix_of_a_map": in_metadata({}, {"$frob": {"a": "b"}}),
}


@variants("row", MISTAKES)
async def test_invalid_strategic_patches_are_refused(api: Conversation, row: Row) -> None:
    path, made, patch = row
    await api.create(path, made)
    answer = await api("PATCH", f"{path}/a", patch, content_type=STRATEGIC)
    assert answer.status in (200, 400, 422, 500)
    await api("PATCH", f"{path}/a", NO_FINALIZERS, content_type=MERGE_PATCH, recorded=False)
