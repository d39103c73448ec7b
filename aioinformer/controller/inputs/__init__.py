"""The inputs of controllers: which changes of which objects make which keys run.

`Owns`, `Watch`, `References`, `Every` and the usual predicates are in `aioinformer.controller`.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
