"""`UnchangedApplies`: applies that the server has answered without changing anything."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import Any, Final, NamedTuple

from aioinformer.errors import KeyFuncError
from aioinformer.resources.keys import metadata_field, metadata_of

#: Of how many objects, and for how many seconds, to know the last apply that has changed nothing.
_OBJECTS: Final = 4096
_SECONDS: Final = 600.0


class Attempt(NamedTuple):
    """An apply to one version of an object.

    Attributes:
        target: the uid of the object, the field manager and the subresource.
        version: of the object.
        digest: of the configuration, and of what else is sent.
    """

    target: tuple[str, str, str]
    version: str
    digest: bytes


class UnchangedApplies:
    """Knows which applies have changed nothing, so that they are not sent in each reconciliation.

    The managed fields leave doubts: a null in a field with a default, for example, may change it or not. The answer
    tells: if the version is that of the cached object, the same configuration changes nothing in this version. This is
    known for ten minutes, since another version of the server or an admission function may answer otherwise.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], tuple[Attempt, float]] = OrderedDict()

    def includes(self, attempt: Attempt | None, now: float) -> bool:
        """Return whether exactly this apply has changed nothing in the last ten minutes."""
        known = None if attempt is None else self._known.get(attempt.target)
        return known is not None and known[0] == attempt and now < known[1]

    def note(self, attempt: Attempt | None, answer: Any, now: float) -> None:
        """Note the answer to an apply, which is the object as it is stored."""
        if attempt is None:
            return
        self._known.pop(attempt.target, None)
        if _identity(answer) == (attempt.target[0], attempt.version):
            self._known[attempt.target] = attempt, now + _SECONDS
            if len(self._known) > _OBJECTS:
                self._known.popitem(last=False)


def attempt_of(cached: Any, manager: str, subresource: str, desired: bytes, *, force: bool) -> Attempt | None:
    """Return an apply of a configuration to a cached object; None if its uid or version is not known."""
    uid, version = _identity(cached)
    if not uid or not version:
        return None
    return Attempt((uid, manager, subresource), version, sha256(desired + b"force" * force).digest())


def _identity(obj: Any) -> tuple[Any, Any]:
    """Return the uid and the version of an object, None for those that a class of the user lacks."""
    try:
        metadata = metadata_of(obj)
    except KeyFuncError:
        return None, None
    return metadata_field(metadata, "uid", "uid"), metadata_field(metadata, "resource_version", "resourceVersion")
