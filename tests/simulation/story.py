"""What happened in a simulation, line by line, for a person who wants to know why it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: The clock of a simulation shows this at its beginning.
START = 1000.0


class Violation(NamedTuple):
    """What must not be, and was.

    Attributes:
        invariant: its short name.
        what: what was seen.
    """

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


class Story:
    """Writes down who did what when. Words are made only when somebody reads it.

    Args:
        clock: virtual seconds.

    Attributes:
        violation: the first one; what comes after it may follow from it.
        on_violation: called once.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lines: list[tuple[float, str, str, tuple[object, ...]]] = []
        self.violation: Violation | None = None
        self.on_violation: Callable[[], object] = lambda: None

    def tell(self, who: str, what: str, *details: object) -> None:
        """One line; `what` is a format for `details`."""
        self._lines.append((self._clock() - START, who, what, details))

    def violate(self, invariant: str, what: str) -> None:
        """An invariant does not hold."""
        if self.violation is None:
            self.violation = Violation(invariant, what)
            self.tell("VIOLATED", "%s", self.violation)
            self.on_violation()

    def render(self) -> str:
        """The whole story."""
        return "\n".join(f"{at:10.3f} s  {who:<10} {what % details}" for at, who, what, details in self._lines)
