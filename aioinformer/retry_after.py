"""The `Retry-After` header (RFC 9110, 10.2.3)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A server that asks for more is not believed: it would look like a hang.
MAX_RETRY_AFTER = 3600.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds before which the server does not want to be asked again; None if it does not say.

    A date is taken relative to the server's own `Date`, so that no clock is needed.
    """
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        seconds = (parsedate_to_datetime(text) - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
