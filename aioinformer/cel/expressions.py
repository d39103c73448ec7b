"""Regular expressions in Go's dialect, by RE2, whose syntax Go's package has.

RE2 is imported when the first pattern is compiled: it is a part of the extra `testing`, and a server that meets no
pattern starts without it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from aioinformer.cel.values import EvaluationError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

# Go's message for each of RE2's; the others are the same.
_FAULTS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
# RE2 matches one byte by it; Go does not have it.
_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match; None if there is none."""

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return all matches that do not overlap."""


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Pattern:
    """Return the compiled pattern.

    Raises:
        EvaluationError: the pattern is invalid in Go.
        Unsupported: RE2 is not installed.
    """
    re2 = _library(pattern)
    if _BYTE.search(pattern):
        raise EvaluationError(r"error parsing regexp: invalid escape sequence: `\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        if isinstance(error.args[0], bytes):
            text = error.args[0].decode()
        else:
            text = str(error.args[0])
        what, _, where = text.partition(": ")
        raise EvaluationError(f"error parsing regexp: {_FAULTS.get(what, what)}: `{where or pattern}`") from None
    return compiled


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of the text matches the pattern.

    Raises:
        EvaluationError: the pattern is invalid in Go.
        Unsupported: RE2 is not installed.
    """
    return compile_pattern(pattern).search(text) is not None


def _library(pattern: str) -> Any:
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        remedy = 'google-re2, which is not installed: pip install "aioinformer[testing]"'
        raise Unsupported(f"the pattern `{pattern}` needs {remedy}") from None
    return re2
