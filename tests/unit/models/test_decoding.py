"""Bodies that do not fit their model."""

from __future__ import annotations

import pytest

from aioinformer.cache.objects.models import decoder_for
from aioinformer.errors import DecodeError

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
