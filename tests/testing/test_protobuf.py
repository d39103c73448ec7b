from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing.protobuf import decode_protobuf


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


def sent(api_version: str, kind: str, *fields: tuple[int, Any]) -> dict[str, Any]:
    envelope = message((1, message((1, api_version), (2, kind))), (2, message(*fields)), (3, ""), (4, ""))
    decoded = decode_protobuf(b"k8s\x00" + envelope)
    assert (decoded.pop("apiVersion"), decoded.pop("kind")) == (api_version, kind)
    return decoded


def test_a_zero_behind_a_pointer_was_meant() -> None:
    # DeploymentSpec: 1 is *int32 replicas, 5 is int32 minReadySeconds.
    assert sent("apps/v1", "Deployment", (2, message((1, 0), (5, 0))))["spec"] == {"replicas": 0}


def test_an_empty_text_that_json_would_send_is_kept() -> None:
    # Container: 1 is the name, which JSON always has, 2 the image, which it leaves out.
    container = message((1, ""), (2, ""))

    assert sent("v1", "Pod", (2, message((2, container))))["spec"] == {"containers": [{"name": ""}]}


def test_fields_of_inline_messages_belong_to_the_message_around_them() -> None:
    # Volume: 2 is the inline VolumeSource, whose 19 is a ConfigMapVolumeSource with an inline LocalObjectReference.
    source = message((19, message((1, message((1, "c"))))))

    volumes = sent("v1", "Pod", (2, message((1, message((1, "v"), (2, source))))))["spec"]["volumes"]

    assert volumes == [{"name": "v", "configMap": {"name": "c"}}]


def test_maps_bytes_and_quantities_become_what_they_are_in_json() -> None:
    assert sent("v1", "Secret", (2, message((1, "k"), (2, b"\x00\x01")))) == {"data": {"k": "AAE="}}
    assert sent("v1", "ResourceQuota", (2, message((1, message((1, "pods"), (2, message((1, "3")))))))) == {
        "spec": {"hard": {"pods": "3"}}
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (message((1, 0), (2, 8080)), 8080),
        (message((1, 1), (2, 0), (3, "http")), "http"),
        (message((1, 0), (2, -1)), -1),
    ],
)
def test_a_number_or_string_is_the_one_or_the_other(value: bytes, expected: int | str) -> None:
    # ServicePort: 4 is the target port.
    assert sent("v1", "Service", (1, b""), (2, message((1, message((4, value))))))["spec"]["ports"] == [
        {"targetPort": expected}
    ]


def test_times_are_told_as_text_and_not_at_all_if_they_are_zero() -> None:
    metadata = message((8, b""), (9, message((1, 1_700_000_000), (2, 0))))

    assert sent("v1", "ConfigMap", (1, metadata))["metadata"] == {"deletionTimestamp": "2023-11-14T22:13:20Z"}


def test_options_are_known_in_the_version_of_what_they_are_for() -> None:
    assert sent("apps/v1", "DeleteOptions", (4, "Orphan")) == {"propagationPolicy": "Orphan"}


def test_fields_of_later_versions_are_ignored() -> None:
    assert sent("v1", "ConfigMap", (400, "later"), (401, 7)) == {}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"kind": "Pod"}', "does not appear to be a protobuf message"),
        (b"k8s\x00" + message((1, message((1, "example.com/v1"), (2, "Widget")))), 'no kind "Widget" is registered'),
        (b"k8s\x00\x0a\x7f", "unexpected EOF"),
        (b"k8s\x00\x0b", "illegal wireType 3"),
    ],
)
def test_a_body_that_is_none_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_protobuf(body)
