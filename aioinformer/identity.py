"""Who an informer is: the name of its program, and its resource. What is told of it to others goes by that.

A name is one thing in a process, and a name has one informer of a resource and scope. So whatever counts by them
(metrics, for one) never adds up what is of two informers, and has as many lines as there are informers, not as there
are objects. Owners with metrics and without a name are called `default`, `default-2`, and so on.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet, WeakValueDictionary

from aioinformer.errors import UsageError
from aioinformer.logger import get_logger

if TYPE_CHECKING:
    from aioinformer.resources import Resource

_log = get_logger(__name__)

#: Names in use. A name is free again once nothing refers to it.
_names: WeakValueDictionary[str, InformerName] = WeakValueDictionary()
_lock = threading.Lock()


class InformerName:
    """A name for the informers of one part of a program, such as a factory. To be released, or used as a block.

    Args:
        name: any but "", and none that is in use.

    Raises:
        UsageError: it is "", or in use.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise UsageError('name="": give informers a name that says what they are for')
        self.name = name
        self._released = False
        self._reserved: set[tuple[str, str]] = set()
        self._derived: WeakSet[InformerNameAndResource] = WeakSet()
        with _lock:
            if name in _names:
                raise UsageError(f"name={name!r} is in use: choose another, or release it where it is used")
            _names[name] = self

    @classmethod
    def unused(cls, name: str = "default") -> InformerName:
        """Return a name that is not in use: this one, or else the first of `name-2`, `name-3`, …"""
        number = 1
        while True:
            try:
                return cls(name if number == 1 else f"{name}-{number}")
            except UsageError:
                if not name:
                    raise
                number += 1

    def with_resource(self, resource: Resource[Any], scope: str = "") -> InformerNameAndResource:
        """The identity of an informer of a resource. The first one of each is reserved, and no other while it is.

        Args:
            resource: what the informer is of.
            scope: what part of the collection it follows, if that is not what all informers of the name do; for people.
        """
        key = (resource.gvr, scope)
        reserved = not self._released and key not in self._reserved
        if reserved:
            self._reserved.add(key)
        else:
            _log.warning("%s of %s is not reserved: it has no metrics", resource.gvr, self.name)
        identity = InformerNameAndResource(self, resource, reserved, scope)
        self._derived.add(identity)
        return identity

    def release(self) -> None:
        """Frees the name, and all identities derived from it: they are not reserved any more. May be repeated."""
        if not self._released:
            self._released = True
            with _lock:
                if _names.get(self.name) is self:
                    del _names[self.name]
        for identity in self._derived:
            identity.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<InformerName {self.name}>"


def name_for(name: InformerName | str | None, metrics: object) -> InformerName | None:
    """Return the name of an owner of informers: as given, or one that is not in use.

    Args:
        name: as given; None for none.
        metrics: as given. With metrics and without a name it is `default`, or `default-2` and so on.
    """
    if isinstance(name, InformerName):
        return name
    if name is None:
        return InformerName.unused() if metrics is not None else None
    return InformerName.unused(name)


def identity_for(
    name: InformerName | None, metrics: object, resource: Resource[Any], scope: str
) -> InformerNameAndResource | None:
    """Return the identity of an informer of an owner; None if nothing is counted.

    Args:
        name: of the owner.
        metrics: as the owner was given; without them nothing is counted.
        resource: what the informer is of.
        scope: as for `with_resource`.
    """
    return name.with_resource(resource, scope) if name is not None and metrics is not None else None


class InformerNameAndResource:
    """One informer among those of a name; made by `InformerName.with_resource`.

    Attributes:
        name: as it was given.
        resource: what the informer is of.
        reserved: whether it stands for this informer alone; what is told of others would mix with it.
        scope: what part of the collection it follows, "" for what all informers of the name do.
    """

    def __init__(self, owner: InformerName, resource: Resource[Any], reserved: bool, scope: str = "") -> None:
        self.name = owner.name
        self.resource = resource
        self.reserved = reserved
        self.scope = scope
        self._owner = owner

    def release(self) -> None:
        """Lets another informer of the name have the resource. May be repeated."""
        if self.reserved:
            self.reserved = False
            self._owner._reserved.discard((self.resource.gvr, self.scope))

    def release_name(self) -> None:
        """Release the name that this is derived from, and all that is derived from it."""
        self._owner.release()

    def __repr__(self) -> str:
        scope = f"?{self.scope}" if self.scope else ""
        return f"<{self.name}: {self.resource.gvr}{scope}{'' if self.reserved else ', not reserved'}>"
