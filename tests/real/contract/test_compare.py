"""The program that compares two servers finds what differs, and nothing else."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from aioinformer import Client, HttpTransport, load_manifests
from aioinformer.testing import ApiServer
from tests.real.contract.compare import Side, differences

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MANIFESTS = b"""
apiVersion: v1
kind: Secret
metadata: {name: a, namespace: shop}
stringData: {k: v}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
data: {k: "*"}
"""
DEFINITION = b"""
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
"""


@pytest.fixture
async def sides() -> AsyncIterator[tuple[ApiServer, Side, Side]]:
    """Two servers for tests, of which one takes the part of the real one; the server is the latter."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            server = await stack.enter_async_context(ApiServer())
            transport = await stack.enter_async_context(HttpTransport(server.url))
            found.append(Side(Client(transport), "apply"))
        yield server, found[0], found[1]


async def test_equal_servers_have_no_difference(sides: tuple[ApiServer, Side, Side]) -> None:
    _, ours, real = sides
    assert await differences(load_manifests(MANIFESTS + DEFINITION), ours, real) == {}


async def test_differences_of_objects_and_refusals_are_found(sides: tuple[ApiServer, Side, Side]) -> None:
    server, ours, real = sides
    server.create("namespaces", {"metadata": {"name": "shop"}})
    server.create("secrets", {"metadata": {"name": "a", "namespace": "shop"}, "type": "example.com/other"})
    found = await differences(load_manifests(MANIFESTS), ours, real)
    [(title, lines)] = found.items()
    assert title == "line 2 Secret shop/a"
    assert 'object/type: recorded "example.com/other", got "Opaque"' in lines
