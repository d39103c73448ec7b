"""The log of a simulation, to find out why it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: The clock of a simulation at its start.
START = 1000.0


class Violation(NamedTuple):
    """A violation of an invariant.

    Attributes:
        invariant: its short name.
        what: describes the violation.
    """

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


class Story:
    """Logs actions with their times; lines are formatted only when they are read.

    Args:
        clock: returns virtual seconds.

    Attributes:
        violation: the first violation; later ones may follow from it.
        on_violation: called at the first violation.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lines: list[tuple[float, str, str, tuple[object, ...]]] = []
        self.violation: Violation | None = None
        self.on_violation: Callable[[], object] = lambda: None

    def tell(self, who: str, what: str, *details: object) -> None:
        """Log a line; `what` is a format for `details`."""
        self._lines.append((self._clock() - START, who, what, details))

    def violate(self, invariant: str, what: str) -> None:
        """Log a violation."""
        if self.violation is None:
            self.violation = Violation(invariant, what)
            self.tell("VIOLATED", "%s", self.violation)
            self.on_violation()

    def render(self) -> str:
        """Return the log as text."""
        return "\n".join(f"{at:10.3f} s  {who:<10} {what % details}" for at, who, what, details in self._lines)
