"""Models compared with those of kubernetes_asyncio: attributes, values and request bodies."""

from __future__ import annotations

import json
from importlib.metadata import version
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from kubernetes_asyncio import client
from kubernetes_asyncio.client import models as library

from aioinformer.cache.objects.models import decoder_for, struct_for
from aioinformer.models import Model
from aioinformer.resources import BUILTIN_RESOURCES
from tests.unit.models.bodies import body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

if int(version("kubernetes_asyncio").partition(".")[0]) < 36:
    pytest.skip("the models are those of kubernetes_asyncio 36", allow_module_level=True)

MODELS = sorted({resource.model for resource in BUILTIN_RESOURCES})
SEEDS = range(4)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[Any]:
    # Random bodies lack required fields; the client library checks these on request only.
    relaxed = client.Configuration()
    relaxed.client_side_validation = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.Configuration, "_default", relaxed)
        async with client.ApiClient(relaxed) as opened:
            yield opened


def plain(value: Any) -> Any:
    """Return the attributes of a model of either library as nested dicts."""
    if hasattr(value, "openapi_types"):
        return {attribute: plain(getattr(value, attribute)) for attribute in value.openapi_types}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_every_model_has_the_attributes_of_the_original() -> None:
    originals = {name: model for name, model in vars(library).items() if hasattr(model, "openapi_types")}
    assert len(originals) > 700
    for name, original in originals.items():
        made = struct_for(name)
        assert made.__qualname__ == name
        assert made.openapi_types == original.openapi_types
        assert made.attribute_map == original.attribute_map


@pytest.mark.parametrize("model", MODELS)
def test_values_equal_those_of_the_client_library(api: Any, model: str) -> None:
    for seed in SEEDS:
        sent = json.dumps(body(Random(f"{model} {seed}"), model, nulls=True))
        theirs = api.deserialize(SimpleNamespace(data=sent), model)
        assert plain(decoder_for(model)(sent.encode())) == plain(theirs)


@pytest.mark.parametrize("model", MODELS)
def test_request_body_equals_that_of_the_client_library(api: Any, model: str) -> None:
    for seed in SEEDS:
        sent = json.dumps(body(Random(f"{model} {seed}"), model, nulls=True))
        theirs = api.sanitize_for_serialization(api.deserialize(SimpleNamespace(data=sent), model))
        assert json.loads(json.dumps(api.sanitize_for_serialization(decoder_for(model)(sent.encode())))) == theirs


@pytest.mark.parametrize("model", MODELS)
def test_request_body_equals_the_received_object(api: Any, model: str) -> None:
    for seed in SEEDS:
        sent = body(Random(f"{model} {seed}"), model, nulls=False)
        decoded = decoder_for(model)(json.dumps(sent).encode())
        assert json.loads(json.dumps(api.sanitize_for_serialization(decoded))) == sent


@pytest.mark.parametrize("model", MODELS)
def test_to_dict_equals_the_received_object(model: str) -> None:
    for seed in SEEDS:
        sent = json.dumps(body(Random(f"{model} {seed}"), model, nulls=False)).replace("+00:00", "Z")
        decoded = decoder_for(model)(sent.encode())
        assert isinstance(decoded, Model)
        assert decoded.to_dict() == json.loads(sent)
