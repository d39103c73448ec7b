"""An API server in your own process, for tests of Kubernetes clients and controllers: real HTTP, and faults on demand.

Each name is imported on first access: pytest loads the plugin in every run, and most runs start no server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.api.statuses import StatusError
    from aioinformer.testing.http.faults.kinds import FAULTS, Fault
    from aioinformer.testing.http.faults.scope import FaultScope
    from aioinformer.testing.http.router import RequestEntry
    from aioinformer.testing.server.api_server import ApiServer
    from aioinformer.testing.server.fault_controller import FaultController
    from aioinformer.testing.server.population import make_pod, make_pods, populate
    from aioinformer.testing.server.workload import Workload
    from aioinformer.testing.state.storage import Backup

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

_MODULES = {
    "FAULTS": "http.faults.kinds",
    "ApiServer": "server.api_server",
    "Backup": "state.storage",
    "Fault": "http.faults.kinds",
    "FaultController": "server.fault_controller",
    "FaultScope": "http.faults.scope",
    "RequestEntry": "http.router",
    "StatusError": "api.statuses",
    "Workload": "server.workload",
    "make_pod": "server.population",
    "make_pods": "server.population",
    "populate": "server.population",
}

if not TYPE_CHECKING:  # otherwise mypy would accept every misspelt name

    def __getattr__(name: str) -> object:
        import importlib

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"aioinformer.testing.{_MODULES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
