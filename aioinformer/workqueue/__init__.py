"""Work queues, rate limiters and retries, as in client-go's util/workqueue and util/retry."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
