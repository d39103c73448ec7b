"""Leader election with Leases, as in client-go's tools/leaderelection."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.leaderelection.candidate import LeaseCandidate as LeaseCandidate
    from aioinformer.leaderelection.elector import LeaderElector as LeaderElector
    from aioinformer.leaderelection.elector import LeadershipLost as LeadershipLost
    from aioinformer.leaderelection.elector import Term as Term
    from aioinformer.leaderelection.lease import LeaderElectionOptions as LeaderElectionOptions
    from aioinformer.leaderelection.lock import LeaseLock as LeaseLock
else:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "candidate": "LeaseCandidate",
            "elector": "LeaderElector LeadershipLost Term",
            "lease": "LeaderElectionOptions",
            "lock": "LeaseLock",
        },
    )
