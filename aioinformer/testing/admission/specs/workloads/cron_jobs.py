"""Validation of cron jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.cron_schedules import ScheduleError, check_schedule
from aioinformer.testing.admission.common.time_zones import is_time_zone
from aioinformer.testing.admission.specs.terms.parts import non_negative, one_of
from aioinformer.testing.admission.specs.terms.selectors import quote_selector
from aioinformer.testing.admission.specs.workloads.jobs import job_spec_causes
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The names of the created jobs append the scheduled minute.
_LONGEST_NAME = 63 - 11
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_JOB = "spec.jobTemplate.spec"


def cron_job(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    former = None if old is None else old.get("spec") or {}
    zone = spec.get("timeZone")
    if schedule := spec.get("schedule"):
        yield from _schedule(schedule, zone, former)
    else:
        yield Cause.required("spec.schedule")
    yield from non_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if zone is not None and (former is None or former.get("timeZone") != zone):
        yield from _time_zone(zone)
    yield from one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from job_spec_causes(job, _JOB)
    if (selector := job.get("selector")) is not None:
        yield Cause.invalid(f"{_JOB}.selector", quote_selector(selector), "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield Cause.unsupported(f"{_JOB}.manualSelector", "true", ("nil", "false"))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from non_negative(spec.get(field), f"spec.{field}")
    name = (obj.get("metadata") or {}).get("name", "")
    if old is None and len(name) > _LONGEST_NAME:
        yield Cause.invalid("metadata.name", quote(name), f"must be no more than {_LONGEST_NAME} characters")


def _schedule(schedule: str, zone: str | None, former: Mapping[str, Any] | None) -> Iterator[Cause]:
    path, value = "spec.schedule", quote(schedule)
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        yield Cause.invalid(path, value, str(error))
    if "TZ" not in schedule:
        return
    if former is None or "TZ" not in former.get("schedule", ""):
        yield Cause.invalid(path, value, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif zone is not None:
        yield Cause.invalid(path, value, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _time_zone(zone: str) -> Iterator[Cause]:
    path, value = "spec.timeZone", quote(zone)
    parts = zone.split("/")
    if not zone:
        yield Cause.invalid(path, value, "timeZone must be nil or non-empty string")
    elif any(part in (".", "..") or part[:1] == "-" or not _ZONE_PART.fullmatch(part) for part in parts):
        yield Cause.invalid(path, value, f"unknown time zone {zone}")
    else:
        if zone.lower() == "local":
            explicit = "as defined in https://www.iana.org/time-zones"
            yield Cause.invalid(path, value, f"timeZone must be an explicit time zone {explicit}")
        if not is_time_zone(zone):
            yield Cause.invalid(path, value, f"unknown time zone {zone}")
