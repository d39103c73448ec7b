"""The attributes of a factory: group, version, resource."""

from __future__ import annotations

import copy
import subprocess
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.factory.accessors import Accessors, ClusterAccessor, NamespacedAccessor
from aioinformer.resources import BUILTIN_RESOURCES

if TYPE_CHECKING:
    from aioinformer import Resource


WATCHABLE = [resource for resource in BUILTIN_RESOURCES if {"list", "watch"} <= set(resource.verbs)]
GROUPS = {
    "admissionregistration", "apiextensions", "apiregistration", "apps", "autoscaling", "batch", "certificates",
    "coordination", "core", "discovery", "events", "flowcontrol", "internal", "networking", "node", "policy",
    "rbac", "resource", "scheduling", "storage", "storagemigration",
}  # fmt: skip


def public(value: object) -> list[str]:
    """Return what a user sees after a dot and the tabulator key."""
    return [name for name in dir(value) if not name.startswith("_")]


@pytest.fixture
def factory() -> Any:
    return Accessors()


@pytest.mark.conformance("FAC-08")
@pytest.mark.parametrize("resource", WATCHABLE, ids=lambda resource: resource.gvr)
def test_each_watchable_resource_is_an_attribute(resource: Resource[Any], factory: Any) -> None:
    group = getattr(factory, resource.group.partition(".")[0] or "core")
    accessor = getattr(getattr(group, resource.version), resource.plural)
    assert accessor.resource is resource
    assert type(accessor) is (NamespacedAccessor if resource.namespaced else ClusterAccessor)


@pytest.mark.conformance("FAC-08")
def test_groups_are_those_of_client_go(factory: Any) -> None:
    assert set(public(factory)) == {*GROUPS, "for_resource"}


def test_completion_shows_what_can_be_watched(factory: Any) -> None:
    shown = {
        getattr(getattr(getattr(factory, group), version), plural).resource
        for group in GROUPS
        for version in public(getattr(factory, group))
        for plural in public(getattr(getattr(factory, group), version))
    }
    assert shown == set(WATCHABLE)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("apps.v1.deployment", "apps.v1 has no resource 'deployment'; did you mean deployments?"),
        ("apps.v1.Deployments", "apps.v1 has no resource 'Deployments'; did you mean deployments?"),
        ("batch.v1.pods", "batch.v1 has no resource 'pods'; it has cronjobs, jobs"),
        ("core.v1.bindings", "core.v1 has no resource 'bindings'; it has configmaps, endpoints, "),
        ("autoscaling.v3", "autoscaling has no version 'v3'; it has v1, v2"),
        ("app", "Accessors has no attribute 'app'; did you mean apps?"),
        ("for_resources", "Accessors has no attribute 'for_resources'; did you mean for_resource?"),
        ("widgets", "Accessors has no attribute 'widgets'; its groups are core, admissionregistration, "),
        ("_apps", "'Accessors' object has no attribute '_apps'"),
    ],
)
def test_misspelt_name_raises_with_a_hint(path: str, message: str, factory: Any) -> None:
    with pytest.raises(AttributeError) as caught:
        attrgetter(path)(factory)
    assert message in str(caught.value)


def test_accessors_can_be_copied_and_inspected(factory: Any) -> None:
    for accessor in (factory.apps, factory.apps.v1):
        assert public(copy.copy(accessor)) == public(accessor)
        for name in ("__wrapped__", "_ipython_canary_method_", "__len__"):
            with pytest.raises(AttributeError, match=rf"has no attribute '{name}'$"):
                getattr(accessor, name)
    assert copy.copy(factory.apps.v1).deployments.resource.plural == "deployments"
    assert repr(factory.batch) == "<Batch: v1>"
    assert repr(factory.batch.v1) == "<BatchV1: cronjobs, jobs>"


def test_mocks_of_the_class_have_the_groups() -> None:
    mock = create_autospec(SharedInformerFactory, instance=True)
    assert mock.apps.v1.deployments.lister() is not None
    with pytest.raises(AttributeError):
        _ = mock.app


def test_own_attributes_win_over_groups() -> None:
    class Shop(Accessors):
        apps: Any = ("web", "api")

    assert Shop().apps == ("web", "api")
    assert Shop().core.v1.pods.resource.kind == "Pod"


def test_accessors_do_not_import_the_client_library() -> None:
    program = """
import sys
from aioinformer.factory.accessors import Accessors
Accessors().apps.v1.deployments
assert not {"kubernetes_asyncio", "difflib"} & set(sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
