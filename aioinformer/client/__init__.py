"""Read and write objects directly, without a cache: a typed client over any transport."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.client.bodies import Status
    from aioinformer.client.client import Client
    from aioinformer.client.conditions import (
        Condition,
        get_condition,
        is_condition_true,
        remove_condition,
        set_condition,
    )
    from aioinformer.client.lists import Listing, Page
    from aioinformer.client.owners import (
        add_finalizer,
        controller_of,
        has_finalizer,
        remove_finalizer,
        set_controller_reference,
    )
    from aioinformer.client.patches import merge_patch
    from aioinformer.client.requests import Impersonation, ReadOptions, WriteOptions
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.client.subresources import Subresource

__all__ = [
    "Client",
    "Condition",
    "Impersonation",
    "Listing",
    "Page",
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
            "bodies": "Status",
            "client": "Client",
            "conditions": "Condition get_condition is_condition_true remove_condition set_condition",
            "lists": "Listing Page",
            "owners": "add_finalizer controller_of has_finalizer remove_finalizer set_controller_reference",
            "patches": "merge_patch",
            "requests": "Impersonation ReadOptions WriteOptions",
            "resource_client": "ResourceClient",
            "subresources": "Subresource",
        },
    )
