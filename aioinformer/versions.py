"""Resource versions: opaque to most, but on Kubernetes' own servers numbers of one ever-growing counter (KEP-5504)."""

from __future__ import annotations


def version_number(version: str) -> int:
    """A resource version as a number, or -1 if it is none and can only be compared for equality."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 32 else -1


def is_older(version: str, than: str) -> bool:
    """Whether both are numbers and the first is the smaller one."""
    return 0 <= version_number(version) < version_number(than)


def covers(version: str, wanted: str) -> bool:
    """Whether what is at `version` has seen `wanted`: equal, or later as far as both are numbers."""
    return version == wanted or 0 <= version_number(wanted) <= version_number(version)
