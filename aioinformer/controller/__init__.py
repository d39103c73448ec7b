"""Controllers: reconcilers that are awaited for each object that changed, with retries, own writes and leadership."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
