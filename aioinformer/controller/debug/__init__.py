"""The debug page of a manager: what is wrong now, and what leads to the cause. `Manager.debug_app` makes it.

- `recording`: what is recorded while a page exists: changes, runs, transitions of caches;
- `report`: from what a manager knows to plain data; `problems`: from that data to sentences with remedies;
- `app`: JSON, events and the page, as ASGI and aiohttp applications; `serving`: a port, and the rules of access.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
