from __future__ import annotations

import base64
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.testing import ApiServer
from aioinformer.testing.api.protobuf import schema
from aioinformer.testing.api.protobuf.messages import MEDIA_TYPE, ProtobufError, decode_protobuf
from aioinformer.testing.api.protobuf.values import NUMBERS, SPECIAL, TEXTS
from tests.kubectl.objects import holds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = Path(__file__).parent
# Bodies of kubectl 1.36, by the arguments after `kubectl create`.
SENT: dict[str, dict[str, str]] = json.loads(HERE.joinpath("kubectl_bodies.json").read_text("utf-8"))
# Objects as Go writes them, in both forms: a CRD, and kinds with random values in all fields.
GO_OBJECTS: list[dict[str, Any]] = json.loads(HERE.joinpath("go_objects.json").read_text("utf-8"))
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MADE = {"name": "made"}
LABELLED = {"name": "made", "labels": {"app": "made"}}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


def body(command: str) -> bytes:
    return base64.b64decode(SENT[command]["body"])


def varint(value: int) -> bytes:
    value %= 1 << 64
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def message(*fields: tuple[int, Any]) -> bytes:
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            encoded += varint(number << 3 | 2) + varint(len(data)) + data
    return encoded


def envelope(api_version: str, kind: str, *fields: tuple[int, Any]) -> bytes:
    names = message((1, api_version), (2, kind))
    return b"k8s\x00" + message((1, names), (2, message(*fields)), (3, ""), (4, ""))


def definition(schema: bytes) -> bytes:
    version = message((1, "v1"), (4, message((1, schema))))
    return envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", (2, message((7, version))))


def decoded(api_version: str, kind: str, *fields: tuple[int, Any]) -> dict[str, Any]:
    found = decode_protobuf(envelope(api_version, kind, *fields))
    assert (found.pop("apiVersion"), found.pop("kind")) == (api_version, kind)
    return found


async def answered(
    server: ApiServer, method: str, path: str, data: bytes, media_type: str = MEDIA_TYPE
) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, data=data, headers={"Content-Type": media_type}) as answer,
    ):
        return answer.status, await answer.json()


class TestObjects:
    @pytest.mark.parametrize("pair", GO_OBJECTS, ids=lambda pair: pair["json"]["kind"])
    def test_objects_decode_to_the_json_that_go_writes(self, pair: dict[str, Any]) -> None:
        found = decode_protobuf(base64.b64decode(pair["protobuf"]))

        assert json.dumps(found) == json.dumps(pair["json"])

    @pytest.mark.parametrize(
        ("command", "rest"),
        [
            ("configmap made --from-literal=a=b --from-literal=c=d", {"data": {"a": "b", "c": "d"}}),
            ("secret generic made --from-literal=a=b", {"data": {"a": "Yg=="}}),
            ("ns made", {"spec": {}, "status": {}}),
            (
                "quota made --hard=pods=3,cpu=1.5,memory=1Gi --scopes=NotBestEffort",
                {
                    "spec": {"hard": {"cpu": "1500m", "memory": "1Gi", "pods": "3"}, "scopes": ["NotBestEffort"]},
                    "status": {},
                },
            ),
            (
                "pdb made --selector=a=b --min-available=50%",
                {
                    "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
                    "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
                },
            ),
        ],
    )
    def test_kubectl_bodies_decode_to_the_sent_objects(self, command: str, rest: dict[str, Any]) -> None:
        found = decode_protobuf(body(command))

        del found["apiVersion"], found["kind"]
        assert found == {"metadata": MADE, **rest}

    def test_nested_structs_keep_their_json_form(self) -> None:
        container = {"name": "nginx", "image": "nginx:1", "ports": [{"containerPort": 80}], "resources": {}}

        assert decode_protobuf(body("deployment made --image=nginx:1 --replicas=0 --port=80")) == {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": LABELLED,
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "made"}},
                "template": {"metadata": {"labels": {"app": "made"}}, "spec": {"containers": [container]}},
                "strategy": {},
            },
            "status": {},
        }

    def test_every_stable_kind_is_known(self) -> None:
        for resource in BUILTIN_RESOURCES:
            if resource.version in ("v1", "v2"):
                assert decode_protobuf(envelope(resource.api_version, resource.kind))["kind"] == resource.kind

    def test_every_type_in_a_message_is_known(self) -> None:
        text = resources.files("aioinformer.testing").joinpath("data/protobuf.json").read_text("utf-8")
        names = json.loads(text)["messages"].keys()

        kinds = {field.kind for name in names for field in schema.message(name).fields}
        assert kinds <= {*NUMBERS, *TEXTS, *SPECIAL, *names}

    def test_delete_options_decode_in_every_group(self) -> None:
        assert decoded("apps/v1", "DeleteOptions", (4, "Orphan")) == {"propagationPolicy": "Orphan"}

    def test_envelope_without_type_takes_the_expected_one(self) -> None:
        found = decode_protobuf(envelope("", "", (2, message((1, "k")))), api_version="v1", kind="ConfigMap")

        assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


