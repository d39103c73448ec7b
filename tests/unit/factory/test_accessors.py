"""The attributes of a factory: group, version, resource."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.factory.accessors import Accessors, ClusterAccessor, NamespacedAccessor
from aioinformer.resources.catalog import BUILTIN_RESOURCES

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


WATCHABLE = [resource for resource in BUILTIN_RESOURCES if {"list", "watch"} <= set(resource.verbs)]


@pytest.mark.conformance("FAC-08")
@pytest.mark.parametrize("resource", WATCHABLE, ids=lambda resource: resource.gvr)
def test_each_watchable_resource_is_an_attribute(resource: Resource[Any]) -> None:
    group = getattr(Accessors(), resource.group.partition(".")[0] or "core")
    accessor = getattr(getattr(group, resource.version), resource.plural)
    assert accessor.resource is resource
    assert type(accessor) is (NamespacedAccessor if resource.namespaced else ClusterAccessor)


@pytest.mark.conformance("FAC-08")
def test_groups_are_those_of_client_go() -> None:
    assert {name for name in dir(Accessors()) if not name.startswith("_")} - {"informer_for"} == {
        "admissionregistration", "apiextensions", "apiregistration", "apps", "autoscaling", "batch", "certificates",
        "coordination", "core", "discovery", "events", "flowcontrol", "internal", "networking", "node", "policy",
        "rbac", "resource", "scheduling", "storage", "storagemigration",
    }  # fmt: skip
    core: Any = getattr(Accessors(), "core")  # noqa: B009
    for name in ("bindings", "componentstatuses"):
        assert not hasattr(core.v1, name)


def test_groups_are_imported_at_first_use() -> None:
    program = """
import sys
from aioinformer.factory.accessors import Accessors
names = ("cluster", "core", "networking", "security", "storage", "workloads")
families = {f"aioinformer.factory.accessors.{name}" for name in names}
assert not families & set(sys.modules)
assert "kubernetes_asyncio" not in sys.modules
Accessors().apps.v1.deployments
assert families & set(sys.modules) == {"aioinformer.factory.accessors.workloads"}
assert "kubernetes_asyncio" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
