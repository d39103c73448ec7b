"""In a web service: typed caches, live data for browsers, and errors as HTTP knows them.

- `informers`: the caches of a service, which start and end with it;
- `problems`: errors as Problem Details; `probes`: what `/livez`, `/readyz` and `/metrics` answer;
- `ending`: when the server that accepted a stream ends;
- `fastapi`, `starlette`, `aiohttp`: these for a framework. They only send.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
