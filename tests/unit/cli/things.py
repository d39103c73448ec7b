"""Objects of a declared class, as the command line receives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Metadata:
    name: str
    namespace: str | None
    uid: str
    resource_version: str


@dataclass
class Thing:
    metadata: Metadata
    phase: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "Thing", "status": {"phase": self.phase}}


def thing(version: str, phase: str = "", *, name: str = "a", namespace: str | None = "ns", uid: str = "u") -> Thing:
    return Thing(Metadata(name, namespace, uid, version), phase)
