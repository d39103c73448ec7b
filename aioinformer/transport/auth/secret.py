"""Types whose `repr` hides secrets, for local variables.

Some tools print local variables in tracebacks (rich, Sentry, `traceback.TracebackException(capture_locals=True)`): they
show the `repr` of each local variable of each frame that an exception passes. Therefore a frame that can raise holds a
secret in one of these types only, and reads it in the expression that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that `repr` hides."""

    text: str = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.text)


class PrivateDict(dict[str, Any]):
    """A mapping whose `repr` shows its keys and hides its values."""

    def __repr__(self) -> str:
        return f"<{len(self)} values not shown: {', '.join(map(str, self))}>"


class PrivateHeaders(CIMultiDict[str]):
    """HTTP headers whose `repr` shows their names and hides their values."""

    def __repr__(self) -> str:
        return f"<headers, values not shown: {', '.join(self)}>"


def private(value: Any) -> Any:
    """Return `value` with every mapping in it replaced by a `PrivateDict`, at any depth."""
    if isinstance(value, Mapping):
        return PrivateDict({key: private(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [private(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """Return `value` with every mapping in it replaced by a `dict`, at any depth."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
