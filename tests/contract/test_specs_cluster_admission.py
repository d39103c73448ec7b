"""Validation of webhooks, admission policies and their bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.tables import any_of, variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
HOOKS = f"{ADMISSION}/validatingwebhookconfigurations"
CHANGING_HOOKS = f"{ADMISSION}/mutatingwebhookconfigurations"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
CHANGING_POLICIES = f"{ADMISSION}/mutatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
CHANGING_BINDINGS = f"{ADMISSION}/mutatingadmissionpolicybindings"
RULE: dict[str, Any] = {
    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
}  # fmt: skip
SERVICE = {"namespace": "n", "name": "s", "path": "/check/pods", "port": 8443}
# The rules match no object that the server itself writes.
HOOK: dict[str, Any] = {
    "name": "hook.example.com", "clientConfig": {"url": "https://hook.invalid/a"}, "sideEffects": "None",
    "admissionReviewVersions": ["v1"], "rules": [RULE],
}  # fmt: skip
MATCHED = {"resourceRules": [RULE]}
POLICY: dict[str, Any] = {"matchConstraints": MATCHED, "validations": [{"expression": "true"}]}
BINDING: dict[str, Any] = {"policyName": "p", "validationActions": ["Deny"]}
PATCH = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": ""}}
CHANGING: dict[str, Any] = {"matchConstraints": MATCHED, "mutations": [PATCH], "reinvocationPolicy": "Never"}
Variants = list[dict[str, Any]]


def hooks(*changes: dict[str, Any]) -> Variants:
    return [{"webhooks": [HOOK | each]} for each in changes]


def rules(*changes: dict[str, Any]) -> Variants:
    return [{"rules": [RULE | each]} for each in changes]


def clients(*each: dict[str, Any]) -> Variants:
    return [{"clientConfig": client} for client in each]


def specs(spec: dict[str, Any], *changes: dict[str, Any]) -> Variants:
    return [{"spec": spec | each} for each in changes]


WRONG: dict[str, tuple[str, Variants]] = {
    "hook": (HOOKS, [
        *hooks(
            {"name": ""}, {"name": "a.b"}, {"name": "A.b.c"}, {"failurePolicy": "Wrong"}, {"matchPolicy": "Wrong"},
            {"sideEffects": None}, {"sideEffects": "Some"}, {"timeoutSeconds": 0}, {"timeoutSeconds": 31},
            {"namespaceSelector": {"matchLabels": {"a b": "c"}}, "objectSelector": {"matchLabels": {"a": "c d"}}},
        ),
        {"webhooks": [HOOK, HOOK]},
    ]),
    "versions": (HOOKS, hooks(*({"admissionReviewVersions": each} for each in any_of(
        [], ["v2"], ["v1", "v1"], ["V1"], ["v1", "2"],
    )))),
    "rule": (HOOKS, hooks(*rules(
        {"operations": []}, {"operations": ["*", "CREATE"]}, {"operations": ["create"]}, {"apiGroups": []},
        {"apiGroups": ["", "*"]}, {"apiVersions": []}, {"apiVersions": ["*", "v1"]}, {"apiVersions": [""]},
        {"scope": "Wrong"},
    ))),
    "resources": (HOOKS, hooks(*rules(*({"resources": each} for each in any_of(
        [], [""], ["*", "pods"], ["*/*", "pods"], ["pods/*", "pods/status"], ["*/status", "pods/status"],
    ))))),
    "url": (HOOKS, hooks(*clients(
        {}, {"url": "https://a", "service": SERVICE}, {"url": "http://a/b"}, {"url": "https://"},
        {"url": "https://u:p@a/b"}, {"url": "https://a/b?c=d"}, {"url": "https://a/b#c"}, {"url": "a"},
    ))),
    "service": (HOOKS, hooks(*clients(*({"service": SERVICE | each} for each in any_of(
        {"name": ""}, {"namespace": ""}, {"port": 0}, {"port": 65536}, {"path": "a"}, {"path": "//"}, {"path": "/a//b"},
        {"path": "/A/b_c/"},
    ))))),
    "conditions": (HOOKS, hooks(*({"matchConditions": each} for each in any_of(
        [{"name": "", "expression": "true"}], [{"name": "a b", "expression": "true"}], [{"name": "a"}],
        [{"name": "a", "expression": "true"}, {"name": "a", "expression": " "}],
        [{"name": f"a{n}", "expression": "true"} for n in range(65)],
    )))),
    "changing-hook": (CHANGING_HOOKS, hooks(
        {"reinvocationPolicy": "Wrong"}, {"name": ""}, {"sideEffects": "Unknown", "clientConfig": {}},
    )),
    "policy": (POLICIES, specs(
        POLICY, {"failurePolicy": "Wrong"}, {"matchConstraints": None}, {"matchConstraints": {}},
        {"validations": []}, {"validations": [{"expression": " "}]},
        {"validations": [{"expression": "true", "message": " "}]},
        {"validations": [{"expression": "true", "message": "a\nb", "reason": "NotFound"}]},
        {"validations": [{"expression": "true", "messageExpression": " "}]},
        {"variables": [{"name": "", "expression": ""}, {"name": "a-b", "expression": ""}]},
        {"auditAnnotations": [{"key": "a b", "valueExpression": ""}, {"key": "a b", "valueExpression": ""}]},
    )),
    "parameters": (POLICIES, specs(POLICY, *({"paramKind": each} for each in any_of(
        {}, {"apiVersion": "a/b/c", "kind": "A"}, {"apiVersion": "A/v1", "kind": "A b"},
        {"apiVersion": "a/V", "kind": "A"}, {"apiVersion": "a/", "kind": "A"},
    )))),
    "constraints": (POLICIES, specs(POLICY, *({"matchConstraints": each} for each in any_of(
        MATCHED | {"matchPolicy": "Wrong"}, MATCHED | {"namespaceSelector": {"matchLabels": {"a b": "c"}}},
        {"resourceRules": [RULE | {"resourceNames": ["a/b", "c", "c", ".."]}]},
        MATCHED | {"excludeResourceRules": [RULE | {"operations": ["wrong"]}]}, {"resourceRules": [{}]},
    )))),
    "binding": (BINDINGS, specs(
        BINDING, {"policyName": ""}, {"policyName": "A"}, {"validationActions": []},
        {"validationActions": ["Warn", "Deny", "Deny"]}, {"validationActions": ["Wrong"]},
        {"matchResources": MATCHED | {"matchPolicy": "Wrong"}},
    )),
    "reference": (BINDINGS, specs(BINDING, *({"paramRef": each} for each in any_of(
        {}, {"name": "a/b", "parameterNotFoundAction": "Wrong"},
        {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"},
        {"selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "Allow"},
    )))),
    "changing-policy": (CHANGING_POLICIES, specs(
        CHANGING, {}, {"mutations": []}, {"mutations": [{"patchType": "Wrong"}, {}]},
        {"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {"expression": ""}}]},
        {"reinvocationPolicy": "Wrong"}, {"reinvocationPolicy": None},
        {"matchConstraints": {"resourceRules": [RULE | {"operations": ["DELETE"]}]}}, {"failurePolicy": "Wrong"},
    )),
    "changing-binding": (CHANGING_BINDINGS, specs(
        {"policyName": "p"}, {"policyName": None},
        {"matchResources": {"resourceRules": [RULE | {"operations": ["DELETE", "wrong"]}]}},
    )),
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_webhooks_and_policies_are_refused(api: Conversation, wrong: tuple[str, Variants]) -> None:
    where, objects = wrong
    for obj in objects:
        answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
        assert answer.status == 422, obj


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "hook": (HOOKS, {"webhooks": [
        HOOK | {"matchConditions": [{"name": "a", "expression": "object.spec.replicas <= 5 && has(object.metadata)"}]},
        HOOK | {
            "name": "other.example.com", "clientConfig": {"service": SERVICE}, "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 30, "failurePolicy": "Ignore", "matchPolicy": "Exact", "rules": [
                RULE | {"scope": "Namespaced", "resources": ["*/*"], "operations": ["*"]},
                RULE | {"resources": ["pods", "pods/*", "*/scale"]},
            ],
        },
    ]}),
    "changing-hook": (CHANGING_HOOKS, {"webhooks": [HOOK | {"reinvocationPolicy": "IfNeeded"}]}),
    "policy": (POLICIES, {"spec": POLICY | {
        "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Rule"},
        "matchConditions": [{"name": "a", "expression": "has(object.spec)"}],
        "validations": [
            {"expression": 'object.kind == "Pod"', "message": "no", "reason": "Forbidden"},
            {"expression": "object.spec.containers.all(c, c.image.startsWith(params.a))", "messageExpression": "'a'"},
        ],
    }}),
    "binding": (BINDINGS, {"spec": BINDING | {
        "validationActions": ["Warn", "Audit"], "matchResources": MATCHED,
        "paramRef": {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow", "namespace": "n"},
    }}),
    "changing-binding": (CHANGING_BINDINGS, {"spec": {"policyName": "p"}}),
}  # fmt: skip


@variants("right", GOOD)
async def test_valid_webhooks_and_policies_are_accepted(api: Conversation, right: tuple[str, dict[str, Any]]) -> None:
    where, obj = right
    answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
    assert answer.status == 201


EXPRESSIONS: dict[str, dict[str, Any]] = {
    "unknown": {"validations": [{"expression": "foo == 1"}]},
    "no-truth": {"validations": [{"expression": "1"}, {"expression": "object.a"}]},
    "params": {"validations": [{"expression": "params.a == 1"}]},
    "message": {"validations": [{"expression": "true", "messageExpression": "1"}]},
    "condition": {"matchConditions": [{"name": "a", "expression": " 'a' "}]},
}


@variants("wrong", EXPRESSIONS)
async def test_policy_expressions_are_compiled(api: Conversation, wrong: dict[str, Any]) -> None:
    policy = {"metadata": {"name": api.namespace}, "spec": POLICY | wrong}
    answer = await api("POST", f"{POLICIES}?dryRun=All", policy)
    assert answer.status == 422


async def test_unsupported_policy_expressions_are_refused(api: Conversation) -> None:
    spec = POLICY | {"validations": [{"expression": "request.a == 1"}]}
    policy = {"metadata": {"name": api.namespace}, "spec": spec}
    answer = await api("POST", f"{POLICIES}?dryRun=All", policy)
    assert answer.status in (422, 501)
