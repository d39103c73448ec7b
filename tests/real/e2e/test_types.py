"""Objects of a real API server are of the types that the stubs of `aioinformer.models` state."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from aioinformer import NotFound, connect
from tests.support.model_stubs import MODULES, constants, misfits

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster


@pytest.mark.parametrize("module", MODULES)
async def test_objects_are_of_the_stated_types(cluster: RealCluster, module: str) -> None:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        for name, kind in constants(module).items():
            resource = getattr(importlib.import_module(f"aioinformer.models.{module}"), name)
            if "list" not in resource.verbs:
                continue
            try:
                objects = await connection.client.resource(resource).list()
            except NotFound:
                continue  # an alpha or beta version that is not served
            for obj in objects:
                assert list(misfits(obj, module, kind)) == [], obj
