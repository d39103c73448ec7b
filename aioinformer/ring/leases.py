"""What the Lease of a member says: the fields of the API, and two annotations of this package.

An annotation has what only the member may say: the highest epoch that it has seen, and the duration of its Lease. The
field `leaseDurationSeconds` has the duration, too, for people and for members that know no annotations; a person may
edit it, and it decides nothing if the annotation is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: On each Lease and on the ring object, with the name of the ring.
LABEL: Final = "aioinformer/ring"
#: The annotations.
EPOCH: Final = "aioinformer/ring-epoch"
SECONDS: Final = "aioinformer/lease-duration"
#: Larger numbers are not those of a member: epochs begin with seconds since 1970, and systems that compare tokens may
#: have 64 bits, or those of a double.
_MOST_EPOCH: Final = 2**53
_MOST_SECONDS: Final = 2**31
#: Characters of a value that are shown.
_SHOWN: Final = 40
#: A duration of more than this many times the own one is named, and counts no further unless its member declares it.
LONG: Final = 10


@dataclass(slots=True)
class SeenLease:
    """A Lease of the ring as the last list had it, and since when it has not changed.

    Attributes:
        uid, version, holder: of the Lease.
        field: `leaseDurationSeconds`, in seconds; 0 for none.
        declared: the duration in the annotation, in seconds; 0 for none.
        epoch: in the annotation; -1 for none.
        renewed: `renewTime`, by the clock of the member.
        since: when this version was first seen.
        renewals: how often the member has renewed the Lease since it was first seen.
        unreadable: the annotation whose value this version does not know, and the value; "" for none.
        is_epoch_known: whether the epoch can be read, or there is none.
    """

    uid: str
    version: str
    holder: str
    field: int
    declared: int
    epoch: int
    renewed: str
    since: float
    renewals: int = 0
    unreadable: str = ""
    is_epoch_known: bool = True

    @classmethod
    def of(cls, lease: Mapping[str, Any], since: float, before: SeenLease | None = None) -> SeenLease:
        """Return what a Lease says; `before` is what it has said before this version."""
        metadata = lease["metadata"]
        spec = lease.get("spec") or {}
        annotations = metadata.get("annotations") or {}
        renewed = str(spec.get("renewTime") or "")
        renewals = 0 if before is None else before.renewals + (renewed != before.renewed)
        declared = _number(annotations.get(SECONDS), _MOST_SECONDS)
        epoch = _number(annotations.get(EPOCH), _MOST_EPOCH)
        unknown = [name for name, number in ((EPOCH, epoch), (SECONDS, declared)) if name in annotations and number < 0]
        return cls(
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
            holder=str(spec.get("holderIdentity") or ""),
            field=int(spec.get("leaseDurationSeconds") or 0),
            declared=max(0, declared),
            epoch=epoch,
            renewed=renewed,
            since=since,
            renewals=renewals,
            unreadable=f"{unknown[0]}: {str(annotations[unknown[0]])[:_SHOWN]!r}" if unknown else "",
            is_epoch_known=EPOCH not in unknown,
        )


def annotations_of(epoch: int, seconds: int) -> dict[str, str]:
    """Return the annotations of the Lease of a member that has seen this epoch."""
    return {EPOCH: str(epoch), SECONDS: str(seconds)}


def is_of_member(holder: str, name: str) -> bool:
    """Return whether the holder of a Lease is a process of the member that the Lease is named after."""
    return holder.startswith(f"{name}_")


def _number(text: object, most: int) -> int:
    """Return the number that an annotation has; -1 if it has none up to `most`."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > len(str(most)):
        return -1
    number = int(text)
    return number if number <= most else -1
