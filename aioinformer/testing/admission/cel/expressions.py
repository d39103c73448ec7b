"""Regular expressions in the dialect of Go."""

from __future__ import annotations

import re
from functools import lru_cache

from aioinformer.testing.admission.cel.values import EvaluationError, Unsupported

_PART = re.compile(r"\\(.)|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?(?:[=!]|<[=!])|\(\?<(\w+)>|\$|.", re.DOTALL)
_FOREIGN = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[pPQC]|\(\?[a-zA-Z]*U)")
# What Go says instead, and whether it shows the pattern from the place of the fault on.
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
def expression(pattern: str) -> re.Pattern[str]:
    """A pattern, ready to be used.

    Raises:
        EvaluationError: it is none, or one that Go does not have.
        Unsupported: it is one that Python does not have.
    """
    if foreign := _FOREIGN.search(pattern):
        raise Unsupported(f"the pattern `{pattern}` with `{foreign[0]}`")
    try:
        return re.compile("".join(map(_translated, _PART.finditer(pattern))), re.ASCII)
    except re.error as error:
        what, is_part = _FAULTS.get(error.msg, (error.msg, False))
        where = pattern[error.pos or 0 :] if is_part else pattern
        raise EvaluationError(f"error parsing regexp: {what}: `{where}`") from None


def found(text: str, pattern: str) -> bool:
    """Whether a text has a part that fits a pattern."""
    return expression(pattern).search(text) is not None


def _translated(part: re.Match[str]) -> str:
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
