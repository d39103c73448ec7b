"""Read and write objects directly, without a cache: a typed client over any transport."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.client.bodies import RawAnswer as RawAnswer
    from aioinformer.client.bodies import Status as Status
    from aioinformer.client.changes.applied import Applied as Applied
    from aioinformer.client.changes.conditions import Condition as Condition
    from aioinformer.client.changes.conditions import get_condition as get_condition
    from aioinformer.client.changes.conditions import is_condition_true as is_condition_true
    from aioinformer.client.changes.conditions import remove_condition as remove_condition
    from aioinformer.client.changes.conditions import set_condition as set_condition
    from aioinformer.client.changes.owners import add_finalizer as add_finalizer
    from aioinformer.client.changes.owners import controller_of as controller_of
    from aioinformer.client.changes.owners import has_finalizer as has_finalizer
    from aioinformer.client.changes.owners import remove_finalizer as remove_finalizer
    from aioinformer.client.changes.owners import set_controller_reference as set_controller_reference
    from aioinformer.client.changes.patches import merge_patch as merge_patch
    from aioinformer.client.client import Client as Client
    from aioinformer.client.lists import Listing as Listing
    from aioinformer.client.lists import Page as Page
    from aioinformer.client.requests import Impersonation as Impersonation
    from aioinformer.client.requests import ReadOptions as ReadOptions
    from aioinformer.client.requests import WriteOptions as WriteOptions
    from aioinformer.client.resource_client import ResourceClient as ResourceClient
    from aioinformer.client.subresources import Subresource as Subresource
else:  # a type checker must not accept misspelt names
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
