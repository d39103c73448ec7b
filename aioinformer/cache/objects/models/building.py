"""The lock under which msgspec classes and decoders are built at run time.

msgspec attaches its description of a class's fields to the class before the description is complete, and runs Python
code in between. If a second thread then builds a decoder for this class, or for one that contains it, it gets an
incomplete description, and the interpreter crashes. So all decoders are built here at run time, and a class is returned
only when its description is complete. Decoders that are built during an import are protected by the import lock.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

#: Held while msgspec classes and their decoders are built. Re-entrant, since one class needs another.
BUILDING: Final = threading.RLock()


def build_decoder(kind: Any, dec_hook: Callable[[type, Any], Any] | None = None) -> Callable[[bytes], Any]:
    """Return a function that decodes JSON into a type. Several threads may call it at the same time.

    Args:
        kind: any type that msgspec supports.
        dec_hook: converts values to types that msgspec does not support, as for `msgspec.json.Decoder`.

    Raises:
        TypeError: msgspec does not support the type.
    """
    with BUILDING:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode
