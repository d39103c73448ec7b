"""Validation of cron jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.test_specs_jobs import FAILURES, ON_CONDITION, ON_EXIT, POD
from tests.contract.variations import GONE, variant_statuses

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

CRON_JOBS = "/apis/batch/v1/namespaces/{ns}/cronjobs"
CRON_JOB: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}},
}
JOB = "spec.jobTemplate.spec"
SCHEDULES = {
    "words": ["@sometimes", "@", "@every", "@every ", "@every x", "@every 5", "@every 5y", "@every 1.h-", "@Daily"],
    "fields": ["x", "* * * *", "* * * * * *", " ", "*  * * *", "*/5"],
    "bounds": [
        "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 7", "-1 * * * *",
        "0-60 * * * *", "0-99999999999999999999 * * * *",
    ],
    "ranges": [
        "5-1 * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "*/0 * * * *", "*/x * * * *", "*/-1 * * * *", "1- * * * *",
        "1,x * * * *", "x * * * *", "+1x * * * *", '"1" * * * *', "1/ * * * *",
    ],
    "names": ["* * * foo *", "* * * * foo", "* * * jan-foo *", "* * * dec-jan *", "jan * * * *", "* * * * sat-sun"],
    "zones": [
        "TZ=UTC * * * * *", "CRON_TZ=UTC * * * * *", "TZ=Nowhere/Land * * * * *", "TZ=UTC", "TZ=UTC x", "* * * * TZ",
        "CRON_TZ=UTC @daily",
    ],
}  # fmt: skip


@variants("schedules", SCHEDULES)
async def test_invalid_schedules_are_refused(api: Conversation, schedules: list[str]) -> None:
    wrong: list[Changes] = [{"spec.schedule": each} for each in schedules]
    assert await variant_statuses(api, CRON_JOBS, CRON_JOB, wrong) == {422}


READ = {
    "words": ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every 1h30m"],
    "more_words": ["@every 0", "@every -1.5h", "@every 1us", "@every .5s"],
    "fields": [
        "*/5 0-6/2 ? JAN,dec Sun-sat", " 1  2\t3 4 5 ", "5/10 * 1-31 1-12 0-6", "1,,2 * * * *", ", * * * *",
        "+1 * * * *",
    ],
}  # fmt: skip


@variants("schedules", READ)
async def test_valid_schedules_are_accepted(api: Conversation, schedules: list[str]) -> None:
    right: list[Changes] = [{"spec.schedule": each} for each in schedules]
    assert await variant_statuses(api, CRON_JOBS, CRON_JOB, right) == {201}


WRONG: dict[str, list[Changes]] = {
    "required": [
        {"spec": GONE},
        {"spec.schedule": GONE},
        {"spec.schedule": ""},
        {"spec.jobTemplate": GONE},
        {f"{JOB}.template.spec.restartPolicy": GONE},
        {f"{JOB}.template.spec.containers": []},
    ],
    "fields": [
        {"spec.startingDeadlineSeconds": -1},
        {"spec.successfulJobsHistoryLimit": -1},
        {"spec.failedJobsHistoryLimit": -1},
        {"spec.concurrencyPolicy": "Sometimes"},
        {"spec.concurrencyPolicy": "Sometimes", "spec.startingDeadlineSeconds": -1, "spec.failedJobsHistoryLimit": -1},
        {"metadata.name": "x" * 53},
        {"metadata.name": "x" * 53, "spec.schedule": "x"},
        {"metadata.name": "A"},
    ],
    "zones": [
        {"spec.timeZone": ""},
        {"spec.timeZone": "Nowhere/Land"},
        {"spec.timeZone": "Local"},
        {"spec.timeZone": "local"},
        {"spec.timeZone": "../UTC"},
        {"spec.timeZone": "Europe//Berlin"},
        {"spec.timeZone": "/Europe/Berlin"},
        {"spec.timeZone": "-Europe"},
        {"spec.timeZone": "Eur ope"},
        {"spec.timeZone": "AVeryLongNameOfATimeZone"},
        {"spec.timeZone": "Europe/Berlin", "spec.schedule": "TZ=UTC * * * * *"},
    ],
    "jobs": [
        {f"{JOB}.selector": {"matchLabels": {"a": "b"}}},
        {f"{JOB}.manualSelector": True},
        {f"{JOB}.parallelism": -1},
        {f"{JOB}.completionMode": "Sometimes"},
        {f"{JOB}.template.spec.restartPolicy": "Always"},
        {f"{JOB}.podFailurePolicy.rules": [ON_EXIT | ON_CONDITION]},
        {f"{JOB}.template.metadata": {"labels": {"-": "a"}}},
    ],
}


@variants("wrong", WRONG)
async def test_invalid_cron_jobs_are_refused(api: Conversation, wrong: list[Changes]) -> None:
    assert await variant_statuses(api, CRON_JOBS, CRON_JOB, wrong) == {422}


async def test_complete_cron_job_is_accepted(api: Conversation) -> None:
    full = {
        "metadata.name": "x" * 52,
        "spec.timeZone": "Europe/Berlin",
        "spec.startingDeadlineSeconds": 0,
        "spec.successfulJobsHistoryLimit": 0,
        "spec.failedJobsHistoryLimit": 0,
        "spec.concurrencyPolicy": "Replace",
        "spec.suspend": True,
        f"{JOB}.parallelism": 2,
        f"{JOB}.ttlSecondsAfterFinished": 3,
        f"{JOB}.manualSelector": False,
        FAILURES.replace("spec", JOB, 1): [{"action": "Ignore", "onPodConditions": [{"type": "A"}]}],
        "spec.jobTemplate.metadata": {"labels": {"a": "b"}},
    }
    zones = [{"spec.timeZone": zone} for zone in ("UTC", "Etc/GMT+5", "America/Argentina/Ushuaia")]
    assert await variant_statuses(api, CRON_JOBS, CRON_JOB, [full, *zones]) == {201}


async def test_cron_job_updates_are_validated(api: Conversation) -> None:
    await api.create(CRON_JOBS, CRON_JOB)
    changes: list[dict[str, Any]] = [
        {"schedule": "@daily", "timeZone": "UTC", "concurrencyPolicy": "Forbid"},
        {"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}},
        {"schedule": "TZ=UTC @daily"},
        {"schedule": "x"},
        {"timeZone": ""},
        {"suspend": None, "failedJobsHistoryLimit": -1},
    ]
    answers = [
        await api("PATCH", f"{CRON_JOBS}/a?dryRun=All", {"spec": each}, content_type=MERGE_PATCH) for each in changes
    ]
    assert [answer.status for answer in answers] == [200, 200, 422, 422, 422, 422]
