"""Texts for people who may not read everything: no credentials, and no control characters."""

from __future__ import annotations

import re
from typing import Any, Final

from aioinformer.logs import visible

#: A text with a credential has one of these; most texts have none.
_MARKS: Final = (" ", "://", "eyJ", "=", '":', "':")
#: Credentials in texts of servers, proxies and programs. `token:` and `secret:` count in quotes only: resources are
#: named so.
_NAMES: Final = r"passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key"
_CREDENTIALS: Final = re.compile(
    r"(?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|(?P<user>://)[^/\s@]+@"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    rf"|(?P<name>(?:{_NAMES})(?:[\"']?\s*:\s*|\s*=\s*)|(?:secret|token)(?:[\"']\s*:\s*|\s*=\s*))"
    r"(?:\"[^\"]+(?:\"|$)|'[^']+(?:'|$)|[^\s\"'&,;)}]+)",
    re.IGNORECASE | re.DOTALL,
)


def scrubbed(value: Any) -> Any:
    """Return plain data without credentials and control characters in its texts."""
    if isinstance(value, str):
        shown = visible(value)
        if any(mark in shown for mark in _MARKS):
            return _CREDENTIALS.sub(_hidden, shown)
        return shown
    if isinstance(value, dict):
        return {str(name): scrubbed(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrubbed(each) for each in value]
    return value


def _hidden(found: re.Match[str]) -> str:
    return f"{found['scheme'] or found['user'] or found['name'] or ''}<redacted>{'@' if found['user'] else ''}"
