"""Leader election with Leases, as in client-go's tools/leaderelection."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
