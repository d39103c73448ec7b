"""Predicates that few controllers need, and the type of all.

All predicates are defined in `controller/inputs/predicates.py`; `ADDRESSES` in `exports.py` gives each name its
address. A new predicate gets this one. `aioinformer.controller` has only those that most controllers with a predicate
use, and what your own predicates need: `predicate` and `Change`.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