class TestFields:
    def test_zero_behind_a_pointer_is_kept(self) -> None:
        # DeploymentSpec: 1 is *int32 replicas, 5 is int32 minReadySeconds.
        spec = decoded("apps/v1", "Deployment", (2, message((1, 0), (5, 0))))["spec"]

        assert spec["replicas"] == 0
        assert "minReadySeconds" not in spec

    def test_required_empty_string_is_kept(self) -> None:
        # Container: 1 is the name, 2 the image, which JSON omits if it is empty.
        container = message((1, ""), (2, ""))

        spec = decoded("v1", "Pod", (2, message((2, container))))["spec"]
        assert spec == {"containers": [{"name": "", "resources": {}}]}

    def test_inline_messages_are_flattened(self) -> None:
        # Volume: 2 is the inline VolumeSource, whose 19 is a ConfigMapVolumeSource with an inline LocalObjectReference.
        source = message((19, message((1, message((1, "c"))))))

        spec = decoded("v1", "Pod", (2, message((1, message((1, "v"), (2, source))))))["spec"]

        assert spec["volumes"] == [{"name": "v", "configMap": {"name": "c"}}]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (message((1, 0), (2, 8080)), 8080),
            (message((1, 1), (2, 0), (3, "http")), "http"),
            (message((1, 0), (2, -1)), -1),
        ],
    )
    def test_int_or_string_decodes_to_either(self, value: bytes, expected: int | str) -> None:
        # ServicePort: 4 is the target port.
        ports = decoded("v1", "Service", (2, message((1, message((3, 80), (4, value))))))["spec"]["ports"]

        assert ports == [{"port": 80, "targetPort": expected}]

    def test_times_have_the_precision_of_their_type(self) -> None:
        moment = message((1, 1_700_000_000), (2, 123_456_789))

        lease = decoded("coordination.k8s.io/v1", "Lease", (1, message((9, moment))), (2, message((3, moment))))

        assert lease["metadata"] == {"deletionTimestamp": "2023-11-14T22:13:20Z"}
        assert lease["spec"] == {"acquireTime": "2023-11-14T22:13:20.123456Z"}

    def test_zero_time_is_absent_or_null(self) -> None:
        # JSON omits creationTimestamp (ObjectMeta: 8) if it is zero, but never lastHeartbeatTime (NodeCondition: 3).
        assert decoded("v1", "ConfigMap", (1, message((8, b"")))) == {"metadata": {}}
        (condition,) = decoded("v1", "Node", (3, message((4, message((1, "Ready"), (3, b""))))))["status"]["conditions"]
        assert condition["lastHeartbeatTime"] is None

    @pytest.mark.parametrize("values", [message((2, 1), (2, 143)), message((2, varint(1) + varint(143)))])
    def test_repeated_numbers_may_be_packed(self, values: bytes) -> None:
        # ContainerRestartRule: 2 is exitCodes.
        rule = message((1, "Restart"), (2, message((1, "In")) + values))
        container = message((1, "c"), (25, rule))

        spec = decoded("v1", "Pod", (2, message((2, container))))["spec"]

        assert spec["containers"][0]["restartPolicyRules"][0]["exitCodes"]["values"] == [1, 143]

    def test_map_keys_are_sorted(self) -> None:
        data = decoded("v1", "ConfigMap", *((2, message((1, key), (2, "v"))) for key in "cab"))["data"]

        assert list(data) == ["a", "b", "c"]

    def test_repeated_single_field_is_merged_or_replaced(self) -> None:
        found = decoded("v1", "ConfigMap", (1, message((1, "a"))), (1, message((1, "b"), (3, "n"))))

        assert found["metadata"] == {"name": "b", "namespace": "n"}

    def test_unknown_fields_are_ignored(self) -> None:
        inner = varint(1 << 3 | 3) + message((1, 7)) + varint(1 << 3 | 4)
        group = varint(402 << 3 | 3) + inner + message((2, "x")) + varint(402 << 3 | 4)
        later = message((400, "later"), (401, 7)) + group

        assert decode_protobuf(b"k8s\x00" + message((1, message((1, "v1"), (2, "ConfigMap"))), (2, later))) == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {},
        }

    def test_invalid_utf8_is_replaced(self) -> None:
        assert decoded("v1", "ConfigMap", (2, message((1, "k"), (2, b"\xff"))))["data"] == {"k": "\ufffd"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "empty data"),
            (b"k8s\x00", "empty body"),
            (b'{"kind": "Pod"}', "does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
            (b"k8s\x00\x0a\x7f", "unexpected EOF"),
            (b"k8s\x00\x0c", "proto: Unknown: wiretype end group for non-group"),
            (b"k8s\x00\x00", "proto: Unknown: illegal tag 0 (wire type 0)"),
            (b"k8s\x00\x3f", "proto: illegal wireType 7"),
            (b"k8s\x00" + b"\xff" * 12, "proto: integer overflow"),
            (b"k8s\x00\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
            (b"k8s\x00" + message((1, 7)), "proto: wrong wireType = 0 for field TypeMeta"),
            (envelope("example.com/v1", "Widget"), 'no kind "Widget" is registered for version "example.com/v1"'),
            (envelope("v1", "PodSpec"), 'no kind "PodSpec" is registered'),
            (envelope("v1", "ConfigMap", (1, 7)), "proto: wrong wireType = 0 for field ObjectMeta"),
            (envelope("v1", "ConfigMap", (2, 7)), "proto: wrong wireType = 0 for field Data"),
            (envelope("apps/v1", "Deployment", (2, message((1, "x")))), "proto: wrong wireType = 2 for field Replicas"),
        ],
    )
    def test_invalid_body_is_refused_with_the_reason(self, data: bytes, reason: str) -> None:
        with pytest.raises(ProtobufError) as caught:
            decode_protobuf(data)

        assert reason in str(caught.value)

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (
                envelope("v1", "ResourceQuota", (2, message((1, message((1, "pods"), (2, message((1, "many")))))))),
                "quantities must match the regular expression",
            ),
            (envelope("apps/v1", "ControllerRevision", (2, message((1, "{x")))), "failed to parse"),
            (envelope("apps/v1", "ControllerRevision", (2, message((1, '{"a":' * 100_000)))), "failed to parse"),
            (envelope("v1", "Service", (2, message((1, message((4, message((1, 5)))))))), "impossible IntOrString"),
            (envelope("v1", "ConfigMap", (1, message((9, message((1, 1 << 60)))))), "year outside of range"),
            (definition(varint(9 << 3 | 1) + b"\x00\x00\x00\x00\x00\x00\xf0\x7f"), "unsupported value: inf"),
        ],
        ids=["quantity", "raw JSON", "deep raw JSON", "number or string", "time", "number"],
    )
    def test_value_without_json_form_is_refused(self, data: bytes, reason: str) -> None:
        with pytest.raises(ProtobufError, match=reason):
            decode_protobuf(data)

    def test_nesting_depth_is_limited(self) -> None:
        # JSONSchemaProps: 28 is a nested schema.
        schema = b""
        for _ in range(5_000):
            schema = message((28, schema))

        with pytest.raises(ProtobufError, match="nested too deeply"):
            decode_protobuf(definition(schema))

    @pytest.mark.parametrize("items", [101, 30], ids=["sent", "made of them"])
    def test_number_of_messages_is_limited(self, items: int) -> None:
        with pytest.raises(ProtobufError, match="too many messages"):
            decode_protobuf(envelope("apps/v1", "DeploymentList", *[(2, b"")] * items), most_messages=100)

    @given(st.binary(max_size=60), st.sampled_from([*SENT]), st.integers(0, 200))
    def test_random_bytes_are_refused_or_decode(self, noise: bytes, command: str, place: int) -> None:
        data = body(command)

        try:
            found = decode_protobuf(data[:place] + noise + data[place + len(noise) :])
        except ProtobufError:
            return
        assert json.loads(json.dumps(found)) == found


