"""Record Events, as in client-go's tools/record and tools/events."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
