"""Why reconcilers run, and the priorities of requests."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

#: The priority of requests from initial lists and resyncs: changes come first.
LOW_PRIORITY: Final = -100
NORMAL_PRIORITY: Final = 0

#: How a request came about. "initial" and "resync" say nothing about a change.
Trigger: TypeAlias = Literal[
    "initial", "added", "updated", "deleted", "resync", "source", "result", "retry", "requested", "takeover"
]


class Cause(msgspec.Struct, frozen=True):
    """One reason why a reconciler runs.

    Attributes:
        trigger: what happened. "result" is a `Result` of an earlier run, "requested" a call of `enqueue`, "takeover"
            the begin of a term of leadership, or of the work in a slot of a ring.
        resource: `group_resource` of the object that changed, such as "configmaps"; the name of a source.
        key: of the object that changed; "" if there is none.
        fields: paths of fields that differ, if they were compared.
    """

    trigger: Trigger
    resource: str = ""
    key: str = ""
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = " ".join(filter(None, (self.resource, self.key)))
        fields = f" ({', '.join(self.fields)})" if self.fields else ""
        return f"{what} {self.trigger}{fields}" if what else f"{self.trigger}{fields}"
