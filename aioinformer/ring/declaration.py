"""What is declared of a ring, and the form of its state in a snapshot: data, without what runs it."""

from __future__ import annotations

import re
from typing import Final, TypedDict

from aioinformer.errors import OptionError
from aioinformer.leaderelection.elector import check_election
from aioinformer.leaderelection.lease import LeaderElectionOptions
from aioinformer.ring.table import By, is_slot_count

#: The most characters of the names of a ring and a member; an object has 253.
LONGEST: Final = 100


class ControllerRing:
    """Replicas of a manager that share its objects: each reconciles those in the slots that it owns.

    Args:
        name: of the ring. The ring object is the ConfigMap `<name>-ring`, and the Leases are `<name>-<member>`.
        namespace: of the ConfigMap and the Leases.
        slots: how many parts there are: a power of two up to 1,024, the same for all replicas. Have several for each.
        by: what decides about the slot: the "uid" of an object, or of its controller for owned ones; or the
            "namespace". Many namespaces with similar names fall into few slots.
        member: a unique name for this replica; the host name and a random part by default.
        options: the times of the Leases.

    Attributes:
        name, namespace, slots, by, member, options: as given.
        object: the name of the ConfigMap.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        name: str,
        namespace: str = "default",
        *,
        slots: int = 64,
        by: By = "uid",
        member: str | None = None,
        options: LeaderElectionOptions | None = None,
    ) -> None:
        check_election("ControllerRing: ", name, namespace, member, options)
        if not is_slot_count(slots):
            raise OptionError(f"ControllerRing: slots must be a power of two from 1 to 1024, not {slots!r}")
        if by not in ("uid", "namespace"):
            raise OptionError(f"ControllerRing: by must be 'uid' or 'namespace', not {by!r}")
        if options is not None and options.coordinated:
            raise OptionError("ControllerRing: the Leases of a ring take part in no coordinated election")
        for what, value in (("name", name), ("member", member or "")):
            if not re.fullmatch(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?", value) or len(value) > LONGEST:
                raise OptionError(
                    f"ControllerRing: {what} must have only lower-case letters, digits, '-' and '.', as the names of "
                    f"objects, and at most {LONGEST} characters, not {value!r}"
                )
        self.name = name
        self.object = f"{name}-ring"
        self.namespace = namespace
        self.slots = slots
        self.by: By = by
        self.member = member
        self.options = options or LeaderElectionOptions()


class RingSnapshot(TypedDict):
    """The state of a ring as one replica sees it.

    Attributes:
        name: namespace and name of the ring object.
        member: the name of this replica.
        epoch: of the ring; -1 if none was read.
        remaining: seconds for which this replica may work unless it renews its Lease; 0 or less if it may not.
        owners: the members, and how many slots each owns.
        slots: the owner of each slot; "" for none.
        mine: the slots in which this replica begins work.
        namespaces: how many namespaces of this replica fall into each slot; empty for a ring by uid.
        unowned: slots without a living owner that begins work in them, and for how many seconds.
        waits_for: why this replica does not have all of its slots; "" if it has.
        gap: which slots have had no owner for too long, and why, or which Lease would leave them without one for long;
            "" for none.
    """

    name: str
    member: str
    epoch: int
    remaining: float
    owners: dict[str, int]
    slots: list[str]
    mine: list[int]
    namespaces: dict[int, int]
    unowned: dict[int, float]
    waits_for: str
    gap: str
