"""List and watch a collection, and recover from failures: a protocol without I/O, and the task that carries it out."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.reflector.consistency import (
        ENVIRONMENT_VARIABLE,
        ConsistencyDetector,
        InconsistentList,
        consistency_mode,
    )
    from aioinformer.reflector.listwatch import ListerWatcher, ListWatch
    from aioinformer.reflector.options import ListOptions, ReflectorOptions
    from aioinformer.reflector.pager import ListPager, read_page
    from aioinformer.reflector.reflector import Reflector
    from aioinformer.reflector.sharding import (
        HASHES,
        NAMESPACE,
        UID,
        ShardedListWatch,
        ShardRange,
        ShardSelector,
        parse_shard_selector,
        shard_hash,
        shard_selectors,
    )
    from aioinformer.reflector.state import InformerState, Phase

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "HASHES",
    "NAMESPACE",
    "UID",
    "ConsistencyDetector",
    "InconsistentList",
    "InformerState",
    "ListOptions",
    "ListPager",
    "ListWatch",
    "ListerWatcher",
    "Phase",
    "Reflector",
    "ReflectorOptions",
    "ShardRange",
    "ShardSelector",
    "ShardedListWatch",
    "consistency_mode",
    "parse_shard_selector",
    "read_page",
    "shard_hash",
    "shard_selectors",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "consistency": "ConsistencyDetector ENVIRONMENT_VARIABLE InconsistentList consistency_mode",
            "listwatch": "ListWatch ListerWatcher",
            "options": "ListOptions ReflectorOptions",
            "pager": "ListPager read_page",
            "reflector": "Reflector",
            "sharding": (
                "HASHES NAMESPACE ShardRange ShardSelector ShardedListWatch UID parse_shard_selector shard_hash "
                "shard_selectors"
            ),
            "state": "InformerState Phase",
        },
    )
