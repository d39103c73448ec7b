"""Resource versions: opaque, but on Kubernetes' own servers numbers of one growing counter (KEP-5504)."""

from __future__ import annotations

from dataclasses import dataclass


def version_number(version: str) -> int:
    """Return a resource version as a number, or -1 if it is none and can only be compared for equality."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 32 else -1


def is_older(version: str, than: str) -> bool:
    """Return whether both are numbers and the first is the smaller one."""
    return 0 <= version_number(version) < version_number(than)


def covers(version: str, wanted: str) -> bool:
    """Return whether a cache at `version` contains `wanted`: equal, or later as far as both are numbers."""
    return version == wanted or 0 <= version_number(wanted) <= version_number(version)


@dataclass(slots=True)
class Position:
    """Up to which version a collection has been read, and what its versions can be trusted for.

    The versions of most servers grow from list to list, event to event, and bookmark to bookmark. Then a lower version
    of a list or bookmark is the sign of a server that was restored from a backup: the list that follows decides.
    Events may come in any order of versions: each object of some aggregated APIs has a counter of its own. An event
    with a lower version shows such a collection, whose versions are never compared again. Only a deletion may carry the
    version that the object had before, and shows nothing.

    Attributes:
        version: of the last list, event or bookmark; the next watch starts there. "" if that had none.
        ordered: no event, deletions aside, had a lower version than what came before it.
        lost: the server does not have `version`: the next list must not name it.
        doubt: what had a lower version, "list" or "bookmark", as long as no list has decided about it; "" if nothing.
        versioned: some list had a version.
    """

    version: str = ""
    ordered: bool = True
    lost: bool = False
    doubt: str = ""
    versioned: bool = False

    @property
    def held(self) -> str | None:
        """The version that a list may name: "" if there is none yet, None if the server does not have it."""
        return None if self.lost else self.version

    @property
    def comparable(self) -> bool:
        """Whether a lower version of a list would show that the server went back in time."""
        return self.ordered and version_number(self.version) > 0

    def is_ahead_of(self, version: str) -> bool:
        """Return whether a list or bookmark of this version shows that the server went back in time."""
        return self.ordered and version != "0" and is_older(version, self.version)

    def rewind(self, evidence: str) -> None:
        """Doubt the position: the next list is taken whatever its version is.

        Args:
            evidence: what had a lower version, "list" or "bookmark".
        """
        self.lost, self.doubt = True, evidence

    def take_list(self, version: str) -> None:
        """Move to the version of a list that is complete."""
        if self.doubt == "bookmark" and not self.is_ahead_of(version):
            self.ordered = False  # the server is where it was: its bookmarks do not follow its events
        self.version, self.lost, self.doubt = version, False, ""
        self.versioned = self.versioned or bool(version)
