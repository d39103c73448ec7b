"""Validation of pods, except containers and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import PODS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.contract.conversation import Conversation

    Specs = Sequence[dict[str, Any]]

TEMPLATES = "/api/v1/namespaces/{ns}/podtemplates"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINER = {"name": "c", "image": "i"}


def pod(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"} | metadata, "spec": {"containers": [CONTAINER]} | spec}


def dns(policy: str = "ClusterFirst", **config: Any) -> dict[str, Any]:
    return {"dnsPolicy": policy, "dnsConfig": config}


def security(**context: Any) -> dict[str, Any]:
    return {"securityContext": context}


def windows(**options: Any) -> dict[str, Any]:
    return security(windowsOptions=options)


def nodes(*expressions: dict[str, Any], fields: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def preferred(weight: int, *expressions: dict[str, Any]) -> dict[str, Any]:
    preference = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"affinity": {"nodeAffinity": {PREFERRED: [preference]}}}


def near(*terms: dict[str, Any], kind: str = "podAffinity") -> dict[str, Any]:
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def tolerating(*tolerations: dict[str, Any]) -> dict[str, Any]:
    return {"tolerations": list(tolerations)}


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"topologySpreadConstraints": [SPREAD | each for each in constraints]}


def selector(*expressions: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels, "matchExpressions": list(expressions)}}


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
SEVERAL_HOSTS = {"ip": "192.0.2.1", "hostnames": ["A", "b", "c_d"]}
IN = {"key": "k", "operator": "In", "values": ["v"]}
WRONG: dict[str, Specs] = {
    "life": [
        {"restartPolicy": "Sometimes"},
        {"restartPolicy": "always", "dnsPolicy": "First"},
        {"activeDeadlineSeconds": 0},
        {"activeDeadlineSeconds": 2147483648},
    ],
    "names": [
        {"serviceAccountName": "A"},
        {"nodeName": "a_b"},
        {"hostname": "a.b", "subdomain": "A"},
        {"hostname": "a" * 64},
        {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
        {"hostnameOverride": "A"},
        {"hostnameOverride": "a" * 65, "hostNetwork": True, "setHostnameAsFQDN": True},
    ],
    "dns": [
        {"dnsPolicy": "None"},
        dns("None"),
        dns("None", searches=["a"]),
        dns(nameservers=["a", "010.0.0.1", "::ffff:10.0.0.1"]),
        dns(nameservers=["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"]),
        dns(searches=["A", "a_b.c.", ".", "a..b"]),
        dns(searches=["a"] * 33),
        dns(searches=["a" * 250] * 9),
        dns(options=[{"name": "ndots", "value": "2"}, {"value": "x"}]),
    ],
    "host-aliases": [
        {"hostAliases": [{"ip": "", "hostnames": ["a"]}, SEVERAL_HOSTS]},
        {"hostAliases": [{"ip": "1.2.3"}, {"ip": "001.2.3.4"}]},
    ],
    "node-selector": [
        {"nodeSelector": {"-": "v"}},
        {"nodeSelector": {"k": "v w"}},
    ],
    "node-affinity": [
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        nodes({"key": "k", "operator": "In"}),
        nodes({"key": "k", "operator": "Exists", "values": ["v"]}),
        nodes({"key": "k", "operator": "Gt", "values": ["1", "2"]}),
        nodes({"key": "", "operator": "Like", "values": ["v"]}),
        nodes(IN | {"values": ["a b", "-"]}),
        nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
        nodes(fields=[{"key": "spec.nodeName", "operator": "Exists"}]),
        nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["A"]}]),
        preferred(0),
        preferred(101, {"key": "-", "operator": "In"}),
    ],
    "pod-affinity": [
        near({"topologyKey": ""}),
        near({"topologyKey": "-", "labelSelector": {"matchLabels": {"a": "-"}}}),
        near({"topologyKey": "k", "namespaces": ["A", "b.c"]}, kind="podAntiAffinity"),
        near({"topologyKey": "k", **selector({"key": "a", "operator": "In"})}),
        near({"topologyKey": "k", "namespaceSelector": {"matchExpressions": [IN | {"values": ["-"]}]}}),
        near({"topologyKey": "k", "matchLabelKeys": ["a"]}),
        near({"topologyKey": "k", "mismatchLabelKeys": ["-"], "matchLabelKeys": ["b", "-"], **selector()}),
        near({"topologyKey": "k", "matchLabelKeys": ["z", "app"], **selector(app="y")}),
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": ""}}]}}},
        {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}}},
    ],
    "spread": [
        spread({"maxSkew": 0}, {"maxSkew": -1, "topologyKey": "", "whenUnsatisfiable": "Wait"}),
        spread({}, {}),
        spread({"minDomains": 0}, {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}),
        spread({"nodeAffinityPolicy": "Maybe", "nodeTaintsPolicy": ""}),
        spread({"matchLabelKeys": ["-"]}),
        spread({"matchLabelKeys": ["z", "app"], **selector(app="y")}),
        spread({"labelSelector": None, "matchLabelKeys": ["x"]}),
        spread(selector(IN | {"operator": "Like", "values": ["-"]})),
    ],
    "tolerations": [
        tolerating({}),
        tolerating({"key": "-", "operator": "Exists"}),
        tolerating({"key": "k", "value": "a b"}),
        tolerating({"key": "k", "operator": "Exists", "value": "v"}),
        tolerating({"key": "k", "operator": "Like"}),
        tolerating({"key": "k", "operator": "Gt", "value": "1"}),
        tolerating({"key": "k", "effect": "Never"}),
        tolerating({"key": "k", "effect": "NoSchedule", "tolerationSeconds": 1}),
        tolerating({"operator": "Equal", "tolerationSeconds": 1}),
    ],
    "gates": [
        {"readinessGates": [{"conditionType": "a b"}, {"conditionType": ""}]},
        {"schedulingGates": [{"name": ""}]},
        {"schedulingGates": [{"name": "a/b/c"}]},
        {"schedulingGates": [{"name": "g"}, {"name": "g"}]},
    ],
    "host": [
        {"hostPID": True, "shareProcessNamespace": True},
        {"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80, "hostPort": 81}]}]},
        {"hostUsers": False, "hostNetwork": True, "hostPID": True, "hostIPC": True},
        {
            "hostUsers": False,
            "containers": [CONTAINER | {"volumeDevices": [{"name": "v", "devicePath": "/x"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        },
    ],
    "users": [
        security(runAsUser=-1, runAsGroup=-1, fsGroup=-1),
        security(fsGroup=2147483648, supplementalGroups=[0, -1, 2147483648]),
        security(fsGroupChangePolicy="Sometimes"),
        security(supplementalGroupsPolicy="None", seLinuxChangePolicy="Never"),
    ],
    "sysctls": [
        security(sysctls=[{"name": "", "value": ""}]),
        security(sysctls=[{"name": "A b", "value": "1"}, {"name": "a" * 254, "value": "1"}]),
        security(sysctls=[{"name": "kernel.a", "value": "1"}, {"name": "kernel.a", "value": "1"}]),
        security(sysctls=[{"name": "net.ipv4.x", "value": "1"}]) | {"hostNetwork": True},
        security(sysctls=[{"name": "kernel.shm_x", "value": "1"}, {"name": "fs.mqueue.y", "value": "1"}])
        | {"hostIPC": True},
    ],
    "seccomp": [
        security(seccompProfile={"type": ""}),
        security(seccompProfile={"type": "Docker"}),
        security(seccompProfile={"type": "Localhost"}),
        security(seccompProfile={"type": "Localhost", "localhostProfile": "/../x"}),
        security(seccompProfile={"type": "RuntimeDefault", "localhostProfile": "x"}),
    ],
    "app-armor": [
        security(appArmorProfile={"type": ""}),
        security(appArmorProfile={"type": "Mine"}),
        security(appArmorProfile={"type": "Localhost"}),
        security(appArmorProfile={"type": "Localhost", "localhostProfile": " x"}),
        security(appArmorProfile={"type": "Localhost", "localhostProfile": ""}),
        security(appArmorProfile={"type": "Unconfined", "localhostProfile": "x"}),
    ],
    "windows": [
        windows(gmsaCredentialSpecName="A", gmsaCredentialSpec="", runAsUserName=""),
        windows(runAsUserName="a\\b\\c"),
        windows(runAsUserName=".\\"),
        windows(runAsUserName="d\\a:b"),
        windows(runAsUserName=". ."),
        windows(runAsUserName="a" * 105),
        windows(runAsUserName="a\tb"),
        windows(hostProcess=True),
        windows(hostProcess=True)
        | {"containers": [CONTAINER | {"securityContext": {"windowsOptions": {"hostProcess": False}}}]},
    ],
    "systems": [
        {"os": {"name": ""}},
        {"os": {"name": "plan9"}},
        {"os": {"name": "linux"}, **windows(runAsUserName="a")},
        {
            "os": {"name": "windows"},
            "hostPID": True,
            "hostUsers": False,
            "shareProcessNamespace": False,
            **security(
                runAsUser=1, fsGroup=1, sysctls=[{"name": "a", "value": "b"}], seccompProfile={"type": "Unconfined"}
            ),
        },
        {"os": {"name": "windows"}, "containers": [CONTAINER | security(privileged=False, runAsUser=1)]},
        {
            "os": {"name": "linux"},
            "initContainers": [CONTAINER | {"name": "d"} | windows()],
            "containers": [CONTAINER | windows()],
        },
    ],
    "resource-claims": [
        {"resourceClaims": [{"name": ""}]},
        {"resourceClaims": [{"name": "A", "resourceClaimName": "B", "resourceClaimTemplateName": "C"}]},
        {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}] * 2},
    ],
    "ephemeral-containers": [{"ephemeralContainers": [{"name": "e", "image": "i"}]}],
}
WRONG_ANNOTATIONS: dict[str, list[dict[str, str]]] = {
    "deletion-cost": [
        {"controller.kubernetes.io/pod-deletion-cost": cost} for cost in ("", "a", "+1", "01", "2147483648", "1.5")
    ],
    "mirror": [{"kubernetes.io/config.mirror": "x"}],
    "seccomp": [
        {"seccomp.security.alpha.kubernetes.io/pod": "x"},
        {"seccomp.security.alpha.kubernetes.io/pod": "localhost//x"},
        {"container.seccomp.security.alpha.kubernetes.io/c": "localhost/../x"},
    ],
    "app-armor": [
        {"container.apparmor.security.beta.kubernetes.io/other": "runtime/default"},
        {"container.apparmor.security.beta.kubernetes.io/other": "x"},
    ],
    "tolerations": [
        {"scheduler.alpha.kubernetes.io/tolerations": '[{"key": "k", "operator": "Like"}]'},
    ],
}
RIGHT: dict[str, dict[str, Any]] = {
    "life": {
        "restartPolicy": "OnFailure", "activeDeadlineSeconds": 10, "terminationGracePeriodSeconds": 0,
        "hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True, "schedulerName": "Any thing",
        "enableServiceLinks": False, "automountServiceAccountToken": False, "imagePullSecrets": [{"name": "x"}],
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["192.0.2.1"], "searches": [".", "_tcp.a."], "options": [{"name": "ndots", "value": "2"}],
        },
        "hostAliases": [{"ip": "2001:db8::1", "hostnames": ["a", "b.c"]}],
        "readinessGates": [{"conditionType": "example.com/Ready"}],
    },
    "placed": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
                    IN, {"key": "n", "operator": "Gt", "values": ["1"]}, {"key": "o", "operator": "DoesNotExist"},
                ], "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}]},
                PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [IN | {"values": ["v"]}]}}],
            },
            "podAffinity": {REQUIRED: [{
                "topologyKey": "kubernetes.io/hostname", "namespaces": ["a"], "namespaceSelector": {},
                "labelSelector": {"matchLabels": {"a": "b"}}, "mismatchLabelKeys": ["c"],
            }]},
            "podAntiAffinity": {PREFERRED: [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", **selector(IN)}},
            ]},
        },
        "topologySpreadConstraints": [
            SPREAD | {"minDomains": 2, "nodeTaintsPolicy": "Honor"},
            SPREAD | {"whenUnsatisfiable": "ScheduleAnyway", "nodeAffinityPolicy": "Ignore"},
        ],
        "tolerations": [
            {"operator": "Exists"}, {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": -1},
        ],
    },
    "secured": {
        "hostNetwork": True, "hostIPC": True, "shareProcessNamespace": True, "os": {"name": "linux"},
        "securityContext": {
            "runAsUser": 0, "runAsGroup": 2147483647, "runAsNonRoot": False, "fsGroup": 1, "supplementalGroups": [1],
            "fsGroupChangePolicy": "OnRootMismatch", "supplementalGroupsPolicy": "Strict",
            "seLinuxOptions": {"level": "s0"}, "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b"},
            "appArmorProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "kernel/msgmax", "value": "1"}][:0],
        },
    },
    "sysctls": security(sysctls=[{"name": "net/ipv4/ip_local_port_range", "value": "1024 65535"}]),
    "windows": {
        "os": {"name": "windows"}, "hostNetwork": True,
        **windows(hostProcess=True, runAsUserName="NT AUTHORITY\\SYSTEM", gmsaCredentialSpecName="a.b"),
    },
    "label-keys": {
        **near({"topologyKey": "k", "matchLabelKeys": ["app", "x"], "mismatchLabelKeys": ["tier"], **selector(b="c")}),
        **spread({"matchLabelKeys": ["app"]}),
    },
    "gated": {"schedulingGates": [{"name": "example.com/g"}, {"name": "h"}]},
    "own-users": {"hostUsers": False},
    "claims": {"resourceClaims": [
        {"name": "a", "resourceClaimName": "b"}, {"name": "c", "resourceClaimTemplateName": "d"},
    ]},
    "named": {"hostnameOverride": "a.b"},
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_pods_are_refused(api: Conversation, wrong: Specs) -> None:
    answers = [await api("POST", f"{PODS}?dryRun=All", pod(each, labels={"app": "a"})) for each in wrong]
    assert {answer.status for answer in answers} == {422}


@variants("wrong", WRONG_ANNOTATIONS)
async def test_well_known_annotations_are_validated(api: Conversation, wrong: list[dict[str, str]]) -> None:
    answers = [await api("POST", f"{PODS}?dryRun=All", pod({}, annotations=each)) for each in wrong]
    assert {answer.status for answer in answers} == {422}


@variants("spec", RIGHT)
async def test_complete_pods_are_accepted(api: Conversation, spec: dict[str, Any]) -> None:
    assert (await api("POST", f"{PODS}?dryRun=All", pod(spec, labels={"app": "a", "tier": "b"}))).status == 201


async def test_pod_templates_are_validated(api: Conversation) -> None:
    wrong = [
        pod({"restartPolicy": "Sometimes", "preemptionPolicy": "Always"}),
        pod({"priorityClassName": "A b", "runtimeClassName": ""}),
        pod({"overhead": {"cpu": "-1", "gpu": "1"}}),
        pod({"ephemeralContainers": [{"name": "e", "image": "i"}]}),
        pod({"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]}, labels={"a": "-"}),
        pod({}, labels={"-": ""}),
        pod({}, annotations={"-": ""}),
        pod({}, annotations={"controller.kubernetes.io/pod-deletion-cost": "x"}),
    ]
    templates = [{"metadata": {"name": "a"}, "template": each} for each in wrong]
    answers = [await api("POST", f"{TEMPLATES}?dryRun=All", each) for each in templates]
    assert {answer.status for answer in answers} == {422}
