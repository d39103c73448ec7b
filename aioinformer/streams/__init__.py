"""Changes of a cache as streams: a log that all readers share, the readers, and their cursors."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
