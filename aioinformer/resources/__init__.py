"""Resources of the API: their keys, versions, selectors and references, the built-in catalog, and discovery."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
