"""Validation of containers: images, mounts, resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import PODS
from tests.contract.tables import variants
from tests.contract.variations import variant_statuses, with_changes

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

ONE, TWO, FIRST = "spec.containers.0", "spec.containers.1", "spec.initContainers.0"
POD = {
    "metadata": {"name": "a"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}],
        "initContainers": [{"name": "e", "image": "i"}],
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "w", "persistentVolumeClaim": {"claimName": "x"}},
        ],
    },
}


def each(path: str, *values: Any) -> list[Changes]:
    return [{path: value} for value in values]


def mounts(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.volumeMounts": [{"name": "v", "mountPath": "/v"} | mount for mount in found]}


def devices(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.volumeDevices": [{"name": "w", "devicePath": "/dev/w"} | device for device in found]}


def asked(requests: dict[str, str] | None = None, **limits: str) -> Changes:
    named = {name.replace("__", "/").replace("_", "-"): value for name, value in limits.items()}
    return {f"{ONE}.resources": {"requests": requests or {}, "limits": named}}


def context(**fields: Any) -> Changes:
    return {f"{ONE}.securityContext": fields}


def rules(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.restartPolicy": "Never", f"{ONE}.restartPolicyRules": list(found)}


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
MEMORY = {"memory": "1Gi"}
CLAIMED = {"spec.resourceClaims": [{"name": "r", "resourceClaimName": "r"}, {"name": "s", "resourceClaimName": "s"}]}
WRONG: dict[str, list[Changes]] = {
    "missing": [
        {"spec": {}},
        {"spec.containers": []},
        {"spec.containers": [{}]},
        {"spec.initContainers": [{}]},
        {"spec.containers": [{}, {}], "spec.initContainers": [{}, {}]},
    ],
    "names": [
        *each(f"{ONE}.name", "C", "a.b", "-a", "x" * 64, "d", "e"),
        {"spec.initContainers": [{"name": "e", "image": "i"}, {"name": "e", "image": "i"}]},
    ],
    "images": [
        *each(f"{ONE}.image", "", " i", "i\n", " "),
        {f"{FIRST}.image": "i "},
        *each(f"{ONE}.imagePullPolicy", "Sometimes", "always"),
        *each(f"{ONE}.terminationMessagePolicy", "Log", "file"),
    ],
    "ports": [
        *each(
            f"{ONE}.ports",
            [{}],
            [{"containerPort": 65536}],
            [{"containerPort": -1}],
            [{"containerPort": 80, "hostPort": 65536}],
            [{"containerPort": 80, "hostPort": -1}],
            [{"containerPort": 80, "protocol": "tcp"}],
            [{"containerPort": 80, "name": "-A--b_"}],
            [{"containerPort": 80, "name": "123"}],
            [{"containerPort": 80, "name": "much-too-long-a-name"}],
            [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}],
        ),
    ],
    "host_ports": [
        {f"{ONE}.ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
        {
            f"{ONE}.ports": [{"containerPort": 80, "hostPort": 80}],
            f"{TWO}.ports": [{"containerPort": 1, "hostPort": 80}],
        },
        {f"{FIRST}.ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
        {
            "spec.initContainers": [
                {"name": "e", "image": "i"},
                {
                    "name": "f",
                    "image": "i",
                    "ports": [
                        {"containerPort": 80, "hostPort": 80, "hostIP": "192.0.2.1", "protocol": "UDP"},
                        {"containerPort": 81, "hostPort": 80, "hostIP": "192.0.2.1", "protocol": "UDP"},
                    ],
                },
            ]
        },
        {"spec.hostNetwork": True, f"{ONE}.ports": [{"containerPort": 80, "hostPort": 81}]},
    ],
    "mounts": [
        mounts({"name": "x"}),
        mounts({"name": ""}),
        {"spec.volumes": [{"name": "v", "nfs": {}}], **mounts({})},
        mounts({"mountPath": ""}),
        mounts({}, {"name": "w"}),
        mounts({"subPath": "/a"}),
        mounts({"subPath": "a/../b"}),
        mounts({"subPathExpr": "/$(A)"}),
        mounts({"subPath": "a", "subPathExpr": "b/.."}),
        mounts({"mountPropagation": "Both"}),
        mounts({"mountPropagation": "Bidirectional"}),
        {**mounts({"name": "x"}), f"{FIRST}.volumeMounts": [{"name": "x", "mountPath": "/x"}]},
    ],
    "read_only_mounts": [
        mounts({"recursiveReadOnly": "Enabled"}),
        mounts({"recursiveReadOnly": "Sometimes"}),
        mounts({"recursiveReadOnly": "IfPossible", "readOnly": True, "mountPropagation": "HostToContainer"}),
    ],
    "devices": [
        devices({"name": "x"}),
        devices({"name": ""}),
        devices({"name": "v"}),
        devices({"devicePath": ""}),
        devices({"devicePath": "/a/../b"}),
        devices({}, {}),
        devices({}, {"devicePath": "/dev/x"}),
        {**devices({}), **mounts({"name": "w", "mountPath": "/dev/w"})},
        {**devices({}), **mounts({"mountPath": "/dev/w"})},
    ],
    "requests": [
        asked({"cpu": "2"}, cpu="1"),
        asked({"memory": "1025Mi"}, memory="1Gi"),
        asked({"cpu": "-1"}),
        asked(memory="-1Gi"),
        asked({"example.com/gpu": "1"}),
        asked({"example.com/gpu": "1"}, example_com__gpu="1"),
        {f"{ONE}.resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}},
        {f"{ONE}.resources": {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "1"}}},
        {f"{ONE}.resources": {"limits": {"example.com/gpu": "1500m"}}},
        {f"{FIRST}.resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1"}}},
    ],
    "resource_names": [
        asked({"gpu": "1"}),
        asked({"pods": "1"}),
        asked({"pods": "1500m"}),
        asked({"requests.cpu": "1"}),
        asked({"storage": "1Gi"}),
        asked({"a b": "1"}),
        asked({"": "1"}),
        asked({"a/b/c": "1"}),
        asked({"Example.com/a": "1"}),
        {f"{ONE}.resources": {"limits": {"requests.example.com/a": "1"}}},
        {f"{ONE}.resources": {"limits": {"example.com/" + "a" * 64: "1"}}},
    ],
    "huge_pages": [
        asked({"hugepages-2Mi": "2Mi"}),
        asked({}, hugepages_2Mi="2Mi"),
        asked(MEMORY | {"hugepages-2Mi": "2Mi"}, hugepages_2Mi="4Mi"),
        asked(MEMORY, hugepages_2Mi="3Mi"),
        asked(MEMORY, hugepages_x="3Mi"),
        asked(MEMORY, hugepages_="3Mi"),
    ],
    "claims": [
        {**changed, **CLAIMED}
        for changed in each(
            f"{ONE}.resources.claims",
            [{"name": "x"}],
            [{"name": ""}],
            [{"name": "r"}, {"name": "r"}],
            [{"name": "r", "request": "A"}],
            [{"name": "r", "request": "a"}, {"name": "r", "request": "a"}],
            [{"name": "r", "request": "a"}, {"name": "r"}],
            [{"name": "r"}, {"name": "r", "request": "a"}],
        )
    ]
    + each(f"{ONE}.resources.claims", [{"name": "x"}]),
    "resizes": [
        *each(
            f"{ONE}.resizePolicy",
            [{"resourceName": "cpu", "restartPolicy": "Never"}],
            [{"resourceName": "disk", "restartPolicy": "NotRequired"}],
            [{"resourceName": "", "restartPolicy": ""}],
            [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2,
        ),
        {
            f"{ONE}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
            "spec.restartPolicy": "Never",
        },
        {f"{FIRST}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
    ],
    "contexts": [
        context(runAsUser=-1),
        context(runAsUser=2**31),
        context(runAsGroup=-1),
        context(runAsGroup=2**31),
        context(procMount="None"),
        context(procMount="Unmasked"),
        context(privileged=True, allowPrivilegeEscalation=False),
        context(capabilities={"add": ["CAP_SYS_ADMIN"]}, allowPrivilegeEscalation=False),
        context(
            allowPrivilegeEscalation=False,
            appArmorProfile={"type": "Unconfined"},
            capabilities={"add": ["A", "CAP_SYS_ADMIN"], "drop": ["ALL"]},
            privileged=True,
            procMount="Default",
            readOnlyRootFilesystem=True,
            runAsGroup=2,
            runAsNonRoot=True,
            runAsUser=1,
            seLinuxOptions={"level": "l"},
            seccompProfile={"type": "Localhost", "localhostProfile": "a/b"},
            windowsOptions={"runAsUserName": "u"},
        ),
    ],
    "profiles": [
        context(seccompProfile={}),
        context(seccompProfile={"type": "None"}),
        context(seccompProfile={"type": "Localhost"}),
        context(seccompProfile={"type": "Localhost", "localhostProfile": "/a/../b"}),
        context(seccompProfile={"type": "Unconfined", "localhostProfile": "a"}),
        context(appArmorProfile={}),
        context(appArmorProfile={"type": "None"}),
        context(appArmorProfile={"type": "Localhost"}),
        context(appArmorProfile={"type": "Localhost", "localhostProfile": " a"}),
        context(appArmorProfile={"type": "RuntimeDefault", "localhostProfile": "a"}),
        context(windowsOptions={"gmsaCredentialSpecName": "A B", "runAsUserName": ""}),
    ],
    "restarts": [
        {f"{ONE}.restartPolicy": "Sometimes"},
        {f"{FIRST}.restartPolicy": "Sometimes"},
        {f"{ONE}.restartPolicy": ""},
        {f"{FIRST}.restartPolicy": ""},
        {f"{ONE}.restartPolicyRules": [RULE]},
        {f"{FIRST}.restartPolicyRules": [RULE]},
        rules(RULE | {"action": "Stop"}),
        rules({"action": "Restart"}),
        rules({"action": "Restart", "exitCodes": {"operator": "Equals"}}),
        rules({"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(256))}}),
        rules(*[RULE] * 21),
        {f"{FIRST}.restartPolicy": "Always", f"{FIRST}.restartPolicyRules": [RULE | {"action": "Stop"}]},
    ],
    "whole_pod": [
        {"spec.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        {"spec.resources": {"requests": {"ephemeral-storage": "1Gi"}}},
        {"spec.resources": {"limits": {"gpu": "1"}}},
        {"spec.resources": {"limits": {"cpu": "-1"}}},
        {"spec.resources": {"claims": [{"name": "x"}]}},
        {
            "spec.resources": {"requests": {"cpu": "1"}},
            f"{ONE}.resources": {"requests": {"cpu": "600m"}},
            f"{TWO}.resources": {"requests": {"cpu": "600m"}},
        },
        {"spec.resources": {"requests": {"memory": "1Gi"}}, f"{FIRST}.resources": {"requests": {"memory": "2Gi"}}},
        {"spec.resources": {"limits": {"cpu": "1"}}, **asked(cpu="2")},
        {"spec.resources": {"limits": {"cpu": "1"}}, "spec.os": {"name": "windows"}},
    ],
}


@variants("wrong", WRONG)
async def test_invalid_containers_are_refused(api: Conversation, wrong: list[Changes]) -> None:
    assert await variant_statuses(api, PODS, POD, wrong) == {422}


RIGHT: dict[str, Changes] = {
    "plain": {
        f"{ONE}.ports": [
            {"name": "http", "containerPort": 80, "hostPort": 80},
            {"name": "1-http-udp", "containerPort": 80, "protocol": "UDP", "hostPort": 80, "hostIP": "192.0.2.1"},
            {"containerPort": 65535, "protocol": "SCTP"},
        ],
        f"{ONE}.command": ["a"],
        f"{ONE}.args": ["b"],
        f"{ONE}.workingDir": "w",
        f"{ONE}.stdin": True,
        f"{ONE}.stdinOnce": True,
        f"{ONE}.tty": True,
        f"{ONE}.terminationMessagePath": "/m",
        f"{ONE}.terminationMessagePolicy": "FallbackToLogsOnError",
        f"{ONE}.imagePullPolicy": "Never",
        f"{ONE}.resizePolicy": [
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "memory", "restartPolicy": "RestartContainer"},
        ],
        f"{FIRST}.ports": [{"containerPort": 81, "hostPort": 80}],
    },
    "restarts": {**rules(RULE), f"{FIRST}.restartPolicy": "Always", f"{TWO}.restartPolicy": "OnFailure"},
    "mounts": {
        f"{ONE}.volumeMounts": [
            {"name": "v", "mountPath": "/v", "subPath": "a/b"},
            {"name": "v", "mountPath": "w", "subPathExpr": "$(A)", "readOnly": True},
            {"name": "v", "mountPath": "/x", "mountPropagation": "HostToContainer"},
            {"name": "v", "mountPath": "/y", "mountPropagation": "Bidirectional"},
            {"name": "v", "mountPath": "/z", "readOnly": True, "recursiveReadOnly": "IfPossible"},
        ],
        f"{ONE}.volumeDevices": [{"name": "w", "devicePath": "/dev/w"}],
        f"{ONE}.securityContext": {"privileged": True},
    },
    "context": context(
        appArmorProfile={"type": "Localhost", "localhostProfile": "a"},
        capabilities={"add": ["SYS_ADMIN"], "drop": ["ALL"]},
        allowPrivilegeEscalation=False,
        privileged=False,
        procMount="Default",
        readOnlyRootFilesystem=True,
        runAsGroup=2**31 - 1,
        runAsNonRoot=True,
        runAsUser=0,
        seLinuxOptions={"level": "l", "role": "r", "type": "t", "user": "u"},
        seccompProfile={"type": "RuntimeDefault"},
    ),
    "own_users": {"spec.hostUsers": False, **context(procMount="Unmasked")},
    "resources": CLAIMED
    | {
        f"{ONE}.resources": {
            "limits": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
            "requests": {"cpu": "0.5", "ephemeral-storage": "1G", "a.kubernetes.io/b": "1"},
            "claims": [{"name": "r", "request": "a"}, {"name": "s"}],
        },
        f"{FIRST}.resources": {"requests": {"cpu": "2"}},
    },
    "whole_pod": {
        "spec.resources": {"limits": {"cpu": "4", "memory": "4Gi"}, "requests": {"cpu": "2"}},
        f"{ONE}.resources": {"limits": {"cpu": "1500m", "hugepages-2Mi": "4Mi", "memory": "1Gi"}},
        f"{TWO}.resources": {"limits": {"memory": "2Gi"}},
        f"{FIRST}.resources": {"requests": {"memory": "3584Mi"}},
    },
    "whole_pod_of_nothing": {"spec.resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    "whole_pod_of_requests": {"spec.resources": {"requests": {"cpu": "1"}}},
}


@variants("right", RIGHT)
async def test_valid_containers_are_accepted(api: Conversation, right: Changes) -> None:
    answer = await api("POST", PODS, with_changes(POD, right))

    assert answer.status == 201


async def test_image_pull_policy_depends_on_the_tag(api: Conversation) -> None:
    digest = f"sha256:{'a' * 64}"
    images = [
        "i:1",
        "i:latest",
        "h.example:5000/a/b",
        "h:5000/a:v",
        f"i@{digest}",
        f"i:latest@{digest}",
        "Name",
        "a/B:1",
    ]

    assert await variant_statuses(api, PODS, POD, each(f"{ONE}.image", *images)) == {201}
