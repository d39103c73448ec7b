"""Admission webhooks: async functions that validate objects, or set their defaults, before the server stores them."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
