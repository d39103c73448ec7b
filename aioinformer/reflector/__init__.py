"""List and watch a collection, and recover from failures: a protocol without I/O, and the task that carries it out."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
