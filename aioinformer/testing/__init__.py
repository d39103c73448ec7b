"""An API server in your own process, for tests of whatever talks to Kubernetes: real HTTP, and faults at will."""

from __future__ import annotations

from aioinformer.testing.fault_scopes import FaultController, FaultScope
from aioinformer.testing.faults import FAULTS, Fault
from aioinformer.testing.front import RequestEntry
from aioinformer.testing.population import make_pod, make_pods, populate
from aioinformer.testing.server import ApiServer
from aioinformer.testing.statuses import StatusError
from aioinformer.testing.storage import Backup
from aioinformer.testing.workload import Workload

__all__ = [
    "FAULTS",
    "ApiServer",
    "Backup",
    "Fault",
    "FaultController",
    "FaultScope",
    "RequestEntry",
    "StatusError",
    "Workload",
    "make_pod",
    "make_pods",
    "populate",
]