class TestServer:
    @pytest.mark.parametrize("command", SENT)
    async def test_server_stores_what_kubectl_creates(self, server: ApiServer, command: str) -> None:
        status, stored = await answered(server, "POST", SENT[command]["path"], body(command))

        sent = decode_protobuf(body(command))
        meant = {name: value for name, value in sent.items() if value and name != "status"}
        assert status == 201
        assert holds(stored, meant)

    async def test_server_accepts_an_object_without_kind(self, server: ApiServer) -> None:
        status, stored = await answered(server, "POST", CONFIG_MAPS, envelope("", "", (1, message((1, "c")))))

        assert (status, stored["kind"], stored["metadata"]["name"]) == (201, "ConfigMap", "c")

    @pytest.mark.parametrize(("api_version", "kind"), [("v1", "DeleteOptions"), ("", "")])
    async def test_server_accepts_delete_options(self, server: ApiServer, api_version: str, kind: str) -> None:
        server.create("configmaps", {"metadata": {"name": "c"}})

        options = envelope(api_version, kind, (2, message((1, "another"))))
        status, refusal = await answered(server, "DELETE", f"{CONFIG_MAPS}/c", options)

        assert (status, refusal["reason"]) == (409, "Conflict")

    async def test_server_refuses_other_objects_as_delete_options(self, server: ApiServer) -> None:
        server.create("configmaps", {"metadata": {"name": "c"}})

        status, refusal = await answered(server, "DELETE", f"{CONFIG_MAPS}/c", envelope("v1", "ConfigMap"))

        assert (status, refusal["message"]) == (
            400,
            'no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        )

    async def test_server_refuses_delete_options_of_unknown_type(self, server: ApiServer) -> None:
        server.create("configmaps", {"metadata": {"name": "c"}})

        status, refusal = await answered(server, "DELETE", f"{CONFIG_MAPS}/c", b"x", "text/plain")

        assert (status, refusal["reason"]) == (415, "UnsupportedMediaType")

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (
                b"k8s\x00\x0a\x7f",
                "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873000a7f)",
            ),
            (
                b"x" * 40,
                "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be "
                f"a protobuf message, expected prefix [107 56 115 0] ({'78' * 30} ...)",
            ),
            (
                envelope("v1", "ConfigMap", (1, 7)),
                'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
                "proto: wrong wireType = 0 for field ObjectMeta",
            ),
            (
                envelope("v1", "Secret"),
                'Secret in version "v1" cannot be handled as a ConfigMap: '
                "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
            ),
        ],
    )
    async def test_server_reports_invalid_bodies_as_kube_apiserver(
        self, server: ApiServer, data: bytes, said: str
    ) -> None:
        status, refusal = await answered(server, "POST", CONFIG_MAPS, data)

        assert (status, refusal["reason"], refusal["message"]) == (400, "BadRequest", said)
