"""Resources of the API: their keys, versions, selectors and references, the built-in catalog, and discovery."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.resources.catalog import BUILTIN_RESOURCES
    from aioinformer.resources.discovery import Discovery
    from aioinformer.resources.keys import (
        DeletedFinalStateUnknown,
        ExplicitKey,
        ObjectName,
        deletion_handling_meta_namespace_key_func,
        deletion_handling_object_name,
        meta_namespace_index_func,
        meta_namespace_key_func,
        object_name,
        split_meta_namespace_key,
    )
    from aioinformer.resources.references import ObjectReference, get_partial_reference, get_reference
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.restmapper import DiscoveryIncomplete, UnknownResource
    from aioinformer.resources.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector

__all__ = [
    "BUILTIN_RESOURCES",
    "DeletedFinalStateUnknown",
    "Discovery",
    "DiscoveryIncomplete",
    "ExplicitKey",
    "FieldSelector",
    "LabelSelector",
    "ObjectName",
    "ObjectReference",
    "Resource",
    "UnknownResource",
    "deletion_handling_meta_namespace_key_func",
    "deletion_handling_object_name",
    "get_partial_reference",
    "get_reference",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "object_name",
    "parse_field_selector",
    "parse_label_selector",
    "split_meta_namespace_key",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "catalog": "BUILTIN_RESOURCES",
            "discovery": "Discovery",
            "keys": (
                "DeletedFinalStateUnknown ExplicitKey ObjectName deletion_handling_meta_namespace_key_func "
                "deletion_handling_object_name meta_namespace_index_func meta_namespace_key_func object_name "
                "split_meta_namespace_key"
            ),
            "references": "ObjectReference get_partial_reference get_reference",
            "resource": "Resource",
            "restmapper": "DiscoveryIncomplete UnknownResource",
            "selectors": "FieldSelector LabelSelector parse_field_selector parse_label_selector",
        },
    )
