"""Regular expressions in Go's dialect."""

from __future__ import annotations

import re
from functools import lru_cache

from aioinformer.testing.cel.values import EvaluationError, Unsupported

_PART = re.compile(r"\\(.)|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?(?:[=!]|<[=!])|\(\?<(\w+)>|\$|.", re.DOTALL)
_UNSUPPORTED = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[pPQC]|\(\?[a-zA-Z]*U)")
# Go's message for each of Python's, and whether Go shows the pattern from the position of the fault on.
_FAULTS = {
    "missing ), unterminated subpattern": ("missing closing )", False),
    "nothing to repeat": ("missing argument to repetition operator", True),
    "unterminated character set": ("missing closing ]", True),
}
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\t ",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern.

    Raises:
        EvaluationError: the pattern is invalid in Go.
        Unsupported: Python does not support the pattern.
    """
    if unsupported := _UNSUPPORTED.search(pattern):
        raise Unsupported(f"the pattern `{pattern}` with `{unsupported[0]}`")
    try:
        return re.compile("".join(map(_translate, _PART.finditer(pattern))), re.ASCII)
    except re.error as error:
        what, is_part = _FAULTS.get(error.msg, (error.msg, False))
        where = pattern[error.pos or 0 :] if is_part else pattern
        raise EvaluationError(f"error parsing regexp: {what}: `{where}`") from None


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of the text matches the pattern."""
    return compile_pattern(pattern).search(text) is not None


def _translate(part: re.Match[str]) -> str:
    text = part[0]
    if text.startswith("(?<") and part[2]:
        return f"(?P<{part[2]}>"
    if text.startswith("(?") or (part[1] and part[1].isdigit() and part[1] != "0"):
        raise EvaluationError(f"error parsing regexp: invalid or unsupported Perl syntax: `{text}`")
    if text in ("$", r"\z"):
        return r"\Z"
    if text.startswith("["):
        return re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match[1], match[0]), text)
    return text
