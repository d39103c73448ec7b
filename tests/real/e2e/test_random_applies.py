"""Random configurations on a real API server: applies that are skipped change nothing, and few are sent for nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aioinformer import ApiError, Client, Conflict, Resource, connect
from aioinformer.errors import Invalid
from tests.support.deployment_changes import without_version

if TYPE_CHECKING:
    from random import Random

    from tests.support.real_cluster import RealCluster

#: How many sequences of configurations; and how many sent requests may change nothing: one in this many.
_SEQUENCES, _ONE_IN = 300, 10
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", kind="Widget")
DEFINITION = Path(__file__).parents[3] / "examples" / "widgets.yaml"
#: What another manager changes meanwhile.
OTHERS = [
    {"metadata": {"labels": {"a": "z"}}},
    {"metadata": {"labels": None}},
    {"metadata": {"annotations": {"x": ""}}},
]
ABSENT: Final = object()


class AnyOf(tuple[Any, ...]):
    """Alternatives for a value."""

    __slots__ = ()


def any_of(*values: Any) -> AnyOf:
    return AnyOf(values)


LABELS = {"app": "web"}
MAP = any_of({}, ABSENT, {"a": "b"}, {"a": ""}, {"a": "b", "c": "d"})
EMPTY_LIST = any_of([], ABSENT)
CPU = any_of("1", "1000m", 1, "1e0", "1.0", "500m", "0.5", ABSENT)
MEMORY = any_of("1Gi", "1024Mi", "1073741824", "1.5Gi", "1536Mi", ABSENT)
QUANTITIES = any_of({}, ABSENT, {"cpu": CPU, "memory": MEMORY})
ZERO = any_of(0, 1, ABSENT)
BOOL = any_of(False, True, ABSENT)
TEXT = any_of("", "x", ABSENT)
FIELD = any_of({"fieldPath": "metadata.name"}, {"fieldPath": "metadata.name", "apiVersion": any_of("v1", "")})
DIVISOR = any_of("1", "1000m", "0", ABSENT)
PROBE = any_of(
    ABSENT,
    {"httpGet": {"port": any_of(80, "http"), "path": any_of("/", ABSENT), "httpHeaders": EMPTY_LIST}},
    {"exec": {"command": any_of(["a"], ["b", ""])}, "initialDelaySeconds": ZERO, "periodSeconds": any_of(10, ABSENT)},
)
CONTAINER = {
    "name": "main",
    "image": any_of("x:1", "x:2"),
    "imagePullPolicy": any_of("Always", ABSENT),
    "args": any_of([], ABSENT, ["a"], ["", "a"]),
    "command": EMPTY_LIST,
    "env": any_of(
        [],
        ABSENT,
        [{"name": "A", "value": TEXT}],
        [{"name": "A", "value": any_of("", None, ABSENT)}, {"name": "B", "valueFrom": {"fieldRef": FIELD}}],
        [{"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": DIVISOR}}}],
    ),
    "envFrom": any_of([], ABSENT, [{"prefix": TEXT, "configMapRef": {"name": "x", "optional": BOOL}}]),
    "ports": any_of([], ABSENT, [{"containerPort": 80, "name": TEXT, "protocol": any_of("TCP", ABSENT)}]),
    "resources": any_of({}, ABSENT, {"limits": QUANTITIES, "requests": any_of({}, ABSENT)}),
    "livenessProbe": PROBE,
    "lifecycle": any_of({}, ABSENT),
    "securityContext": any_of({}, ABSENT, None, {"privileged": BOOL, "capabilities": {"drop": any_of([], ["ALL"])}}),
    "tty": BOOL,
    "volumeDevices": EMPTY_LIST,
    "workingDir": TEXT,
}
POD = {
    "affinity": any_of({}, ABSENT),
    "automountServiceAccountToken": any_of(False, True, None, ABSENT),
    "containers": [CONTAINER],
    "hostAliases": any_of([], ABSENT, [{"ip": "10.0.0.1", "hostnames": any_of([], ["a"])}]),
    "hostNetwork": any_of(False, ABSENT),
    "imagePullSecrets": any_of([], ABSENT, [{"name": "x"}]),
    "nodeSelector": MAP,
    "priorityClassName": any_of("", ABSENT),
    "runtimeClassName": any_of(None, ABSENT),
    "securityContext": any_of({}, ABSENT, {"runAsUser": any_of(0, None), "supplementalGroups": EMPTY_LIST}),
    "serviceAccountName": any_of("", "x", ABSENT),
    "terminationGracePeriodSeconds": any_of(0, 30, ABSENT),
    "tolerations": any_of([], ABSENT, [{"key": "k", "operator": "Exists", "effect": any_of("", "NoExecute")}]),
    "volumes": any_of(
        [],
        ABSENT,
        [{"name": "v", "emptyDir": {"sizeLimit": MEMORY, "medium": any_of("", "Memory")}}],
        [{"name": "v", "configMap": {"name": "x", "items": EMPTY_LIST, "optional": BOOL}}],
        [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "x"}}]}}],
        [{"name": "v", "downwardAPI": {"items": [{"path": "x", "fieldRef": FIELD}]}}],
    ),
}
METADATA = {"labels": MAP, "annotations": MAP, "finalizers": EMPTY_LIST, "ownerReferences": EMPTY_LIST}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": MAP}, "spec": POD}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": MEMORY}},
    "storageClassName": any_of("", None, ABSENT),
    "volumeName": any_of("", ABSENT),
}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": any_of([], ABSENT, ["a"])}]
PORTS = [{"port": any_of(80, "http"), "protocol": any_of("TCP", "UDP", ABSENT)}]
KINDS: dict[str, Any] = {
    "apps/v1/deployments": {
        "metadata": METADATA,
        "spec": {
            "minReadySeconds": ZERO,
            "paused": BOOL,
            "replicas": any_of(0, 1, None, ABSENT),
            "revisionHistoryLimit": any_of(0, 10, ABSENT),
            "selector": {"matchLabels": LABELS, "matchExpressions": EMPTY_LIST},
            "strategy": any_of(ABSENT, {"type": "Recreate"}, {"type": "RollingUpdate"}),
            "template": TEMPLATE,
        },
    },
    "apps/v1/statefulsets": {
        "metadata": METADATA,
        "spec": {
            "selector": {"matchLabels": LABELS},
            "serviceName": TEXT,
            "template": TEMPLATE,
            "volumeClaimTemplates": any_of([], ABSENT, [{"metadata": {"name": "x", "labels": MAP}, "spec": CLAIM}]),
        },
    },
    "batch/v1/cronjobs": {
        "metadata": METADATA,
        "spec": {
            "schedule": "* * * * *",
            "suspend": BOOL,
            "timeZone": any_of(None, ABSENT, "Etc/UTC"),
            "jobTemplate": {
                "metadata": any_of({}, ABSENT, {"labels": MAP}),
                "spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}},
            },
        },
    },
    "v1/configmaps": {"metadata": METADATA, "data": MAP, "binaryData": any_of({}, ABSENT), "immutable": BOOL},
    "v1/persistentvolumeclaims": {"metadata": METADATA, "spec": CLAIM},
    "v1/services": {
        "metadata": METADATA,
        "spec": {
            "clusterIP": any_of("None", ABSENT),
            "externalIPs": EMPTY_LIST,
            "ports": [{"name": any_of("", ABSENT), "port": 80, "targetPort": any_of(80, "http", ABSENT)}],
            "publishNotReadyAddresses": BOOL,
            "selector": MAP,
        },
    },
    "v1/resourcequotas": {"metadata": METADATA, "spec": {"hard": QUANTITIES, "scopes": EMPTY_LIST}},
    "networking.k8s.io/v1/networkpolicies": {
        "metadata": METADATA,
        "spec": {
            "podSelector": any_of({}, {"matchLabels": MAP}),
            "ingress": any_of([], ABSENT, [{}], [{"ports": any_of([], PORTS), "from": EMPTY_LIST}]),
            "policyTypes": any_of(["Ingress"], ABSENT),
        },
    },
    "rbac.authorization.k8s.io/v1/roles": {"metadata": METADATA, "rules": any_of([], RULES)},
    "example.com/v1/widgets": {
        "metadata": METADATA,
        "spec": {
            "size": any_of(0, 1, 2),
            "colour": any_of("grey", "red", ABSENT),
        },
    },
}


class Configurations:
    """Makes configurations, each of which differs from the last one in few choices."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._chosen: dict[str, int] = {}

    def next(self, tree: Any) -> Any:
        for path in self._random.sample(sorted(self._chosen), min(self._random.randrange(4), len(self._chosen))):
            del self._chosen[path]
        return self._made(tree, "")

    def _made(self, tree: Any, path: str) -> Any:
        if isinstance(tree, AnyOf):
            chosen = self._chosen.setdefault(path, self._random.randrange(len(tree)))
            return self._made(tree[chosen], f"{path}={chosen}")
        if isinstance(tree, dict):
            values = {name: self._made(value, f"{path}.{name}") for name, value in tree.items()}
            return {name: value for name, value in values.items() if value is not ABSENT}
        if isinstance(tree, list):
            return [self._made(each, f"{path}[{at}]") for at, each in enumerate(tree)]
        return tree


