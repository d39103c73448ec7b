"""Strategic merge patches: merge keys, and replaced lists and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH, STRATEGIC
from tests.real.contract.patched import (
    ACCOUNTS,
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

SELECTED = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1, "labelSelector": {}}
SPREAD = {"topologySpreadConstraints": [SELECTED, SELECTED | {"topologyKey": "host"}]}
TWO = deployment({"name": "c", "image": "i", "tty": True}, {"name": "d", "image": "j"})
PORTS = {"ports": [{"containerPort": 80, "name": "x"}, {"containerPort": 81, "protocol": "UDP"}]}
ENVIRONMENT = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
MOUNTED = deployment(
    {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]},
    volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}],
)
VOLUMES = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}]}
ITEMS = {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "a", "path": "a"}]}}]}
PROJECTED = {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}
TOLERANT = {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]}
HOSTS = {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.2", "hostnames": ["c"]}]}
SERVED = [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}]
ACCOUNT = named() | {"secrets": [{"name": "s"}, {"name": "t"}], "imagePullSecrets": [{"name": "s"}]}
CLAIM = {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]}

LISTS: dict[str, Row] = {
    "containers": in_deployment(TWO, containers=[{"name": "d", "image": "k"}, {"name": "e", "image": "l"}]),
    "order": in_deployment(TWO, containers=[{"name": "d", "tty": True}, {"name": "c", "tty": None}]),
    "init_containers": in_pods(
        {"initContainers": [{"name": "a", "image": "i"}]},
        {"initContainers": [{"name": "b", "image": "j"}, {"name": "a", "command": ["x"]}]},
    ),
    "ports": in_container(PORTS, {"ports": [{"containerPort": 80, "name": "z"}, {"containerPort": 82}]}),
    "ports_by_protocol": in_container(PORTS, {"ports": [{"containerPort": 81, "protocol": "TCP"}]}),
    "env": in_container(ENVIRONMENT, {"env": [{"name": "C", "value": "3"}, {"name": "A", "value": "4"}]}),
    "env_of_a_field": in_container(ENVIRONMENT, {"env": [{"name": "A", "value": None, "valueFrom": FIELD}]}),
    "env_of_both": in_container(ENVIRONMENT, {"env": [{"name": "A", "valueFrom": FIELD}]}),
    "env_from": in_container(
        {"envFrom": [{"secretRef": {"name": "s"}}]}, {"envFrom": [{"configMapRef": {"name": "m"}}]}
    ),
    "command": in_container({"command": ["a", "b"]}, {"command": ["c"]}),
    "resources": in_container(
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
        {"resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "100m"}}},
    ),
    "capabilities": in_container(
        {"securityContext": {"capabilities": {"add": ["A"]}}},
        {"securityContext": {"capabilities": {"add": ["B"], "drop": ["C"]}}},
    ),
    "mounts": in_deployment(
        MOUNTED,
        containers=[
            {"name": "c", "volumeMounts": [{"name": "w", "mountPath": "/v"}, {"name": "v", "mountPath": "/x"}]}
        ],
    ),
    "volumes": in_pods(
        VOLUMES, {"volumes": [{"name": "w", "configMap": {"optional": True}}, {"name": "x", "emptyDir": {}}]}
    ),
    "volume_of_two_kinds": in_pods(VOLUMES, {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
    "volume_items": in_pods(ITEMS, {"volumes": [{"name": "v", "configMap": {"items": [{"key": "b", "path": "b"}]}}]}),
    "projected_sources": in_pods(
        PROJECTED, {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}}]}
    ),
    "tolerations": in_pods(TOLERANT, {"tolerations": [{"key": "c", "operator": "Exists"}]}),
    "pull_secrets": in_pods(
        {"imagePullSecrets": [{"name": "s"}, {"name": "t"}]}, {"imagePullSecrets": [{"name": "t"}, {"name": "u"}]}
    ),
    "host_aliases": in_pods(
        HOSTS, {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["z"]}, {"ip": "10.0.0.3", "hostnames": ["y"]}]}
    ),
    "spread": in_pods(SPREAD, {"topologySpreadConstraints": [SELECTED | {"maxSkew": 2}]}),
    "spread_by_both_keys": in_pods(
        SPREAD, {"topologySpreadConstraints": [SELECTED | {"whenUnsatisfiable": "DoNotSchedule"}]}
    ),
    "node_selector": in_pods({"nodeSelector": {"a": "b", "c": "d"}}, {"nodeSelector": {"a": None, "e": "f"}}),
    "claims": in_pods(
        CLAIM,
        {"resourceClaims": [{"name": "a", "resourceClaimName": "y"}, {"name": "b", "resourceClaimName": "z"}]},
    ),
    "template_labels": (DEPLOYMENTS, TWO, {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}),
    "service_ports": in_service(SERVED, {"ports": [{"port": 81, "targetPort": "web"}, {"port": 82, "name": "z"}]}),
    "service_ports_by_protocol": in_service(SERVED, {"ports": [{"port": 81, "protocol": "UDP"}]}),
    "selector": in_service([{"port": 80}], {"selector": {"a": None, "e": "f"}}, selector={"a": "b", "c": "d"}),
    "account_secrets": (ACCOUNTS, ACCOUNT, {"secrets": [{"name": "t", "namespace": "n"}, {"name": "u"}]}),
    "account_pull_secrets": (ACCOUNTS, ACCOUNT, {"imagePullSecrets": [{"name": "u"}]}),
    "finalizers": in_metadata({"finalizers": ["x/a", "x/b"]}, {"finalizers": ["x/c", "x/b"]}),
    "labels": in_metadata({"labels": {"a": "b", "c": "d"}}, {"labels": {"a": None, "e": "f", "g": None}}),
    "data": in_data({"a": "b", "c": "d"}, {"a": "", "c": None}),
    "all_data": in_data({"a": "b"}, None),
    "no_data": in_data({"a": "b"}, {}),
    "nothing": (CONFIGMAPS, named() | {"data": {"a": "b"}}, {}),
}


@variants("row", LISTS)
async def test_lists_and_maps_merge_by_their_strategy(api: Conversation, row: Row) -> None:
    path, made, patch = row
    await api.create(path, made)
    answer = await api("PATCH", f"{path}/a", patch, content_type=STRATEGIC)
    assert answer.status in (200, 422)
    await api("PATCH", f"{path}/a", NO_FINALIZERS, content_type=MERGE_PATCH, recorded=False)


OWNERS: dict[str, list[dict[str, Any]]] = {
    "merge": [{"uid": "1", "controller": True}],
    "add": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": "2"}],
    "delete": [{"uid": "0", "$patch": "delete"}],
    "delete_none": [{"uid": "2", "$patch": "delete"}],
    "replace": [{"$patch": "replace"}, {"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": "2"}],
    "no_uid": [{"name": "one"}],
    "no_name": [{"uid": "2"}],
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
    answer = await api("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"ownerReferences": said}}, content_type=STRATEGIC)
    assert answer.status in (200, 422, 500)
