"""Validation of container environments, probes and hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import PODS
from tests.contract.tables import variants
from tests.contract.variations import variant_statuses, with_changes

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

ONE, FIRST = "spec.containers.0", "spec.initContainers.0"
POD = {
    "metadata": {"name": "a"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "initContainers": [{"name": "e", "image": "i"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "w"}}],
    },
}
REQUEST, COMMAND, SOCKET = {"httpGet": {"port": 80}}, {"exec": {"command": ["a"]}}, {"tcpSocket": {"port": 80}}


def variable(origin: Any, **fields: Any) -> Changes:
    return {f"{ONE}.env": [{"name": "A", "valueFrom": origin} | fields]}


def key(name: str, text: str) -> Changes:
    return variable({"configMapKeyRef": {"name": name, "key": text}})


def file(**fields: str) -> Changes:
    return variable({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"} | fields})


def imports(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.envFrom": list(found)}


def asked(name: str, *probes: Any, of: str = ONE) -> list[Changes]:
    return [{f"{of}.{name}": probe} for probe in probes]


def request(**fields: Any) -> dict[str, Any]:
    return {"httpGet": {"port": 80} | fields}


WRONG: dict[str, list[Changes]] = {
    "variables": [
        *({f"{ONE}.env": [{"name": name, "value": "x"}]} for name in ("", "a=b", "ä", "a\tb")),
        {f"{ONE}.env": [{"value": "x"}]},
        variable({}),
        variable({"fieldRef": {"fieldPath": "metadata.name"}}, value="x"),
        variable({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}}),
        {f"{FIRST}.env": [{"name": "A", "valueFrom": {}}]},
    ],
    "fields": [
        variable({"fieldRef": reference})
        for reference in (
            {},
            {"fieldPath": "spec.containers"},
            {"fieldPath": "metadata.labels"},
            {"fieldPath": "status.phase"},
            {"fieldPath": "metadata.labels['a b']"},
            {"fieldPath": "metadata.annotations['A/b/c']"},
            {"fieldPath": "metadata.name['a']"},
            {"fieldPath": "metadata.name", "apiVersion": "v2"},
        )
    ],
    "resources": [
        variable({"resourceFieldRef": reference})
        for reference in (
            {"resource": ""},
            {"resource": "cpu"},
            {"resource": "limits.gpu"},
            {"resource": "limits.cpu", "divisor": "1k"},
            {"resource": "requests.memory", "divisor": "1m"},
            {"resource": "limits.ephemeral-storage", "divisor": "2"},
            {"resource": "limits.hugepages-2Mi", "divisor": "1m"},
        )
    ],
    "keys": [
        key("", "k"),
        key("A", "k"),
        key("m", ""),
        key("m", "a b"),
        key("m", ".."),
        key("m", "..a"),
        key("m", "k" * 254),
        variable({"secretKeyRef": {"name": "s_", "key": "a/b"}}),
    ],
    "files": [
        file(volumeName=""),
        file(volumeName="A"),
        file(volumeName="x"),
        file(volumeName="w"),
        file(path=""),
        file(path="a/../b"),
        file(key=""),
        file(key="a=b"),
    ],
    "imports": [
        imports({}),
        imports({"configMapRef": {"name": ""}}),
        imports({"configMapRef": {"name": "A"}}),
        imports({"secretRef": {"name": ""}}),
        imports({"secretRef": {"name": "a_b"}}),
        imports({"configMapRef": {"name": "m"}, "secretRef": {"name": "s"}}),
        imports({"prefix": "a=", "configMapRef": {"name": "m"}}),
    ],
    "handlers": [
        *asked("livenessProbe", {}, {"exec": {}}, COMMAND | REQUEST, COMMAND | REQUEST | SOCKET, {"grpc": {"port": 0}}),
        *asked("readinessProbe", {"periodSeconds": 1}, {"tcpSocket": {"port": 0}}, {"tcpSocket": {"port": "a--b"}}),
        *asked("startupProbe", {"grpc": {"port": 65536}} | SOCKET, {"tcpSocket": {"port": ""}}),
    ],
    "requests": asked(
        "livenessProbe",
        request(port=0),
        request(port=65536),
        request(port="A"),
        request(port="1"),
        request(scheme="ftp"),
        request(httpHeaders=[{"name": "a b", "value": "x"}, {"name": "", "value": "x"}]),
    ),
    "counts": [
        *asked(
            "livenessProbe",
            REQUEST | {"initialDelaySeconds": -1, "timeoutSeconds": -1, "periodSeconds": -1, "failureThreshold": -1},
            REQUEST | {"successThreshold": 2},
            REQUEST | {"successThreshold": -1},
            REQUEST | {"terminationGracePeriodSeconds": 0},
            REQUEST | {"terminationGracePeriodSeconds": -1},
        ),
        *asked("startupProbe", REQUEST | {"successThreshold": 2}),
        *asked("readinessProbe", REQUEST | {"terminationGracePeriodSeconds": 1}, REQUEST | {"successThreshold": -1}),
    ],
    "hooks": [
        *asked(
            "lifecycle",
            {"postStart": {}},
            {"preStop": {"exec": {}}},
            {"preStop": COMMAND | REQUEST},
            {"postStart": {"httpGet": {"port": ""}}, "preStop": {"tcpSocket": {"port": 0}}},
            {"preStop": {"sleep": {"seconds": -1}}},
            {"preStop": {"sleep": {"seconds": 31}}},
            {"preStop": {"sleep": {"seconds": 3}} | COMMAND},
        ),
    ],
    "first": [
        *asked("livenessProbe", REQUEST, of=FIRST),
        *asked("readinessProbe", REQUEST, of=FIRST),
        *asked("startupProbe", {}, of=FIRST),
        *asked("lifecycle", {}, {"preStop": REQUEST}, of=FIRST),
        {f"{FIRST}.restartPolicy": "Never", f"{FIRST}.livenessProbe": REQUEST},
        {f"{FIRST}.restartPolicy": "Always", f"{FIRST}.livenessProbe": {}, f"{FIRST}.lifecycle": {"preStop": {}}},
    ],
}


@variants("wrong", WRONG)
async def test_invalid_environment_and_probes_are_refused(api: Conversation, wrong: list[Changes]) -> None:
    assert await variant_statuses(api, PODS, POD, wrong) == {422}


async def test_zero_probe_fields_get_defaults(api: Conversation) -> None:
    zeros = {"initialDelaySeconds": 0, "timeoutSeconds": 0, "periodSeconds": 0}
    probe = REQUEST | zeros | {"successThreshold": 0, "failureThreshold": 0}
    changes = {f"{ONE}.{name}": probe for name in ("livenessProbe", "readinessProbe", "startupProbe")}

    answer = await api("POST", PODS, with_changes(POD, changes))

    assert answer.status == 201


async def test_complete_environment_is_accepted(api: Conversation) -> None:
    probe = {
        "initialDelaySeconds": 1,
        "timeoutSeconds": 2,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 4,
    }
    changes = {
        f"{ONE}.env": [
            {"name": "0 is fine", "value": "x"},
            {"name": "A", "value": "x"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "requests.hugepages-2Mi"}}},
            {"name": "F", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k.k", "optional": True}}},
            {"name": "G", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k_k"}}},
        ],
        f"{ONE}.envFrom": [{"prefix": "P_", "configMapRef": {"name": "m"}}, {"secretRef": {"name": "s"}}],
        f"{ONE}.livenessProbe": probe
        | request(port="http", path="/healthz", scheme="HTTPS", httpHeaders=[{"name": "X-A", "value": "b"}])
        | {"terminationGracePeriodSeconds": 9},
        f"{ONE}.readinessProbe": probe | {"grpc": {"port": 80, "service": "s"}, "successThreshold": 3},
        f"{ONE}.startupProbe": probe | COMMAND,
        f"{ONE}.lifecycle": {"postStart": SOCKET, "preStop": {"sleep": {"seconds": 30}}},
        f"{FIRST}.restartPolicy": "Always",
        f"{FIRST}.readinessProbe": SOCKET,
        f"{FIRST}.lifecycle": {"preStop": {"sleep": {"seconds": 0}}},
    }

    answer = await api("POST", PODS, with_changes(POD, changes))

    assert answer.status == 201
