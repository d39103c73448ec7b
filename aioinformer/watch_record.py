"""The record of the watches of one collection: how long they lasted, what they brought, and which were silent.

One watch that ends at once is an accident. The same again and again tells something: about the version it starts at, or
about a server that must not be asked so often. One watch that is silent for long may have lost its connection. If the
next one is silent, too, nothing happens in the collection, and it is *quiet*: so that one has no limit of silence.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A watch that lasts shorter than this is short: it is a failure unless it brought something.
SHORT_WATCH = 1.0
#: After a watch of this length, errors of its kind are the first of a row again.
LONG_WATCH = 10.0
#: After so many watches in a row that are refused, or end at once with nothing, only a list can help.
MAX_FRUITLESS_WATCHES = 4
#: A quiet watch that the server does not end is given up so many seconds after its own `timeoutSeconds`.
GRACE = 30.0


def starts_nowhere(version: str) -> bool:
    """Return whether a watch at this version begins with what is there, and not with what happened since."""
    return version in ("", "0")


@dataclass(slots=True)
class WatchRecord:
    """Counts watches, one after the other.

    Attributes:
        started_at: the version that the watch starts at.
        synthetic: it starts at no version, and nothing has come yet but the ADDED events that show what is there.
        opened_at: when it was asked for.
        deadline: when the server should have ended it, with some grace.
        events: how many came so far, bookmarks included.
        fruitless: how many watches in a row were refused, or brought nothing.
        broken_at: the version after which a line could not be read last.
        silent: a watch was silent for the idle time-out, and no event has come since. If the next watch is silent, too,
            the collection is quiet.
        server_lost: the server was not reached, or failed, and nothing has shown since that it is where it was.
    """

    started_at: str = ""
    synthetic: bool = False
    opened_at: float = 0.0
    deadline: float = 0.0
    events: int = 0
    fruitless: int = 0
    broken_at: str = ""
    silent: bool = False
    server_lost: bool = False

    def begin(self, version: str, now: float, timeout: float) -> None:
        """Start the record of a watch.

        Args:
            version: that it starts at.
            now: when it was asked for.
            timeout: its `timeoutSeconds`.
        """
        self.opened_at, self.deadline, self.events = now, now + timeout + GRACE, 0
        self.start_at(version)
        self.synthetic = starts_nowhere(version)

    def start_at(self, version: str) -> None:
        """Note the version that the watch starts at: of a streaming list, its own."""
        self.started_at, self.synthetic = version, False

    def is_short(self, now: float) -> bool:
        """Return whether the answer that ends now was suspiciously short."""
        return now - self.opened_at < SHORT_WATCH

    def is_long(self, now: float) -> bool:
        """Return whether the watch lasts long enough to forgive errors."""
        return now - self.opened_at >= LONG_WATCH

    def has_moved(self, version: str) -> bool:
        """Return whether the watch, now at this version, has brought anything new."""
        return version != self.started_at

    def count_events(self, events: int) -> bool:
        """Count events; return whether they end a silence."""
        self.events += events
        broken, self.silent = self.silent, False
        return broken

    def count_fruitless(self) -> bool:
        """Count a watch that was refused or brought nothing; return whether only a list can help."""
        self.fruitless += 1
        return self.fruitless >= MAX_FRUITLESS_WATCHES

    def count_break(self, version: str) -> bool:
        """Count a watch that broke after this version; return whether the one before it broke there, too."""
        again = version == self.broken_at
        self.broken_at = version
        return again

    def forget(self) -> None:
        """A list is complete: forget what the watches before it showed, but for their silence.

        Without versions each watch follows a list, and the one after a silent watch may be silent, too.
        """
        self.fruitless = 0
        self.server_lost = False
