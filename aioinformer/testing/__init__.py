"""An API server in your own process, for tests of Kubernetes clients and controllers: real HTTP, and faults on demand.

Each name is imported on first access: pytest loads the plugin in every run, and most runs start no server.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.testing.api.statuses import StatusError
    from aioinformer.testing.http.faults import FAULTS, Fault, FaultScope
    from aioinformer.testing.http.router import RequestEntry
    from aioinformer.testing.server.api_server import ApiServer, FaultController
    from aioinformer.testing.server.population import Workload, make_pod, make_pods, populate
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

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "api.statuses": "StatusError",
            "http.faults": "FAULTS Fault FaultScope",
            "http.router": "RequestEntry",
            "server.api_server": "ApiServer FaultController",
            "server.population": "Workload make_pod make_pods populate",
            "state.storage": "Backup",
        },
    )
