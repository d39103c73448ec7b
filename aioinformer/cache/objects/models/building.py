"""One lock under which msgspec learns what classes are made of.

msgspec attaches to a class what it knows of its fields before it knows all of it, and runs Python code in between. A
second thread that builds a decoder over the same class, or over one that contains it, is then given a half of it, and
the interpreter crashes. So all that builds decoders at run time does it here, and a class is handed out only when
msgspec knows it completely. What modules build while they are imported needs no more than the lock of the import.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

#: Held while classes for msgspec are made, and decoders of them. Re-entrant: one class needs another.
BUILDING: Final = threading.RLock()


def build_decoder(kind: Any, dec_hook: Callable[[type, Any], Any] | None = None) -> Callable[[bytes], Any]:
    """Return a function that decodes JSON into a type, for any number of threads at a time.

    Args:
        kind: any type that msgspec supports.
        dec_hook: makes what msgspec does not know, as for `msgspec.json.Decoder`.

    Raises:
        TypeError: msgspec does not support the type.
    """
    with BUILDING:
        return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode
