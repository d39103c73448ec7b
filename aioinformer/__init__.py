"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. This package has the names that most
programs need, and `aioinformer.controller` those of controllers. The others are in rooms: `aioinformer.cache`,
`aioinformer.workqueue`, `aioinformer.errors`. The API server for tests is `aioinformer.testing`.

A name is imported when it is first used, so a program loads only the parts that it uses.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
