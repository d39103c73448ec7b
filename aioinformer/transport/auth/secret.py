"""Values that no `repr`, log line or traceback shows.

A traceback with local variables (rich, Sentry, `traceback.TracebackException(capture_locals=True)`) shows the `repr` of
each local of each frame that an exception passes. So in frames that can raise, a secret is held in one of these types,
and it is taken out in the expression that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is not shown."""

    text: str = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.text)


class PrivateDict(dict[str, Any]):
    """A mapping whose values are not shown, at any depth; its keys are."""

    def __repr__(self) -> str:
        return f"<{len(self)} values not shown: {', '.join(map(str, self))}>"


class PrivateHeaders(CIMultiDict[str]):
    """HTTP headers whose values are not shown; their names are."""

    def __repr__(self) -> str:
        return f"<headers, values not shown: {', '.join(self)}>"


def private(value: Any) -> Any:
    """Return `value` with every mapping in it as a `PrivateDict`, in lists too, at any depth."""
    if isinstance(value, Mapping):
        return PrivateDict({key: private(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return [private(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """Return `value` with every mapping in it as a `dict`, in lists too, at any depth."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
