"""CustomResourceDefinitions from classes: one declaration makes the resource, its decoder and the definition."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(
    __name__,
    {
        "declaration": "Column CustomResource Scale custom_resource",
        "markers": (
            "EmbeddedObject IntOrString KEEP_UNKNOWN LIST_ATOMIC LIST_SET MAP_ATOMIC Quantity list_map rule rules"
        ),
    },
)
