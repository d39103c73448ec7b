"""Representations: tables, metadata only, YAML, pretty-printed, compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.contract.conversation import JSON, PARTIAL, PARTIAL_LIST, TABLE, YAML
from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
FORMS = {
    "nothing": "",
    "anything": "*/*",
    "any-application": "application/*",
    "json": JSON,
    "yaml": YAML,
    "text": "text/plain",
    "html-as-browsers": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text-or-json": "text/plain,application/json",
    "worse-json": "application/json;q=0.5,application/yaml",
    "json-in-latin": "application/json;charset=latin1",
    "pretty-json": "application/json;pretty=1",
    "pretty-0": "application/json;pretty=0",
    "json-in-capitals": "APPLICATION/JSON",
    "broken": "application",
    "broken-parameters": "application/json;as;g=meta.k8s.io",
    "table": TABLE,
    "table-beta": TABLE.replace("v=v1", "v=v1beta1"),
    "table-v2": TABLE.replace("v=v1", "v=v2"),
    "table-of-no-version": "application/json;as=Table;g=meta.k8s.io",
    "table-of-no-group": "application/json;as=Table;v=v1",
    "table-of-other-group": "application/json;as=Table;g=example.com;v=v1",
    "table-in-yaml": TABLE.replace("json", "yaml"),
    "table-v2-or-json": f"{TABLE.replace('v=v1', 'v=v2')},application/json",
    "kubectl": f"{TABLE},{TABLE.replace('v=v1', 'v=v1beta1')},application/json",
    "metadata": PARTIAL,
    "metadata-beta": PARTIAL.replace("v=v1", "v=v1beta1"),
    "metadata-in-yaml": PARTIAL.replace("json", "yaml"),
    "metadata-list": PARTIAL_LIST,
    "metadata-list-beta": PARTIAL_LIST.replace("v=v1", "v=v1beta1"),
    "metadata-list-or-json": f"{PARTIAL_LIST},application/json",
    "other-kind": PARTIAL.replace("PartialObjectMetadata", "Status"),
}
STREAM = {"stream": "application/json;stream=watch"}


@variants("accept", FORMS | STREAM)
@pytest.mark.parametrize("path", [A, CONFIGMAPS, f"{CONFIGMAPS}/missing"], ids=["object", "list", "missing"])
async def test_accept_header_selects_the_representation(api: Conversation, path: str, accept: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v", "n": "1", "t": "true"}})
    answer = await api("GET", path, accept=accept)
    assert answer.status in (200, 404, 406)


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", "", "none", "Other"])
@pytest.mark.parametrize("path", [A, CONFIGMAPS], ids=["object", "list"])
async def test_include_object_selects_the_row_object(api: Conversation, path: str, include: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    answer = await api("GET", f"{path}?includeObject={include}", accept=TABLE)
    assert answer.status in (200, 400)


@variants(
    "asked",
    {
        "yes": ("?pretty=true", {}),
        "one": ("?pretty=1", {}),
        "empty": ("?pretty=", {}),
        "no": ("?pretty=false", {}),
        "zero": ("?pretty=0", {}),
        "curl": ("", {"User-Agent": "curl/8"}),
        "wget": ("", {"User-Agent": "Wget/1"}),
        "browser": ("", {"User-Agent": "Mozilla/5.0 (X11)"}),
        "curl-no": ("?pretty=false", {"User-Agent": "curl/8"}),
        "kubectl": ("", {"User-Agent": "kubectl/v1.36.4"}),
    },
)
async def test_pretty_printing(api: Conversation, asked: tuple[str, dict[str, str]]) -> None:
    query, headers = asked
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", f"{A}{query}", headers=headers, as_text=True)
    assert answer.status == 200


async def test_json_has_kind_order_and_a_trailing_newline(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"data": {"k": "v"}, "metadata": {"labels": {"a": "b"}, "name": "a"}})
    answer = await api("GET", A, as_text=True)
    assert answer.body.endswith("\n")


async def test_list_metadata_precedes_items(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", CONFIGMAPS, as_text=True)
    assert answer.body.startswith('{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":')


@pytest.mark.parametrize("encoding", ["gzip", "gzip, deflate, br", "identity", "deflate", "*", "gzip;q=0"])
@pytest.mark.parametrize("size", [100, 120_000, 160_000], ids=["small", "medium", "large"])
async def test_large_responses_are_compressed_on_request(api: Conversation, size: int, encoding: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * size}})
    for path in (A, CONFIGMAPS):
        answer = await api("GET", path, headers={"Accept-Encoding": encoding}, shown=lambda body: body["kind"])
        assert answer.status == 200


async def test_connection_is_kept_alive(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, headers={"Connection": "keep-alive"})
    assert answer.headers.get("Connection") is None


async def test_connection_close_is_honored(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, headers={"Connection": "close"})
    assert answer.headers.get("Connection") == "close"
