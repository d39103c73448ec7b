"""Writes that caches may not have yet: those of this process, which are recorded, and those of others.

Controllers wait for their own between the runs of a key, and for those of a former leader before they work.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
