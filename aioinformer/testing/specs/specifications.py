"""Which checks apply to which kind.

A check takes the object with its defaults filled in, and the object that it replaces, if there is one. Two liberties
are taken, and clients do not meet them on objects that clients made: programs in the server's own process, and the
manifests that they load, may leave out what is required, since a test that is about something else need not write whole
pods; and what was wrong in an object already does not stand in the way of changing something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.specs.claims import claim
from aioinformer.testing.specs.data import config_map, secret
from aioinformer.testing.specs.event_checks import event_causes
from aioinformer.testing.specs.jobs import cron_job, job
from aioinformer.testing.specs.leases import lease
from aioinformer.testing.specs.pods import pod, pod_template
from aioinformer.testing.specs.rights import RIGHTS, rights_causes
from aioinformer.testing.specs.services import service
from aioinformer.testing.specs.workloads import deployment, selecting, stateful_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause

    Check = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Iterable[Cause]]

_LEFT_OUT = "FieldValueRequired"


def specification_causes(
    served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None, *, whole: bool = True
) -> list[Cause]:
    """What is wrong with an object whose defaults are filled in.

    Args:
        old: what it replaces.
        whole: whether required fields have to be there.
    """
    causes = _causes(served, obj, old)
    if causes and old is not None:
        known = _causes(served, old, old)
        causes = [cause for cause in causes if cause not in known]
    return causes if whole else [cause for cause in causes if cause.reason != _LEFT_OUT]


def _causes(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    if served.collection == "events":
        former = None if old is None else served.kept(old)
        return event_causes(served.kept(obj), former, newer=served.conversion is not None)
    if served.resource.group == RIGHTS:
        return rights_causes(served.resource.plural, obj, old)
    check = _CHECKS.get(served.resource.group_resource)
    return [] if check is None else list(check(obj, old))


_CHECKS: Mapping[str, Check] = {
    "configmaps": config_map,
    "cronjobs.batch": cron_job,
    "daemonsets.apps": selecting,
    "deployments.apps": deployment,
    "jobs.batch": job,
    "leases.coordination.k8s.io": lease,
    "persistentvolumeclaims": claim,
    "pods": pod,
    "podtemplates": pod_template,
    "replicasets.apps": selecting,
    "secrets": secret,
    "services": service,
    "statefulsets.apps": stateful_set,
}
