"""Strategic merge patches: merge keys, directives, replaced lists and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH, STRATEGIC
from tests.real.contract.tables import (
    CONFIGMAPS,
    DEPLOYMENTS,
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
    variants,
)

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


TWO = deployment({"name": "c", "image": "i", "tty": True}, {"name": "d", "image": "j"})
PORTS = {"ports": [{"containerPort": 80, "name": "x"}, {"containerPort": 81, "protocol": "UDP"}]}
ENVIRONMENT = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}]}
TOLERANT = {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]}
SERVED = [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}]

LISTS: dict[str, Row] = {
    "containers": in_deployment(TWO, containers=[{"name": "d", "image": "k"}, {"name": "e", "image": "l"}]),
    "ports": in_container(PORTS, {"ports": [{"containerPort": 80, "name": "z"}, {"containerPort": 82}]}),
    "env": in_container(ENVIRONMENT, {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "4"}]}),
    "command": in_container({"command": ["a", "b"]}, {"command": ["c"]}),
    "volumes": in_pods(
        VOLUMES, {"volumes": [{"name": "w", "configMap": {"optional": True}}, {"name": "x", "emptyDir": {}}]}
    ),
    "tolerations": in_pods(TOLERANT, {"tolerations": [{"key": "c", "operator": "Exists"}]}),
    "node_selector": in_pods({"nodeSelector": {"a": "b", "c": "d"}}, {"nodeSelector": {"a": None, "e": "f"}}),
    "service_ports": in_service(SERVED, {"ports": [{"port": 81, "targetPort": "web"}, {"port": 82, "name": "z"}]}),
    "finalizers": in_metadata({"finalizers": ["x/a", "x/b"]}, {"finalizers": ["x/c", "x/b"]}),
    "labels": in_metadata({"labels": {"a": "b", "c": "d"}}, {"labels": {"a": None, "e": "f", "g": None}}),
    "data": in_data({"a": "b", "c": "d"}, {"a": "", "c": None}),
}


MOUNTS = {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}]}
MOUNTING = deployment({"name": "c", "image": "i", **MOUNTS}, volumes=[{"name": "v", "emptyDir": {}}])
HOST = {"hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}
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
    "delete_and_add": containers({"name": "c"} | DELETE, {"name": "e", "image": "k"}),
    "delete_mount": containers({"name": "c", "volumeMounts": [{"mountPath": "/v"} | DELETE]}, made=MOUNTING),
    "delete_map": in_data(DATA, DELETE),
    "replace_map": in_data(DATA, REPLACE | {"e": "f"}),
    "replace_list": containers(REPLACE, {"name": "e", "image": "k"}),
    "replace_root": whole(REPLACE | {"metadata": {"name": "a"}, "data": {"e": "f"}}),
    "delete_finalizers": in_metadata(FINALIZERS, {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/z"]}),
    "delete_and_add_finalizers": in_metadata(
        FINALIZERS, {"$deleteFromPrimitiveList/finalizers": ["x/a"], "finalizers": ["x/d"]}
    ),
    "order_of_finalizers": in_metadata(
        FINALIZERS, {"$setElementOrder/finalizers": ["x/c", "x/d", "x/a"], "finalizers": ["x/d"]}
    ),
    "order": containers({"name": "d", "tty": True}, more=order("containers", "d", "c")),
    "order_with_a_deletion": containers(
        {"name": "c"} | DELETE, {"name": "e", "image": "k"}, more=order("containers", "e", "d")
    ),
    "retain": strategy({RETAIN: ["type"], "type": "Recreate"}),
    "retain_not_said": strategy({"type": "Recreate"}),
    "retain_in_a_volume": in_pods(VOLUMES, {"volumes": [{"name": "v"} | HOST]}),
}


MISTAKES: dict[str, Row] = {
    "unknown_directive": whole({"$patch": "frob"}),
    "delete_without_a_key": containers({"image": "x"} | DELETE),
    "no_key": containers({"image": "x"}),
    "text_for_an_element": containers("x"),
    "order_lacks_an_element": containers({"name": "q", "image": "x"}, more=order("containers", "c")),
    "retain_too_little": strategy({RETAIN: ["rollingUpdate"], "type": "Recreate"}),
}


@variants("row", LISTS | DIRECTIVES | MISTAKES)
async def test_strategic_merge_patch(api: Conversation, row: Row) -> None:
    path, made, patch = row
    await api.create(path, made)
    await api("PATCH", f"{path}/a", patch, content_type=STRATEGIC)
    await api("PATCH", f"{path}/a", NO_FINALIZERS, content_type=MERGE_PATCH, recorded=False)


OWNERS: dict[str, list[dict[str, Any]]] = {
    "merge": [{"uid": "1", "controller": True}],
    "add": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": "2"}],
    "delete": [{"uid": "0", "$patch": "delete"}],
    "replace": [{"$patch": "replace"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": "2"}],
}


@variants("patch", OWNERS)
async def test_owner_references_merge_by_uid(api: Conversation, patch: list[dict[str, Any]]) -> None:
    made = [await api.create(CONFIGMAPS, {"metadata": {"name": name}}) for name in ("zero", "one", "two")]
    uids = [each["metadata"]["uid"] for each in made]
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        for name, uid in zip(("zero", "one"), uids, strict=False)
    ]
    await api("POST", CONFIGMAPS, named(ownerReferences=owners))
    said = [each | ({"uid": uids[int(each["uid"])]} if "uid" in each else {}) for each in patch]
    await api("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"ownerReferences": said}}, content_type=STRATEGIC)
