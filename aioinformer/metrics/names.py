"""Names of informers: each is unique in a process, so that metrics of two informers never mix."""

from __future__ import annotations

import threading
from typing import Any, Self
from weakref import WeakSet, WeakValueDictionary

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource

_log = get_logger("aioinformer.metrics")

#: Names in use. A name is free again once nothing refers to it.
_names: WeakValueDictionary[str, InformerName] = WeakValueDictionary()
_lock = threading.Lock()


class InformerName:
    """A name for the informers of one part of a program, such as a factory. No two are equal at the same time.

    Release the name at the end, or use it as a context manager.

    Args:
        name: any text but "" and names in use.

    Raises:
        UsageError: the name is "" or in use.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise UsageError('name="": give the informers a name that says what they are for')
        self.name = name
        self._released = False
        self._reserved: set[tuple[str, str]] = set()
        self._derived: WeakSet[InformerNameAndResource] = WeakSet()
        with _lock:
            if name in _names:
                raise UsageError(f"name={name!r} is in use: choose another, or release the one that has it")
            _names[name] = self

    @classmethod
    def unused(cls, name: str = "default") -> InformerName:
        """Return a name that is not in use: `name` itself, or the first free one of `name-2`, `name-3`, …"""
        number = 1
        while True:
            try:
                return cls(name if number == 1 else f"{name}-{number}")
            except UsageError:
                if not name:
                    raise
                number += 1

    def with_resource(self, resource: Resource[Any], scope: str = "") -> InformerNameAndResource:
        """Return the identity of an informer of a resource.

        The first identity of each resource and scope is reserved. Later identities are not reserved while the first one
        exists. Their informers have no metrics.

        Args:
            resource: the resource of the informer.
            scope: the part of the collection that it watches, for people; "" for the part that all informers of this
                name watch.
        """
        key = (resource.gvr, scope)
        reserved = not self._released and key not in self._reserved
        if reserved:
            self._reserved.add(key)
        else:
            _log.warning(
                "%s of %s has no metrics: another informer of this name and resource has them", resource.gvr, self.name
            )
        identity = InformerNameAndResource(self, resource, reserved, scope)
        self._derived.add(identity)
        return identity

    def release_resource(self, resource: Resource[Any], scope: str = "") -> None:
        """Let the next identity of a resource and scope be reserved. The one that is reserved calls it at its end."""
        self._reserved.discard((resource.gvr, scope))

    def release(self) -> None:
        """Release the name and all identities that were made from it. May be repeated."""
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


class InformerNameAndResource:
    """Identifies one of the informers of a name; made by `InformerName.with_resource`.

    Attributes:
        name: the text of the name.
        resource: the resource of the informer.
        reserved: whether no other informer has this identity. Metrics are kept only then.
        scope: the part of the collection that it watches, "" for the part that all informers of the name watch.
    """

    def __init__(self, owner: InformerName, resource: Resource[Any], reserved: bool, scope: str = "") -> None:
        self.name = owner.name
        self.resource = resource
        self.reserved = reserved
        self.scope = scope
        self._owner = owner

    def release(self) -> None:
        """Let another informer of this name reserve resource and scope. May be repeated."""
        if self.reserved:
            self.reserved = False
            self._owner.release_resource(self.resource, self.scope)

    def release_name(self) -> None:
        """Release the name that made this identity, and all its identities."""
        self._owner.release()

    def __repr__(self) -> str:
        scope = f"?{self.scope}" if self.scope else ""
        return f"<{self.name}: {self.resource.gvr}{scope}{'' if self.reserved else ', not reserved'}>"


def name_for(name: InformerName | str | None, metrics: object) -> InformerName | None:
    """Return the name for the informers of a factory, None if it needs none.

    Args:
        name: what the user passed. A text becomes a name that is not in use.
        metrics: what the user passed. With metrics and without a name, the name is `default`, `default-2`, …
    """
    if isinstance(name, InformerName):
        return name
    if name is None:
        return InformerName.unused() if metrics is not None else None
    return InformerName.unused(name)
