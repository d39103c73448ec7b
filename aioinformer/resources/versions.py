"""Resource versions: opaque in general, but numbers of one growing counter on Kubernetes' own servers (KEP-5504)."""

from __future__ import annotations

import msgspec


def version_number(version: str) -> int:
    """Return a resource version as a number, -1 if it is not a number and can only be compared for equality."""
    if version.isascii() and version.isdigit() and len(version) < 32:
        return int(version)
    return -1


def is_older(version: str, than: str) -> bool:
    """Return whether both versions are numbers, and `version` is smaller."""
    return 0 <= version_number(version) < version_number(than)


def covers(version: str, wanted: str) -> bool:
    """Return whether a cache at `version` includes `wanted`: they are equal, or numbers, and `wanted` is smaller."""
    return version == wanted or 0 <= version_number(wanted) <= version_number(version)


class Position(msgspec.Struct):
    """The version up to which a collection has been read, and whether its versions can be compared.

    On most servers, versions grow from list to list, event to event, and bookmark to bookmark. There, a list or
    bookmark with a lower version means that the server may have been restored from a backup, and the next list decides
    that. Some aggregated APIs count versions for each object, so that events may have them in any order. An event with
    a lower version indicates such an API, and the versions of its collection are never compared again. A deletion
    indicates nothing, because it may have the version that the object had before.

    Attributes:
        version: the version of the last list, event or bookmark, where the next watch starts; "" if it had none.
        ordered: whether no event except deletions had a lower version than the one before it.
        lost: whether the server does not have `version`, so that the next list must not name it.
        doubt: "list" or "bookmark" if one had a lower version and no list has decided yet, otherwise "".
        versioned: whether any list had a version.
    """

    version: str = ""
    ordered: bool = True
    lost: bool = False
    doubt: str = ""
    versioned: bool = False

    @property
    def held(self) -> str | None:
        """The version that a list may request: "" if there is none yet, None if the server does not have it."""
        return None if self.lost else self.version

    @property
    def comparable(self) -> bool:
        """Whether a list with a lower version would show that the server was restored from a backup."""
        return self.ordered and version_number(self.version) > 0

    def is_ahead_of(self, version: str) -> bool:
        """Return whether a list or bookmark of this version shows that the server was restored from a backup."""
        return self.ordered and version != "0" and is_older(version, self.version)

    def rewind(self, evidence: str) -> None:
        """Mark the version as lost: the next list is accepted with any version.

        Args:
            evidence: "list" or "bookmark", the one that had a lower version.
        """
        self.lost = True
        self.doubt = evidence

    def take_list(self, version: str) -> None:
        """Set the version to that of a complete list."""
        if self.doubt == "bookmark" and not self.is_ahead_of(version):
            self.ordered = False  # the server was not restored: its bookmarks do not follow the order of its events
        self.version = version
        self.lost = False
        self.doubt = ""
        self.versioned = self.versioned or bool(version)
