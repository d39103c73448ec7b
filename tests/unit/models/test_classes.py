"""Model classes: their attributes, immutability, pickling and reprs, and bodies that do not fit."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import weakref
from datetime import UTC, datetime
from typing import Any

import pytest

from aioinformer.cache.objects.frozen import FrozenDict
from aioinformer.cache.objects.models import decoder_for, struct_for
from aioinformer.errors import DecodeError
from aioinformer.resources import BUILTIN_RESOURCES


def pod_as_in_clusters() -> dict[str, Any]:
    managed = {"operation": "Update", "apiVersion": "v1", "time": "2026-03-04T05:06:12Z", "fieldsType": "FieldsV1"}
    env = [
        {"name": "LOG_LEVEL", "value": "info"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "storefront", "key": "token"}}},
    ]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    containers = [
        {"name": name, "image": "example.net/web", "args": ["--port", "8080"], "env": env, "livenessProbe": probe}
        for name in ("web", "metrics")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "storefront",
            "namespace": "shop",
            "creationTimestamp": "2026-03-04T05:06:07Z",
            "labels": {"app": "storefront"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "storefront", "uid": "u"}],
            "managedFields": [
                {**managed, "manager": "controllers", "fieldsV1": {"f:spec": {'k:{"name":"web"}': {".": {}}}}},
                {**managed, "manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {".": {}}}}},
            ],
        },
        "spec": {
            "containers": containers,
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "nodeName": "node-17.example.net",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
            "hostIPs": [{"ip": "10.0.3.17"}],
        },
    }


def pod_bytes() -> bytes:
    """Return the pod as JSON."""
    return json.dumps(pod_as_in_clusters()).encode()


@pytest.fixture
def pod() -> Any:
    return decoder_for("V1Pod")(pod_bytes())


def test_attributes_have_the_names_and_types_of_the_client_library(pod: Any) -> None:
    assert pod.spec.node_name == "node-17.example.net"
    assert pod.status.host_ips[0].ip == "10.0.3.17"
    assert pod.spec.containers[1].env[2].value_from.secret_key_ref.key == "token"
    assert pod.metadata.creation_timestamp == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert pod.spec.affinity is None
    assert pod.status.conditions[0].last_probe_time is None


def test_lists_and_maps_are_immutable(pod: Any) -> None:
    assert isinstance(pod.spec.containers, tuple)
    with pytest.raises(TypeError, match="to_dict"):
        pod.metadata.labels["app"] = "other"


def test_values_of_any_json_are_deeply_immutable(pod: Any) -> None:
    fields = pod.metadata.managed_fields[1].fields_v1
    assert fields == pod_as_in_clusters()["metadata"]["managedFields"][1]["fieldsV1"]
    with pytest.raises(TypeError, match="to_dict"):
        fields["f:status"]["f:phase"]["."] = {}


def test_invalid_managed_fields_raise_on_access() -> None:
    entry: Any = decoder_for("V1ManagedFieldsEntry")(b'{"manager":"a","fieldsV1":{"f:\xff":{}}}')
    assert entry.manager == "a"
    with pytest.raises(DecodeError, match="fields_v1"):
        _ = entry.fields_v1


def test_int_or_string_keeps_its_type() -> None:
    service: Any = decoder_for("V1ServiceSpec")(b'{"ports":[{"targetPort":80},{"targetPort":"http"}]}')
    assert [port.target_port for port in service.ports] == [80, "http"]


@pytest.mark.parametrize("part", ["spec", "metadata", "status"])
def test_changing_an_attribute_raises_with_a_remedy(pod: Any, part: str) -> None:
    with pytest.raises(AttributeError, match=r"labels cannot be changed; change a copy, from to_dict\(\)"):
        getattr(pod, part).labels = {}
    with pytest.raises(AttributeError, match="to_dict"):
        del pod.spec.node_name


def test_to_dict_returns_a_copy_with_json_keys(pod: Any) -> None:
    spec = pod.spec.to_dict()
    assert spec == pod_as_in_clusters()["spec"]
    spec["containers"][0]["args"].append("--verbose")
    assert len(pod.spec.containers[0].args) == 2


def test_copy_is_the_same_object_and_a_pickle_an_equal_one(pod: Any) -> None:
    assert copy.copy(pod) is pod
    assert copy.deepcopy(pod) is pod
    assert pickle.loads(pickle.dumps(pod)) == pod


def test_object_unpickles_before_its_class_is_built(pod: Any) -> None:
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).spec.node_name)"
    run = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(pod), capture_output=True, check=False)
    assert run.stdout.decode().strip() == "node-17.example.net", run.stderr.decode()


def test_recursive_model_is_decoded_in_depth() -> None:
    schema: Any = decoder_for("V1JSONSchemaProps")(
        b'{"properties":{"a":{"properties":{"b":{"type":"string"}}}},"allOf":[{"not":{"$ref":"x"}}],"default":{"c":[1]}}'
    )
    assert schema.properties["a"].properties["b"].type == "string"
    assert schema.all_of[0]._not.ref == "x"
    assert schema.default == {"c": (1,)}
    assert type(schema.properties["a"].properties) is FrozenDict


def test_null_means_absent() -> None:
    pod: Any = decoder_for("V1Pod")(
        b'{"metadata":{"labels":null,"creationTimestamp":null,"ownerReferences":null},"spec":{"containers":null}}'
    )
    assert pod.metadata.labels is pod.metadata.creation_timestamp is pod.metadata.owner_references is None


@pytest.mark.parametrize("spec", [b"{}", b'{"drivers":null}', b'{"drivers":[]}'])
def test_a_required_list_is_never_none(spec: bytes) -> None:
    node: Any = decoder_for("V1CSINode")(b'{"metadata":{"name":"a"},"spec":%b}' % spec)
    assert node.spec.drivers == ()
    assert node.spec.to_dict() == {"drivers": []}


def test_a_required_map_is_never_none() -> None:
    counters: Any = decoder_for("V1CounterSet")(b'{"name":"a","counters":null}')
    assert counters.counters == {}
    with pytest.raises(TypeError, match="cannot be changed"):
        counters.counters["a"] = 1


def test_quantities_may_be_numbers() -> None:
    resources: Any = decoder_for("V1ResourceRequirements")(
        b'{"requests":{"cpu":1,"memory":"1Gi"},"limits":{"cpu":0.5}}'
    )
    assert resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert resources.limits == {"cpu": "0.5"}


def test_unknown_attributes_are_ignored() -> None:
    pod: Any = decoder_for("V1Pod")(b'{"spec":{"nodeName":"a","invented":{"b":1}},"invented":2}')
    assert pod.spec.node_name == "a"


def test_unknown_model_is_named_in_the_error() -> None:
    with pytest.raises(LookupError, match="V9Pod"):
        struct_for("V9Pod")


@pytest.mark.parametrize("model", sorted({resource.model for resource in BUILTIN_RESOURCES}))
def test_whole_objects_support_weak_references(model: str) -> None:
    decoded = decoder_for(model)(b"{}")
    assert weakref.ref(decoded)() is decoded


def test_reading_an_object_does_not_import_the_client_library() -> None:
    program = "import sys; from aioinformer.cache.objects.models import decoder_for; decoder_for('V1Pod')(b'{}')"
    program += "; sys.exit('kubernetes_asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_repr_names_set_attributes_and_no_values() -> None:
    body = b'{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"containers":[{"name":"d"}]}}'
    pod: Any = decoder_for("V1Pod")(body)
    assert repr(pod) == "<Pod: metadata, spec>"
    assert repr(pod.spec) == f"{pod.spec}" == "<PodSpec: containers>"
    assert repr(pod.spec.containers) == "(<Container: name>,)"
    assert repr(decoder_for("V1ObjectMeta")(b"{}")) == "<ObjectMeta>"


SECRET = (
    b'{"data":{"password":"aHVudGVyMg=="},"stringData":{"token":"hunter3"},"metadata":{"name":"a","annotations":'
    b'{"kubectl.kubernetes.io/last-applied-configuration":"{\\"data\\":{\\"password\\":\\"aHVudGVyMg==\\"}}"}}}'
)


def test_repr_hides_the_values_of_a_secret() -> None:
    secret: Any = decoder_for("V1Secret")(SECRET)
    secrets = decoder_for("V1SecretList")(b'{"items":[%s]}' % SECRET)
    for shown in (repr(secret), repr(secret.data), repr(secrets)):
        assert "aHVudGVyMg" not in shown
        assert "hunter3" not in shown


SCHEMA = b'{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"properties":{"b":{"type":5}}}}}}}]}}'


@pytest.mark.parametrize(
    ("model", "body", "found"),
    [
        ("V1Deployment", b'{"spec":{"replicas":"3"}}', "got `str` at $.spec.replicas"),
        ("V1Pod", b'{"spec":{"containers":[{"name":"a"},{"name":7}]}}', "got `int` at $.spec.containers[1].name"),
        ("V1Pod", b'{"metadata":{"labels":{"a":true}}}', "got `bool` at $.metadata.labels[...]"),
        ("V1Pod", b'{"metadata":{"labels":[]}}', "got `array` at $.metadata.labels"),
        ("V1Pod", b'{"metadata":{"labels":7}}', "got `int` at $.metadata.labels"),
        ("V1Pod", b'{"metadata":{"creationTimestamp":"yesterday"}}', "at $.metadata.creationTimestamp"),
        (
            "V1CustomResourceDefinition",
            SCHEMA,
            "got `int` at $.spec.versions[0].schema.openAPIV3Schema.properties[...].properties[...].type",
        ),
        ("V1Pod", b"[]", "got `array` at $"),
        ("V1Pod", b'{"spec":{}', "not JSON"),
        ("V1Pod", b"", "not JSON"),
        ("V1Pod", b'{"metadata":{"name":"\xff"}}', "not JSON"),
        ("V1Probe", b'{"httpGet":{"port":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_invalid_body_raises_with_the_path(model: str, body: bytes, found: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decoder_for(model)(body)
    message = str(raised.value)
    assert message.startswith(f"not a {model}: ")
    assert message.endswith(found)


@pytest.mark.parametrize(
    "body",
    [b'{"data":"hunter2"}', b'{"data":{"hunter2":false}}', b'{"data":{"a":["hunter2"]}}', b'{"data":{"a":"hunter2"}'],
)
def test_error_quotes_no_content(body: bytes) -> None:
    with pytest.raises(DecodeError) as raised:
        decoder_for("V1Secret")(body)
    assert "hunter2" not in repr(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
