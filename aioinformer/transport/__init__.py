"""The network: a transport sends a request, and returns status, headers and chunks of bytes.

All other rooms use only the protocols `Transport` and `Response`, and nothing of an HTTP library. Two transports
implement them: `HttpTransport` over an `aiohttp.ClientSession`, and `KubernetesTransport` over kubernetes_asyncio's
`ApiClient`. `connect` finds a cluster as kubectl does, and makes a transport for it.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
