"""What a Lease says of leadership."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says of leadership; times as they are written there.

    Attributes:
        holder_identity: who leads; "" for nobody.
        lease_duration_seconds: for how long, counted from when it is seen.
        acquire_time: when the term began, on the holder's clock.
        renew_time: when the holder last wrote, on its clock.
        lease_transitions: the number of the term.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """The record in a Lease; what is missing or odd there is as in an empty one."""
        spec = lease.get("spec")
        if not isinstance(spec, Mapping):
            return cls()
        return cls(
            holder_identity=str(spec.get("holderIdentity") or ""),
            lease_duration_seconds=_int32(spec.get("leaseDurationSeconds")),
            acquire_time=str(spec.get("acquireTime") or ""),
            renew_time=str(spec.get("renewTime") or ""),
            lease_transitions=_int32(spec.get("leaseTransitions")),
        )

    def into(self, lease: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
        """The Lease with this record in it, and these labels among its own; everything else stays."""
        metadata = dict(lease.get("metadata") or {})
        if labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": self.holder_identity,
            "leaseDurationSeconds": self.lease_duration_seconds,
            "acquireTime": self.acquire_time or None,
            "renewTime": self.renew_time or None,
            "leaseTransitions": self.lease_transitions,
        }
        return {**lease, "metadata": metadata, "spec": spec}

    @property
    def term(self) -> tuple[str, str, int]:
        """What tells one term from all others."""
        return self.holder_identity, self.acquire_time, self.lease_transitions


def _int32(value: object) -> int:
    """The number, as far as the API's type holds it: a larger one cannot be added to a time."""
    return value if isinstance(value, int) and abs(value) < 2**31 else 0
