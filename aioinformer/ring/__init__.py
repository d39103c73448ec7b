"""Rings: replicas that share the objects of a controller, by one object that says which replica owns which slot."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
