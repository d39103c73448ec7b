"""The types of the built-in resources, by group and version: `core_v1.Pod`, `apps_v1.DeploymentSpec`.

Listers return `Object`s, of one class for each kind. Their parts are `Model`s. Both are immutable: sequences are
tuples, and mappings refuse writes. Attributes that the API does not require may be None. Each module also has the
resources of its kinds as constants: `core_v1.PODS`.

These are the classes of the objects themselves: `isinstance(pod, core_v1.Pod)` is true. A class is built when it is
first needed.
"""

import sys as _sys

from aioinformer.exports import lazy_exports as _lazy_exports
from aioinformer.models.names import ENTRY as _ENTRY
from aioinformer.models.names import find_modules as _find_modules

__getattr__, __dir__ = _lazy_exports(__name__)

if _ENTRY not in __path__:
    _sys.path_hooks.append(_find_modules)
    __path__.append(_ENTRY)
