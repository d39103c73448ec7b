"""JSON merge patches, as RFC 7396 defines them."""

from __future__ import annotations

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """The algorithm of RFC 7396, as its text has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
