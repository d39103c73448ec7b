"""A counter of calls, bytecodes and turns of the event loop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType


class Counter:
    """Counts calls of Python functions, bytecodes, and turns of the event loop while it is entered."""

    def __init__(self, *, bytecodes: bool) -> None:
        self.calls = self.bytecodes = self.turns = 0
        self._bytecodes = bytecodes

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            self.calls += 1
            self.turns += frame.f_code.co_name == "_run_once"
            frame.f_trace_lines = False
            frame.f_trace_opcodes = self._bytecodes
            return self._trace if self._bytecodes else None
        if event == "opcode":
            self.bytecodes += 1
        return self._trace
