"""CustomResourceDefinitions from classes: one declaration makes the resource, its decoder and the definition."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
