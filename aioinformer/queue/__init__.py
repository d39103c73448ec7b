"""The queues of deltas between a reflector and its controller loop."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.queue.delta_fifo import DeltaFIFO as DeltaFIFO
    from aioinformer.queue.delta_fifo import Queue as Queue
    from aioinformer.queue.deltas import Delta as Delta
    from aioinformer.queue.deltas import Deltas as Deltas
    from aioinformer.queue.deltas import DeltaType as DeltaType
    from aioinformer.queue.real_fifo import RealFIFO as RealFIFO
else:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "delta_fifo": "DeltaFIFO Queue",
            "deltas": "Delta DeltaType Deltas",
            "real_fifo": "RealFIFO",
        },
    )
