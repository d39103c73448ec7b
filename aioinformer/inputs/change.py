"""Changes: what an input makes of a notification of an informer, and what predicates decide about."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from aioinformer.cache.objects.views import View
from aioinformer.errors import KeyFuncError
from aioinformer.resources.keys import metadata_field, metadata_of

ChangeTrigger: TypeAlias = Literal["initial", "added", "updated", "deleted", "resync"]


class Change(msgspec.Struct, frozen=True):
    """One change of one object, or a resync of it.

    Attributes:
        trigger: what happened.
        old: the state before an update, or the last known state of a deleted object, or None.
        new: the present state; None for a deleted object.
        initial: whether the object belongs to the first list.
        whole: False if the storage tier of the informer drops members of objects. Then a member that is absent in both
            states may have changed.
    """

    trigger: ChangeTrigger
    old: Any = None
    new: Any = None
    initial: bool = False
    whole: bool = True


def uid_of(obj: Any) -> str:
    """Return the uid of an object of any form; "" if it has none."""
    if isinstance(obj, View):
        return obj._record.uid
    try:
        return metadata_field(metadata_of(obj), "uid", "uid") or ""
    except KeyFuncError:
        return ""
