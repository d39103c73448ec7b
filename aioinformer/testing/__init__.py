"""An API server in your own process, for tests of Kubernetes clients and controllers: real HTTP, and faults on demand.

Each name is imported on first access: pytest loads the plugin in every run, and most runs start no server.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
