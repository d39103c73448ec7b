"""The stubs of `aioinformer.models` say what its modules have at run time, and what objects are."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Resource
from aioinformer.cache.objects.models.shapes import attributes_of
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.models import MetadataView, Model, Object, ObjectMeta, apps_v1, core_v1, networking_v1, storage_v1
from aioinformer.resources import BUILTIN_RESOURCES
from tests.support.model_stubs import MODULES, classes, constants, misfits

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

OF_OBJECTS = {"api_version", "kind", "metadata"}


def loaded(module: str) -> Any:
    return importlib.import_module(f"aioinformer.models.{module}")


@pytest.mark.parametrize("module", MODULES)
def test_stub_and_module_have_the_same_names(module: str) -> None:
    stated = {*classes(module), *constants(module)} - {"MetadataView"}
    assert {name for name in dir(loaded(module)) if name[0].isupper()} == stated


@pytest.mark.parametrize("module", MODULES)
def test_stub_and_class_have_the_same_attributes(module: str) -> None:
    for name, attributes in classes(module).items():
        if name == "MetadataView":
            continue
        kind = getattr(loaded(module), name)
        assert issubclass(kind, Object | Model)
        stated = {*attributes, *(OF_OBJECTS if issubclass(kind, Object) else ())}
        assert {each for each in stated if not each.endswith("_")} == set(kind.openapi_types), name
        assert stated <= set(dir(kind))


@pytest.mark.parametrize("module", MODULES)
def test_constants_are_the_resources_of_their_kinds(module: str) -> None:
    for name, kind in constants(module).items():
        resource = getattr(loaded(module), name)
        assert isinstance(resource, Resource)
        assert resource.kind == kind
        assert name.replace("_", "").lower() == resource.plural
        assert getattr(loaded(module), kind) is view_class(resource)


def test_every_built_in_resource_is_a_constant() -> None:
    found = [getattr(loaded(module), name) for module in MODULES for name in constants(module)]
    assert sorted(found, key=str) == sorted(BUILTIN_RESOURCES, key=str)


def view(resource: Resource[Any], document: dict[str, Any]) -> Any:
    return view_class(resource)(decode_record(json.dumps(document).encode()))


def test_objects_and_their_parts_are_instances_of_the_types() -> None:
    spec = {"containers": [{"name": "main"}], "nodeSelector": {"zone": "a"}}
    pod: Any = view(core_v1.PODS, {"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": spec})
    kinds: list[Any] = [
        Object,
        core_v1.Pod,
        core_v1.Node,
        apps_v1.Deployment,
        ObjectMeta,
        MetadataView,
        core_v1.PodSpec,
    ]
    assert [kind for kind in kinds if isinstance(pod, kind)] == [Object, core_v1.Pod]
    assert [kind for kind in kinds if isinstance(pod.metadata, kind)] == [ObjectMeta, MetadataView]
    assert [kind for kind in kinds if isinstance(pod.spec, kind)] == [core_v1.PodSpec]
    assert isinstance(pod.spec.containers[0], core_v1.Container)


def test_attribute_named_as_a_keyword_has_a_public_name() -> None:
    ingress = {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}
    policy = view(networking_v1.NETWORK_POLICIES, {"metadata": {"name": "a"}, "spec": {"ingress": [ingress]}})
    [rule] = policy.spec.ingress
    assert rule.from_ is rule._from
    assert rule.from_[0].ip_block.except_ == ("10.1.0.0/16",)


def test_attributes_of_reserved_words_are_made_as_they_are_read() -> None:
    block = networking_v1.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])
    rule = networking_v1.NetworkPolicyIngressRule(from_=(networking_v1.NetworkPolicyPeer(ip_block=block),))
    assert rule.to_dict() == {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}
    action = core_v1.ExecAction(command=["true"])
    probe = core_v1.Probe(exec_=action)
    assert probe.to_dict() == {"exec": {"command": ["true"]}}
    assert probe._exec is probe.exec_ is action
    match probe:
        case core_v1.Probe(exec_=found):
            assert found is action


def test_own_resource_of_a_built_in_kind_has_its_class() -> None:
    mine: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")
    assert isinstance(view(mine, {"metadata": {"name": "a"}}), core_v1.Pod)
    assert not isinstance(view(Resource("", "v1", "pods", "Pod"), {"metadata": {"name": "a"}}), core_v1.Pod)


def test_dir_has_attributes_and_keys() -> None:
    pod = view(core_v1.PODS, {"metadata": {"name": "a"}})
    assert {each.name for each in attributes_of("V1ObjectMeta")} <= set(dir(pod.metadata))
    widget = view(Resource("example.com", "v1", "widgets", "Widget"), {"metadata": {"name": "a"}, "spec": {"size": 1}})
    assert {"metadata", "spec", "get", "to_dict"} <= set(dir(widget))


def test_checker_of_types_finds_misfits() -> None:
    node = view(storage_v1.CSI_NODES, {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "b"}]}})
    found = list(misfits(node, "storage_v1", "CSINode"))
    assert found == ["$.spec.drivers[0].node_id: None is no str"]


def test_objects_of_a_server_are_of_the_stated_types(api_server: ApiServer) -> None:
    containers = [{"name": "main", "image": "a", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": 1}}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    selector = {"matchLabels": {"app": "web"}}
    api_server.create("pods", {"metadata": {"name": "a"}, "spec": template["spec"]})
    api_server.create("deployments", {"metadata": {"name": "a"}, "spec": {"selector": selector, "template": template}})
    checked = 0
    for module in (module for module in MODULES if "alpha" not in module and "beta" not in module):
        for name, kind in constants(module).items():
            resource = getattr(loaded(module), name)
            for document in api_server.list(resource) if "list" in resource.verbs else ():
                checked += 1
                assert list(misfits(view(resource, document), module, kind)) == []
    assert checked > 5


def test_types_are_imported_without_what_they_describe() -> None:
    program = (
        "import sys; from aioinformer.models import apps_v1, core_v1, meta_v1; "
        "print([name for name in ('msgspec', 'kubernetes_asyncio', 'typing') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
