"""Resources of the API: their keys, versions, selectors and references, the built-in catalog, and discovery."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.resources.catalog import BUILTIN_RESOURCES as BUILTIN_RESOURCES
    from aioinformer.resources.discovery import Discovery as Discovery
    from aioinformer.resources.keys import DeletedFinalStateUnknown as DeletedFinalStateUnknown
    from aioinformer.resources.keys import ExplicitKey as ExplicitKey
    from aioinformer.resources.keys import ObjectName as ObjectName
    from aioinformer.resources.keys import (
        deletion_handling_meta_namespace_key_func as deletion_handling_meta_namespace_key_func,
    )
    from aioinformer.resources.keys import deletion_handling_object_name as deletion_handling_object_name
    from aioinformer.resources.keys import meta_namespace_index_func as meta_namespace_index_func
    from aioinformer.resources.keys import meta_namespace_key_func as meta_namespace_key_func
    from aioinformer.resources.keys import object_name as object_name
    from aioinformer.resources.keys import split_meta_namespace_key as split_meta_namespace_key
    from aioinformer.resources.references import ObjectReference as ObjectReference
    from aioinformer.resources.references import get_partial_reference as get_partial_reference
    from aioinformer.resources.references import get_reference as get_reference
    from aioinformer.resources.resource import Resource as Resource
    from aioinformer.resources.restmapper import DiscoveryIncomplete as DiscoveryIncomplete
    from aioinformer.resources.restmapper import UnknownResource as UnknownResource
    from aioinformer.resources.selectors import FieldSelector as FieldSelector
    from aioinformer.resources.selectors import LabelSelector as LabelSelector
    from aioinformer.resources.selectors import parse_field_selector as parse_field_selector
    from aioinformer.resources.selectors import parse_label_selector as parse_label_selector
else:  # a type checker must not accept misspelt names
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