async def apply_sequence(client: Client, kind: str, random: Random, counts: Counter[str]) -> None:
    """Apply some configurations of an object, and count requests that change nothing, and changes that are skipped."""
    resource: Any = client.resource(WIDGETS) if "widgets" in kind else client.resource(kind)  # type: ignore[call-overload]
    made = Configurations(random)
    tree = KINDS[kind] | {"metadata": {**METADATA, "name": f"a-{uuid4()}"}}
    cached: Any = None
    for _ in range(5):
        configuration = made.next(tree)
        try:
            if cached is None and random.random() < 0.5:
                cached = await resource.apply_new(configuration)
                continue
            if cached is not None and random.random() < 0.2:
                cached = await resource.patch(cached, random.choice(OTHERS), field_manager="another")
            applied = await resource.apply_if_changed(configuration, cached, force=True)
            skipped = applied.skipped
            live = await resource.apply(configuration, force=True, dry_run=True) if skipped else applied.object
        except Invalid:  # the fields of a creation may have been moved
            cached = cached and await resource.get(configuration["metadata"]["name"])
            continue
        except Conflict:  # a controller of the server has changed it
            cached = await resource.get(configuration["metadata"]["name"])
            continue
        is_same = cached is not None and content(live, cached, skipped) == content(cached, cached, skipped)
        outcome = ("skipped" if skipped else "sent") + (", same" if is_same else ", changed")
        if outcome in ("skipped, changed", "sent, same"):
            print(f"{outcome}: {kind}: {applied.reason}: {configuration}")
        counts[outcome] += 1
        cached = applied.object


