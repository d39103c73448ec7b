"""Test controllers in virtual time: each order of events, crashes between two writes, stale caches, lost answers.

Each name is imported on first access: pytest loads the plugin in every run, and most runs use no harness.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
