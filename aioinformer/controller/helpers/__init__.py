"""What most reconcilers write: finalizers, the status and sets of objects."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
