"""Read and write objects directly, without a cache: a typed client over any transport."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
