"""Built-in kinds: their OpenAPI documents, patch strategies, tables and quantities."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.resources import BUILTIN_RESOURCES
from aioinformer.resources.quantities import QuantityError, canonical
from aioinformer.testing.schemas.openapi_v3 import builtin_documents, index, patch_schema
from aioinformer.testing.tables import jsonpath
from aioinformer.testing.tables.pods import human_duration
from aioinformer.testing.tables.rendering import layout

if TYPE_CHECKING:
    from aioinformer import Resource


def test_every_stable_group_version_has_a_document() -> None:
    versions = {resource.api_version for resource in BUILTIN_RESOURCES if resource.version in ("v1", "v2")}
    paths = {f"apis/{version}" if "/" in version else f"api/{version}" for version in versions}
    assert paths <= builtin_documents().keys()


def test_index_has_the_hash_of_each_document() -> None:
    documents = builtin_documents()
    paths = index(documents.values())["paths"]
    assert list(paths) == sorted(documents)
    url = f"/openapi/v3/apis/apps/v1?hash={documents['apis/apps/v1'].hash}"
    assert paths["apis/apps/v1"] == {"serverRelativeURL": url}


def test_patch_has_a_field_validation_parameter() -> None:
    paths = json.loads(builtin_documents()["apis/apps/v1"].body)["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "merge_key", "strategy"),
    [
        ("v1", "Pod", ["spec", "containers"], "name", "merge"),
        ("v1", "Service", ["spec", "ports"], "port", "merge"),
        ("v1", "ConfigMap", ["metadata", "ownerReferences"], "uid", "merge"),
        ("v1", "ConfigMap", ["metadata", "finalizers"], "", "merge"),
        ("apps/v1", "Deployment", ["spec", "strategy"], "", ""),
        ("v1", "Pod", ["spec", "tolerations"], "", ""),
    ],
)
def test_patch_strategies_are_read_from_the_schema(
    api_version: str, kind: str, path: list[str], merge_key: str, strategy: str
) -> None:
    schema = patch_schema(api_version, kind)
    assert schema is not None
    place, _, _ = schema.field(path[0])
    assert place is not None
    assert place.field(path[1])[1:] == (merge_key, strategy)


@pytest.mark.parametrize("resource", [each for each in BUILTIN_RESOURCES if "list" in each.verbs], ids=str)
def test_empty_object_fills_all_columns(resource: Resource[Any]) -> None:
    found = layout(resource)
    assert len(found.cells({}, datetime(2026, 11, 21, 9, 0, tzinfo=UTC))) >= len(found.columns)


def test_invalid_json_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at '\[!\]'"):
        jsonpath.find(".spec[!]", {})


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (5 * 60 + 30, "5m30s"),
        (10 * 60 + 30, "10m"),
        (179 * 60, "179m"),
        (3 * 3600 + 12 * 60, "3h12m"),
        (47 * 3600, "47h"),
        (6 * 86400 + 4 * 3600, "6d4h"),
        (9 * 86400, "9d"),
        (3 * 365 * 86400 + 20 * 86400, "3y20d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_duration_has_two_or_three_figures(elapsed: int, expected: str) -> None:
    assert human_duration(timedelta(seconds=elapsed)) == expected


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5k", "1500"),
        ("2000000", "2M"),
        ("2048Mi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("-1", "-1"),
        ("0", "0"),
        (".1n", "1n"),
        ("9" * 40, "9223372036854775807"),
        ("-1e9999", "-9223372036854775807"),
        ("1e-9999", "1e-9"),
        ("9" * 30 + "Ei", "9223372036854775807"),
    ],
)
def test_quantity_has_one_canonical_form(said: str, written: str) -> None:
    assert canonical(said) == written


@pytest.mark.parametrize("said", ["", "lots", "1 Gi", "1Gib", "--1"])
def test_invalid_quantity_is_refused(said: str) -> None:
    with pytest.raises(QuantityError):
        canonical(said)
