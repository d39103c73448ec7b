"""What `aioinformer manifests` and `check` know of webhooks."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
import yaml

from aioinformer import UsageError
from aioinformer.authorization import Rbac
from aioinformer.cel.expressions import compile_pattern
from aioinformer.cli.controllers.needs import needs
from aioinformer.cli.projects.kustomize import Deployed, base_files, unchecked_conditions
from aioinformer.controller import LeaderElection, Manager
from aioinformer.crds import custom_resource
from aioinformer.models import ObjectMeta, apiextensions_v1, apps_v1, core_v1, rbac_v1
from aioinformer.webhooks import AdmissionRequest, WebhookServer
from tests.support.reviews import WIDGETS


class Gadget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


DECLARED = custom_resource(Gadget, "example.com", "v1")
DEFINITIONS = apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS


def declared() -> Manager:
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops", port=9000))

    async def function(request: Any) -> Any: ...

    manager.default(WIDGETS)(function)
    manager.validate(WIDGETS, operations=["delete"], failure_policy="Ignore", timeout=3)(function)
    manager.validate(WIDGETS, operations=["create"], reads=[core_v1.NODES])(function)
    manager.validate(core_v1.CONFIG_MAPS)(function)
    return manager


def test_base_has_service_and_configurations() -> None:
    files = base_files(declared(), Deployed("widgets:manager", ("widgets", "ops")))
    service, mutating, validating = yaml.safe_load_all(files["webhooks.yaml"])
    assert (service["kind"], service["metadata"]["name"], service["metadata"]["namespace"]) == (
        "Service",
        "hooks",
        "ops",
    )
    assert mutating["kind"] == "MutatingWebhookConfiguration"
    assert mutating["metadata"]["name"] == validating["metadata"]["name"] == "hooks.ops"
    found = {each["name"]: each for each in validating["webhooks"]}
    widgets = found.pop("create.validate.widgets.example.com")
    deleted = found.pop("delete.validate.widgets.example.com")
    assert set(found) == {"validate.configmaps.core"}
    assert [each["rules"][0]["operations"] for each in (widgets, deleted)] == [["CREATE"], ["DELETE"]]
    assert [(each["failurePolicy"], each["timeoutSeconds"]) for each in (widgets, deleted)] == [
        ("Fail", 10),
        ("Ignore", 3),
    ]
    expected = {"name": "hooks", "namespace": "ops", "path": "/validate/widgets.example.com"}
    assert widgets["clientConfig"]["service"] == expected
    pod = yaml.safe_load(files["deployment.yaml"])["spec"]["template"]["spec"]
    assert {"name": "webhooks", "containerPort": 9000} in pod["containers"][0]["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == "webhooks"


def test_files_of_cert_manager_are_mounted_and_their_ca_injected() -> None:
    manager = declared()
    place = {"files": "/certificates", "files_secret": "widgets-tls", "certificate": "widgets"}
    manager.webhooks = WebhookServer("hooks", "ops", **place)  # type: ignore[arg-type]
    files = base_files(manager, Deployed("widgets:manager", ("widgets", "ops")))
    for configuration in list(yaml.safe_load_all(files["webhooks.yaml"]))[1:]:
        assert configuration["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "ops/widgets"}
    pod = yaml.safe_load(files["deployment.yaml"])["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "certificate", "secret": {"secretName": "widgets-tls"}}]
    [mount] = pod["containers"][0]["volumeMounts"]
    assert mount == {"name": "certificate", "mountPath": "/certificates", "readOnly": True}
    assert "secrets" not in files["rbac.yaml"]


def test_own_ca_has_no_volume() -> None:
    files = base_files(declared(), Deployed("widgets:manager", ("widgets", "ops")))
    assert "volumes" not in files["deployment.yaml"]
    assert "cert-manager" not in files["webhooks.yaml"]


@pytest.mark.parametrize("option", ["files_secret", "certificate"])
def test_secret_and_certificate_are_for_files(option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} needs files="):
        WebhookServer("hooks", **{option: "widgets"})  # type: ignore[arg-type]


def test_service_is_in_the_namespace_of_the_manager() -> None:
    with pytest.raises(UsageError, match="namespace is ops, and the manager runs in default"):
        base_files(declared(), Deployed("widgets:manager", ("widgets", "default")))


def test_rights_are_those_of_the_ca_and_the_reads() -> None:
    found = {(str(rule), rule.names) for rule in needs(declared())}
    assert {
        ("list, watch nodes in the cluster", ()),
        ("create secrets in namespace ops", ()),
        ("get, update secrets in namespace ops", ("hooks-webhook-ca",)),
        ("get, patch mutatingwebhookconfigurations.admissionregistration.k8s.io in the cluster", ("hooks.ops",)),
        ("get, patch validatingwebhookconfigurations.admissionregistration.k8s.io in the cluster", ("hooks.ops",)),
    } <= found


def test_rights_are_those_of_the_reviews_of_an_rbac() -> None:
    manager = Manager("shop", metrics_check=Rbac(audiences=["shop"]))
    delegated = {
        "create tokenreviews.authentication.k8s.io in the cluster",
        "create subjectaccessreviews.authorization.k8s.io in the cluster",
    }
    assert delegated <= {str(rule) for rule in needs(manager)}
    manager = Manager("shop")
    manager.debug_app(check=Rbac(user_header="X-Remote-User", from_peers=["10.0.0.7"]))
    assert delegated & {str(rule) for rule in needs(manager)} == {
        "create subjectaccessreviews.authorization.k8s.io in the cluster"
    }


def registered(manager: Manager) -> dict[str, Any]:
    files = base_files(manager, Deployed("widgets:manager", ("widgets", "ops")))
    _, configuration = yaml.safe_load_all(files["webhooks.yaml"])
    return {each["name"]: each for each in configuration["webhooks"]}


def test_manager_can_start_although_its_functions_cannot_be_called() -> None:
    election = LeaderElection("widgets", "leases")
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops"), leader_election=election)

    async def function(request: Any) -> None: ...

    resources = (core_v1.SECRETS, rbac_v1.CLUSTER_ROLES, core_v1.NAMESPACES, WIDGETS, DEFINITIONS)
    for each in resources:
        manager.validate(each)(function)

    @manager.default(DECLARED)
    async def fill(request: AdmissionRequest[Gadget]) -> Gadget:
        return request.object

    files = base_files(manager, Deployed("widgets:manager", ("widgets", "ops")))
    _, _, configuration = yaml.safe_load_all(files["webhooks.yaml"])
    found = {each["name"].partition(".")[2]: each for each in configuration["webhooks"]}
    left_out = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "leases", "ops"]}
    for name in ("secrets.core", "namespaces.core"):
        assert found[name]["namespaceSelector"] == {"matchExpressions": [left_out]}
        assert "matchConditions" not in found[name]
    assert "namespaceSelector" not in found["widgets.example.com"]
    roles, definitions = (
        found[f"{name}.k8s.io"]["matchConditions"]
        for name in ("clusterroles.rbac.authorization", "customresourcedefinitions.apiextensions")
    )
    assert roles == [{"name": "own-objects", "expression": "!(request.name in ['widgets'])"}]
    assert definitions == [{"name": "own-objects", "expression": "!(request.name in ['gadgets.example.com'])"}]


def test_options_of_a_declaration_are_in_the_configuration() -> None:
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops"))

    async def function(request: Any) -> None: ...

    manager.validate(
        core_v1.SECRETS,
        namespace_selector={},
        object_selector={"matchLabels": {"team": "a"}},
        match_conditions={"people": "!request.userInfo.username.startsWith('system:')"},
        match_policy="Exact",
        side_effects="NoneOnDryRun",
    )(function)
    manager.validate(apps_v1.DEPLOYMENTS)(function)
    manager.validate(apps_v1.DEPLOYMENTS, subresources=["scale"], operations=["update"])(function)
    found = registered(manager)
    secrets = found.pop("validate.secrets.core")
    assert secrets["namespaceSelector"] == {}
    assert secrets["objectSelector"] == {"matchLabels": {"team": "a"}}
    assert [each["name"] for each in secrets["matchConditions"]] == ["people"]
    assert (secrets["matchPolicy"], secrets["sideEffects"]) == ("Exact", "NoneOnDryRun")
    assert {name: each["rules"][0]["resources"] for name, each in found.items()} == {
        "create-update.validate.deployments.apps": ["deployments"],
        "update-scale.validate.deployments.apps": ["deployments/scale"],
    }


def test_url_instead_of_the_service() -> None:
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops", url="https://192.0.2.1:9443/"))

    async def function(request: Any) -> None: ...

    manager.validate(WIDGETS)(function)
    files = base_files(manager, Deployed("widgets:manager", ("widgets", "ops")))
    [configuration] = yaml.safe_load_all(files["webhooks.yaml"])
    [webhook] = configuration["webhooks"]
    assert webhook["clientConfig"] == {"url": "https://192.0.2.1:9443/validate/widgets.example.com"}
    assert WebhookServer("hooks", url="https://[::1]:9443", hosts=("a.example",)).addresses == ("a.example", "::1")
    for wrong in ("http://192.0.2.1", "https://", "192.0.2.1:9443", "https://a?b=c"):
        with pytest.raises(UsageError, match="url must be https://HOST:PORT"):
            WebhookServer("hooks", url=wrong)


@pytest.mark.parametrize(("expression", "reason"), [("object.", "Syntax error"), ("request.color == ''", "'color'")])
def test_mistake_in_a_match_condition_is_named(expression: str, reason: str) -> None:
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops"))

    async def function(request: Any) -> None: ...

    manager.validate(WIDGETS, match_conditions={"it": expression})(function)
    with pytest.raises(UsageError, match=rf"hooks\.ops: webhooks\[0\]\.matchConditions\[0\]\.expression: .*{reason}"):
        base_files(manager, Deployed("widgets:manager", ("widgets", "ops")))


def test_patterns_that_nothing_checks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager("widgets", webhooks=WebhookServer("hooks", "ops"))

    async def function(request: Any) -> None: ...

    conditions = {"plain": "request.userInfo.username != ''", "bots": "!request.userInfo.username.matches('(')"}
    manager.validate(WIDGETS, match_conditions=conditions)(function)
    assert list(unchecked_conditions(manager)) == []
    compile_pattern.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    (line,) = unchecked_conditions(manager)
    assert line.startswith("match condition bots: its pattern is not checked, which needs google-re2")
    assert 'pip install "aioinformer[testing]"' in line
    compile_pattern.cache_clear()
