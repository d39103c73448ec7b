"""Read and write objects directly, without a cache: a typed client over any transport."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.client.bodies import Status
    from aioinformer.client.client import Client
    from aioinformer.client.lists import Listing, Page
    from aioinformer.client.requests import Impersonation, ReadOptions, WriteOptions
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.client.subresources import Subresource

__all__ = [
    "Client",
    "Impersonation",
    "Listing",
    "Page",
    "ReadOptions",
    "ResourceClient",
    "Status",
    "Subresource",
    "WriteOptions",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "bodies": "Status",
            "client": "Client",
            "lists": "Listing Page",
            "requests": "Impersonation ReadOptions WriteOptions",
            "resource_client": "ResourceClient",
            "subresources": "Subresource",
        },
    )
