"""Replicas of a version that writes no annotations, as the simulation runs them: with the code of that version."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any

import msgspec

from aioinformer.ring import member, table
from tests.support.former import COMMIT, former_file
from tests.unit.ring.simulation import TIMES, Version


class Former(Version):
    """That version, for `World`."""

    def member(self, name: str, holder: str, slots: int) -> Any:
        first = former_module("table").Ring((former_module("table").Slot(),) * slots)
        return former_module("member").Member(name, holder, TIMES, first)

    def annotations(self, member: Any) -> dict[str, str]:
        return {}

    def current(self, request: Any) -> Any:
        if isinstance(request, str):
            return request
        values = list(request)
        if type(request).__name__ == "WriteRing":
            values[0] = msgspec.convert(msgspec.to_builtins(values[0]), table.Ring)
        return getattr(member, type(request).__name__)(*values)


@cache
def former_module(name: str) -> Any:
    """Return a module of the ring, with the modules of the ring that it imports; all others are the present ones."""
    full = f"former_ring_{name}"
    source = former_file(f"aioinformer/ring/{name}.py").replace("aioinformer.ring.", "former_ring_")
    if name == "member":
        former_module("table")
    module = ModuleType(full)
    sys.modules[full] = module
    exec(compile(source, f"{COMMIT}:{name}.py", "exec"), module.__dict__)
    return module
