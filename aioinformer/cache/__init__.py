"""Objects in memory: stores, indices, listers, and the forms in which objects are stored (`objects`)."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
