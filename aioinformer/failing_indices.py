"""What the state of an informer says of index functions that raise."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any

from aioinformer.logger import get_logger
from aioinformer.state import InformerState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.thread_safe_store import ThreadSafeStore

_log = get_logger(__name__)


class FailingIndices:
    """Watches the indices of one store.

    Args:
        cells: the store.
        name: of the informer, for the log.
    """

    def __init__(self, cells: ThreadSafeStore[Any], name: str) -> None:
        self._cells = cells
        self._name = name
        self._said = ""
        self._since = 0.0

    def check(self) -> bool:
        """Log it, and return True, if index functions began or ceased to raise, or raise for other objects."""
        if not self._said and not self._cells.any_failing():
            return False
        failing = str(self)
        if failing == self._said:
            return False
        level = logging.WARNING if failing else logging.INFO
        _log.log(level, "%s: %s", self._name, failing or "index functions raise for no object any more")
        self._said, self._since = failing, time()
        return True

    def judge(self, state: InformerState) -> InformerState:
        """Return the state, degraded if index functions raise: readers by index do not find all that is cached."""
        if not (state.healthy or state.phase is Phase.DEGRADED) or not self._cells.any_failing():
            return state
        reason = "; ".join(filter(None, (state.reason, str(self))))
        return replace(state, phase=Phase.DEGRADED, reason=reason, since=max(state.since, self._since))

    def __str__(self) -> str:
        return "; ".join(
            f"index {name} ({_name(function)}) raises for {count} object{'s' if count > 1 else ''} "
            f"({', '.join(keys)}{', …' if count > len(keys) else ''})"
            for name, (function, keys, count) in self._cells.failing().items()
        )


def _name(function: Callable[..., Any]) -> str:
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return f"{module}.{name}" if module and name else repr(function)
