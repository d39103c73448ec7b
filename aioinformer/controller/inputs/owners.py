"""Owner references of objects of any form, and the index of cached objects by the uids of their owners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from aioinformer.cache.objects.views import View
from aioinformer.controller.inputs.content import json_of
from aioinformer.errors import UsageError
from aioinformer.resources.keys import metadata_of

#: The name of the index of objects by their owners. Its values are the uids of controllers, and "other:" with the uids
#: of other owners.
OWNER_INDEX: Final = "owner"


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = False


class _Meta(msgspec.Struct, rename="camel", gc=False):
    owner_references: list[OwnerReference] | None = None


class _Owned(msgspec.Struct, gc=False):
    metadata: _Meta


_decode = msgspec.json.Decoder(_Owned).decode


def owner_references(obj: Any) -> list[OwnerReference]:
    """Return the owner references of an object of any form.

    Raises:
        UsageError: the class of the object has no owner references.
        Exception: they are not those of an API object.
    """
    if not isinstance(obj, (View, Mapping)):
        metadata = metadata_of(obj)
        if not (hasattr(metadata, "owner_references") or hasattr(metadata, "ownerReferences")):
            raise UsageError(f"owners cannot be found: {type(metadata).__name__} has no ownerReferences; add them")
    raw = json_of(obj)
    if b'"ownerReferences"' not in raw:  # of an object of 5.8 KB, the search takes 3 us, and decoding takes 9 us
        return []
    return _decode(raw).metadata.owner_references or []


def owner_uids(obj: Any) -> list[str]:
    """Return the values of an object in the index of owners."""
    return [each.uid if each.controller else f"other:{each.uid}" for each in owner_references(obj) if each.uid]


def controllers(raw: bytes | None) -> list[OwnerReference]:
    """Return the reference to the controller in the JSON of an object or a body; nothing if there is none."""
    try:
        references = _decode(raw or b"{}").metadata.owner_references or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return [each for each in references if each.controller]
