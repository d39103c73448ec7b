"""Validation of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import GONE, variant_statuses, with_changes

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
JOB = {"metadata": {"name": "a"}, "spec": {"template": {"spec": POD}}}
INDEXED = with_changes(JOB, {"spec.completionMode": "Indexed", "spec.completions": 3})
MANUAL = with_changes(
    JOB,
    {
        "spec.manualSelector": True,
        "spec.selector": {"matchLabels": {"a": "b"}},
        "spec.template.metadata": {"labels": {"a": "b"}},
    },
)
UID = "00000000-0000-0000-0000-000000000000"
FAILURES = "spec.podFailurePolicy.rules"
SUCCESSES = "spec.successPolicy.rules"
ON_EXIT = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
ON_CONDITION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def on_exit(**fields: Any) -> dict[str, Any]:
    return {FAILURES: [with_changes(ON_EXIT, {f"onExitCodes.{name}": value for name, value in fields.items()})]}


def on_condition(**fields: Any) -> dict[str, Any]:
    return {FAILURES: [{"action": "Ignore", "onPodConditions": [fields]}]}


WRONG: dict[str, tuple[dict[str, Any], list[Changes]]] = {
    "required": (JOB, [
        {"spec": GONE},
        {"spec.template": GONE},
        {"spec.template.spec": GONE},
        {"spec.template.spec.containers": []},
        {"spec.template.spec.restartPolicy": GONE},
    ]),
    "restarts": (JOB, [
        {"spec.template.spec.restartPolicy": "Always"},
        {"spec.template.spec.restartPolicy": "Sometimes"},
        {"spec.template.spec.restartPolicy": "OnFailure", FAILURES: [ON_EXIT]},
        {"spec.template.spec.restartPolicy": "Always", FAILURES: [ON_EXIT]},
    ]),
    "numbers": (JOB, [
        {"spec.parallelism": -1},
        {"spec.completions": -1},
        {"spec.activeDeadlineSeconds": -1},
        {"spec.backoffLimit": -1},
        {"spec.ttlSecondsAfterFinished": -1},
        {"spec.backoffLimitPerIndex": -1},
        {"spec.maxFailedIndexes": -1},
        {"spec.parallelism": -1, "spec.completions": -1, "spec.backoffLimit": -1, "spec.ttlSecondsAfterFinished": -1},
        {"spec.managedBy": "x"},
        {"spec.managedBy": "A/x"},
        {"spec.managedBy": "example.com/"},
        {"spec.managedBy": f"example.com/{'x' * 60}"},
    ]),
    "modes": (JOB, [
        {"spec.completionMode": "Sometimes"},
        {"spec.completionMode": "Indexed", "spec.parallelism": 1},
        {"spec.completionMode": "Indexed", "spec.completions": 5, "spec.parallelism": 100_001},
        {"spec.backoffLimitPerIndex": 1},
        {"spec.maxFailedIndexes": 1},
        {"spec.maxFailedIndexes": 1, "spec.backoffLimitPerIndex": 1},
        {"spec.podReplacementPolicy": "Sometimes"},
        {"spec.podReplacementPolicy": "TerminatingOrFailed", FAILURES: [ON_EXIT]},
        {"spec.successPolicy": {"rules": [{"succeededCount": 1}]}},
    ]),
    "indexes": (INDEXED, [
        {"spec.maxFailedIndexes": 1},
        {"spec.maxFailedIndexes": 4, "spec.backoffLimitPerIndex": 1},
        {"spec.completions": 200_000, "spec.backoffLimitPerIndex": 1},
        {"spec.completions": 200_000, "spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 100_001},
        {"spec.completions": 200_000, "spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 1,
         "spec.parallelism": 20_000},
        {"metadata.name": "x" * 62},
        {"metadata.name": "a.b"},
    ]),
    "failures": (JOB, [
        {FAILURES: [{"action": "FailJob"}]},
        {FAILURES: [{}]},
        {FAILURES: [ON_EXIT | ON_CONDITION]},
        {FAILURES: [ON_EXIT | {"action": "Sometimes"}]},
        {FAILURES: [ON_EXIT | {"action": ""}]},
        {FAILURES: [ON_EXIT | {"action": "FailIndex"}]},
        {FAILURES: [ON_EXIT] * 21},
    ]),
    "failures_on_exit": (JOB, [
        on_exit(operator="Is"),
        on_exit(operator=""),
        on_exit(containerName="d"),
        on_exit(values=[]),
        on_exit(values=[0]),
        on_exit(values=[1, 1]),
        on_exit(values=[2, 1]),
        on_exit(values=list(range(1, 257))),
        on_exit(operator="NotIn", values=[2, 0, 2]),
    ]),
    "failures_on_condition": (JOB, [
        on_condition(type="-", status="True"),
        on_condition(type="", status="True"),
        on_condition(type="A", status="Sometimes"),
        {FAILURES: [{"action": "Ignore", "onPodConditions": [{"type": "A", "status": "True"}] * 21}]},
    ]),
    "successes": (INDEXED, [
        {SUCCESSES: []},
        {SUCCESSES: [{}]},
        {SUCCESSES: [{"succeededCount": -1}]},
        {SUCCESSES: [{"succeededCount": 4}]},
        {SUCCESSES: [{"succeededIndexes": "0-1", "succeededCount": 3}]},
        {SUCCESSES: [{"succeededIndexes": "0-3"}]},
        {SUCCESSES: [{"succeededIndexes": "3"}]},
        {SUCCESSES: [{"succeededIndexes": "x"}]},
        {SUCCESSES: [{"succeededIndexes": "0-1-2"}]},
        {SUCCESSES: [{"succeededIndexes": "0-x"}]},
        {SUCCESSES: [{"succeededIndexes": "1,0"}]},
        {SUCCESSES: [{"succeededIndexes": "1-1"}]},
        {SUCCESSES: [{"succeededCount": 1}] * 21},
    ]),
    "selectors": (JOB, [
        {"spec.selector": {"matchLabels": {"a": "b"}}},
        {"spec.selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}},
        {"spec.selector": {"matchLabels": {"-": "b"}}},
        {"spec.template.metadata": {"labels": {"job-name": "b"}}},
        {"spec.template.metadata": {"labels": {"batch.kubernetes.io/job-name": "b"}}},
        {"spec.template.metadata": {"labels": {"controller-uid": UID}}},
        {"spec.template.metadata": {"labels": {"batch.kubernetes.io/controller-uid": UID}}},
    ]),
    "manual_selectors": (MANUAL, [
        {"spec.selector": GONE},
        {"spec.selector": {"matchLabels": {"a": "c"}}},
        {"spec.selector": {"matchLabels": {"-": "c"}}},
        {"spec.selector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
        {"spec.template.metadata": GONE},
    ]),
    "names": (JOB, [
        {"metadata.name": "A"},
        {"metadata.name": "x" * 254},
        {"metadata.name": "x" * 64},
    ]),
    "several_at_once": (JOB, [
        {"spec.parallelism": -1, "spec.completionMode": "Indexed", "spec.podReplacementPolicy": "x",
         "spec.template.spec.restartPolicy": "Always", FAILURES: [{}]},
    ]),
}  # fmt: skip


@variants("case", WRONG)
async def test_invalid_jobs_are_refused(api: Conversation, case: tuple[dict[str, Any], list[Changes]]) -> None:
    assert await variant_statuses(api, JOBS, *case) == {422}


ACCEPTED: dict[str, tuple[dict[str, Any], list[Changes]]] = {
    "plain": (JOB, [
        {
            "spec.parallelism": 0, "spec.completions": 0, "spec.activeDeadlineSeconds": 0, "spec.backoffLimit": 0,
            "spec.ttlSecondsAfterFinished": 0, "spec.suspend": True, "spec.managedBy": "example.com/x",
        },
        {"spec.podReplacementPolicy": "Failed"},
        {FAILURES: [ON_EXIT, ON_CONDITION, ON_EXIT | {"action": "Count"}]},
        {FAILURES: []},
        on_condition(type="A"),
        {"spec.completionMode": "Indexed"},
        {"spec.manualSelector": False, "spec.template.metadata": {"labels": {"a": "b"}}},
        {"metadata.labels": {"x": "y"}},
        {"metadata.labels": {"x": "y"}, "spec.template.metadata": {"labels": {"a": "b"}}},
    ]),
    "indexed": (INDEXED, [
        {
            "spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 2, "spec.parallelism": 3,
            SUCCESSES: [{"succeededIndexes": "0,2", "succeededCount": 1}, {"succeededCount": 2}],
            FAILURES: [ON_EXIT | {"action": "FailIndex"}],
        },
        {"spec.completions": 0},
    ]),
    "manual": (MANUAL, [{}]),
}  # fmt: skip


@variants("case", ACCEPTED)
async def test_unusual_jobs_are_accepted(api: Conversation, case: tuple[dict[str, Any], list[Changes]]) -> None:
    assert await variant_statuses(api, JOBS, *case) == {201}


async def changes(api: Conversation, obj: dict[str, Any], patches: list[dict[str, Any]]) -> set[int]:
    await api.create(JOBS, obj)
    answers = [await api("PATCH", f"{JOBS}/a?dryRun=All", {"spec": each}, content_type=MERGE_PATCH) for each in patches]
    return {answer.status for answer in answers}


KEPT: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "plain": (JOB, [
        {"completions": 2},
        {"completions": None},
        {"completionMode": "Indexed"},
        {"parallelism": -1},
        {"selector": {"matchLabels": {"c": "d"}}},
        {"backoffLimitPerIndex": 1},
        {"managedBy": "example.com/x"},
    ]),
    "policies": (with_changes(INDEXED, {SUCCESSES: [{"succeededCount": 1}], FAILURES: [ON_EXIT]}), [
        {"podFailurePolicy": {"rules": [ON_CONDITION]}},
        {"podFailurePolicy": None},
        {"successPolicy": {"rules": [{"succeededCount": 2}]}},
        {"successPolicy": None},
    ]),
    "indexed": (with_changes(INDEXED, {"spec.parallelism": 3}), [
        {"completions": 4},
        {"completions": None},
        {"completions": 4, "parallelism": 5},
    ]),
    "templates": (JOB, [
        {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}},
        {"template": {"metadata": {"labels": {"x": "y"}}}},
        {"template": {"spec": {"nodeSelector": {"a": "b"}}}},
    ]),
    "templates_of_suspended_jobs": (with_changes(JOB, {"spec.suspend": True}), [
        {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}},
        {"template": {"spec": {"restartPolicy": "OnFailure"}}},
        {"suspend": False, "template": {"spec": {"terminationGracePeriodSeconds": 1}}},
    ]),
}  # fmt: skip


@variants("case", KEPT)
async def test_immutable_job_fields(api: Conversation, case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    assert await changes(api, *case) == {422}


CHANGED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "plain": (JOB, [
        {"parallelism": 5, "suspend": True, "backoffLimit": 9, "activeDeadlineSeconds": 4},
        {"ttlSecondsAfterFinished": 3, "podReplacementPolicy": "Failed"},
    ]),
    "indexed": (with_changes(INDEXED, {"spec.parallelism": 3, "spec.backoffLimitPerIndex": 1}), [
        {"completions": 4, "parallelism": 4},
        {"maxFailedIndexes": 2},
    ]),
    "suspended": (with_changes(JOB, {"spec.suspend": True}), [
        {"template": {"spec": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}}},
        {"template": {"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}},
        {"template": {"spec": {"schedulingGates": [{"name": "g"}]}}},
        {"template": {"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        ]}}}}},
        {"template": {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]}}},
    ]),
}  # fmt: skip


@variants("case", CHANGED)
async def test_mutable_job_fields(api: Conversation, case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    assert await changes(api, *case) == {200}
