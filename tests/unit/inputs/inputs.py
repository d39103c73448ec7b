"""What the inputs of a controller have enqueued, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.controller import Cause
    from aioinformer.resources.keys import ObjectName


class Requests:
    """The function `enqueue` of inputs. It records "shop/web: configmaps shop/a updated", or "low shop/web: …"."""

    def __init__(self) -> None:
        self._new: list[str] = []

    def __call__(self, key: ObjectName, cause: Cause, priority: int) -> None:
        self._new.append(f"{'low ' if priority < 0 else ''}{key}: {cause}")

    async def new(self) -> list[str]:
        """Wait until everything has happened that can happen now; return what was enqueued since the last call."""
        await settled()
        return self.taken()

    def taken(self) -> list[str]:
        """Return what was enqueued since the last call."""
        new, self._new = self._new, []
        return new


def owner(name: str, uid: str, **members: Any) -> dict[str, Any]:
    """Return the owner reference to a widget that is the controller."""
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
    return reference | members


def owned_by(*references: dict[str, Any]) -> dict[str, Any]:
    """Return metadata with owner references."""
    return {"ownerReferences": list(references)}
