"""One shared informer: its controller loop, its cache, its handlers, and its state."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
