"""The attributes of a factory: group, version, resource."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.factory.accessors import Accessors, ClusterAccessor, NamespacedAccessor
from aioinformer.resources.catalog import BUILTIN_RESOURCES, find

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


class Informer:
    def __init__(self, resource: Resource[Any], options: dict[str, Any]) -> None:
        self.resource = resource
        self.options = options

    def lister(self) -> tuple[str, Informer]:
        return "lister of", self


class Factory(Accessors):
    """Returns one informer for each resource, as a factory does."""

    def __init__(self) -> None:
        self.informers: dict[str, Any] = {}

    def informer_for(self, resource: Resource[Any], **options: Any) -> Any:
        return self.informers.setdefault(resource.gvr, Informer(resource, options))


WATCHABLE = [resource for resource in BUILTIN_RESOURCES if {"list", "watch"} <= set(resource.verbs)]


@pytest.mark.conformance("FAC-08")
@pytest.mark.parametrize("resource", WATCHABLE, ids=lambda resource: resource.gvr)
def test_each_watchable_resource_is_an_attribute(resource: Resource[Any]) -> None:
    group = getattr(Factory(), resource.group.partition(".")[0] or "core")
    accessor = getattr(getattr(group, resource.version), resource.plural)
    assert accessor.resource is resource
    assert type(accessor) is (NamespacedAccessor if resource.namespaced else ClusterAccessor)


@pytest.mark.parametrize("name", ["bindings", "componentstatuses"])
def test_unwatchable_resource_is_not_an_attribute(name: str) -> None:
    assert not hasattr(Factory().core.v1, name)


@pytest.mark.conformance("FAC-08")
def test_groups_are_those_of_client_go() -> None:
    names = {name for name in dir(Factory()) if not name.startswith("_")} - {"informers", "informer_for"}
    assert names == {
        "admissionregistration", "apiextensions", "apiregistration", "apps", "autoscaling", "batch", "certificates",
        "coordination", "core", "discovery", "events", "flowcontrol", "internal", "networking", "node", "policy",
        "rbac", "resource", "scheduling", "storage", "storagemigration",
    }  # fmt: skip


def test_informer_gets_the_given_options() -> None:
    informer: Any = Factory().apps.v1.deployments.informer(resync_period=60.0)
    assert informer.resource is find("apps", "v1", "deployments")
    assert informer.options["resync_period"] == 60.0


def test_same_informer_is_returned_each_time() -> None:
    factory = Factory()
    assert factory.core.v1.pods.informer() is factory.core.v1.pods.informer()


def test_lister_is_that_of_the_informer() -> None:
    factory = Factory()
    informer: Any = factory.core.v1.nodes.informer()
    lister: Any = factory.core.v1.nodes.lister()
    assert lister == ("lister of", informer)


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