def content(obj: Any, cached: Any, skipped: bool) -> Any:
    """Return what must stay: neither the time of a write, nor the generation.

    The server counts the generation of some kinds for lists that are empty instead of nil, which it does not store. A
    skipped apply to a created object leaves its managers as they are recorded, and any skipped one leaves what others
    have of fields that are gone, such as of a map whose members another apply has removed.
    """
    document = without_version(obj)
    document["metadata"].pop("generation", None)
    recorded = document["metadata"].pop("managedFields", ())
    is_created = ":created-" in str(cached.to_dict()["metadata"].get("managedFields"))
    if skipped and is_created:
        return document, None
    own = [{**each, "time": None} for each in recorded if each["manager"] == "tests"]
    others = [without_gone(each, document) for each in recorded if each["manager"] != "tests"]
    return document, own, [each for each in others if each["fieldsV1"]]


def without_gone(entry: dict[str, Any], document: Any) -> dict[str, Any]:
    """Return an entry of managedFields without the fields that an object does not have."""
    return {**entry, "time": None, "fieldsV1": _present(entry["fieldsV1"], document)}


def _present(fields: dict[str, Any], value: Any) -> dict[str, Any]:
    found = {}
    for name, inner in fields.items():
        if not name.startswith("f:") or not isinstance(value, dict):
            found[name] = inner
            continue
        member = value.get(name.removeprefix("f:"))
        left = _present(inner, member) if inner else {}
        if member is not None and (left or not inner):
            found[name] = left
    return found


async def serve_widgets(client: Client) -> None:
    definitions = client.apiextensions.v1.customresourcedefinitions
    await definitions.apply(yaml.safe_load(DEFINITION.read_text()), field_manager="tests")
    async with asyncio.timeout(200):
        while True:
            try:
                await client.resource(WIDGETS).list()
            except ApiError:
                await asyncio.sleep(0.1)
            else:
                return


def test_skipped_applies_change_nothing_and_few_are_sent_in_vain(cluster: RealCluster) -> None:
    counts: Counter[str] = Counter()

    @settings(max_examples=_SEQUENCES, phases=[Phase.generate])
    @given(st.sampled_from(sorted(KINDS)), st.randoms(use_true_random=True))
    def check(kind: str, random: Random) -> None:
        runner.run(apply_sequence(client, kind, random, counts))

    with asyncio.Runner() as runner:
        connection = runner.run(connect(kubeconfig=cluster.kubeconfig))
        client = Client(connection.transport, namespace="default", field_manager="tests")
        runner.run(connection.__aenter__())
        try:
            runner.run(serve_widgets(client))
            check()
        finally:
            runner.run(connection.__aexit__(None, None, None))
    assert counts["skipped, changed"] == 0, counts
    assert counts["skipped, same"] > _SEQUENCES / 5, counts
    assert counts["sent, same"] * _ONE_IN <= counts["sent, same"] + counts["sent, changed"], counts
    print(counts)
