"""Read and write objects directly, without a cache: a typed client over any transport."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.client.bodies import RawAnswer, Status
    from aioinformer.client.changes.applied import Applied
    from aioinformer.client.changes.conditions import (
        Condition,
        get_condition,
        is_condition_true,
        remove_condition,
        set_condition,
    )
    from aioinformer.client.changes.owners import (
        add_finalizer,
        controller_of,
        has_finalizer,
        remove_finalizer,
        set_controller_reference,
    )
    from aioinformer.client.changes.patches import merge_patch
    from aioinformer.client.client import Client
    from aioinformer.client.lists import Listing, Page
    from aioinformer.client.requests import Impersonation, ReadOptions, WriteOptions
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.client.subresources import Subresource

__all__ = [
    "Applied",
    "Client",
    "Condition",
    "Impersonation",
    "Listing",
    "Page",
    "RawAnswer",
    "ReadOptions",
    "ResourceClient",
    "Status",
    "Subresource",
    "WriteOptions",
    "add_finalizer",
    "controller_of",
    "get_condition",
    "has_finalizer",
    "is_condition_true",
    "merge_patch",
    "remove_condition",
    "remove_finalizer",
    "set_condition",
    "set_controller_reference",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "bodies": "RawAnswer Status",
            "client": "Client",
            "changes.applied": "Applied",
            "changes.conditions": "Condition get_condition is_condition_true remove_condition set_condition",
            "lists": "Listing Page",
            "changes.owners": "add_finalizer controller_of has_finalizer remove_finalizer set_controller_reference",
            "changes.patches": "merge_patch",
            "requests": "Impersonation ReadOptions WriteOptions",
            "resource_client": "ResourceClient",
            "subresources": "Subresource",
        },
    )
