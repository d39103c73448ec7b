"""Who an informer is: the name of its program, and its resource. What is told of it to others goes by that.

A name is one thing in a process, and a name has one informer of a resource. So whatever counts by them (metrics, for
one) never adds up what is of two informers, and has as many lines as there are informers, not as there are objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from aioinformer.errors import UsageError
from aioinformer.logger import get_logger

if TYPE_CHECKING:
    from aioinformer.resources import Resource

_log = get_logger(__name__)

_names: set[str] = set()


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
        if name in _names:
            raise UsageError(f"name={name!r} is in use: choose another, or release it where it is used")
        _names.add(name)
        self.name = name
        self._released = False
        self._reserved: set[str] = set()
        self._derived: WeakSet[InformerNameAndResource] = WeakSet()

    def with_resource(self, resource: Resource[Any]) -> InformerNameAndResource:
        """The identity of an informer of a resource. The first one of each is reserved, and no other while it is."""
        reserved = not self._released and resource.gvr not in self._reserved
        if reserved:
            self._reserved.add(resource.gvr)
        else:
            _log.warning("%s of %s is not reserved: it has no metrics", resource.gvr, self.name)
        identity = InformerNameAndResource(self, resource, reserved)
        self._derived.add(identity)
        return identity

    def release(self) -> None:
        """Frees the name, and all identities derived from it: they are not reserved any more. May be repeated."""
        if not self._released:
            self._released = True
            _names.discard(self.name)
        for identity in self._derived:
            identity.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<InformerName {self.name}>"


class InformerNameAndResource:
    """One informer among those of a name; made by `InformerName.with_resource`.

    Attributes:
        name: as it was given.
        resource: what the informer is of.
        reserved: whether it stands for this informer alone; what is told of others would mix with it.
    """

    def __init__(self, owner: InformerName, resource: Resource[Any], reserved: bool) -> None:
        self.name = owner.name
        self.resource = resource
        self.reserved = reserved
        self._owner = owner

    def release(self) -> None:
        """Lets another informer of the name have the resource. May be repeated."""
        if self.reserved:
            self.reserved = False
            self._owner._reserved.discard(self.resource.gvr)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.resource.gvr}{'' if self.reserved else ', not reserved'}>"
