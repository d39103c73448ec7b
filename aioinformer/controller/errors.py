"""The errors of controllers, without those that a reconciler raises to say what follows."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
