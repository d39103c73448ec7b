"""Describe why a model refused an object: the path of the field and the kind of mistake, never a value.

Errors of msgspec and pydantic, and those that a dataclass raises in `__post_init__`, may quote the refused value, which
may be a password. So only text that comes from the schema is used: a path, and the names of types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Messages of msgspec that quote the schema alone; all others may quote the input. `re` compiles it at its first use.
_SCHEMA: Final = (
    r"Expected `(?:object|array|str|int|float|bool|null|bytes|[\w.| ]+)`(?:, got `[a-z]+`)?"
    r"|Expected `\w+` (?:of )?(?:at (?:least|most) )?(?:length )?(?:(?:<|<=|>|>=) )?-?[\d.]+(?:, got \d+)?"
    r"|Invalid (?:RFC3339 encoded \w+|ISO8601 \w+|UUID|base64 encoded string)"
    r"|Object missing required field `[^`]*`"
    r"|JSON is malformed: [a-z' ]+(?: \(byte \d+\))?"
)
_MAX_LENGTH: Final = 200


class NotFinite(UsageError):
    """A number at `path` is NaN or infinite. JSON has neither: it would become null, which deletes a member."""

    path = ""

    def __str__(self) -> str:
        return f"{self.path or 'a number'} is NaN or infinite: JSON would have null for it, which deletes a member"


#: The end of each reason of an object whose metadata can be read, and whose body no decoder reads.
TOO_DEEP: Final = "nested too deeply"


def refusal(error: BaseException) -> str:
    """Describe why an object was refused: "Expected `int`, got `str` at $.spec.size".

    Returns:
        The path and the kind of mistake for errors of msgspec and pydantic; the name of the error's class for others.
    """
    if isinstance(error, msgspec.ValidationError):
        return _cut(_of_msgspec(error))
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return "not JSON"
    if isinstance(error, RecursionError):
        return TOO_DEEP
    return _cut(_of_pydantic(error) or type(error).__name__)


def refused_fields(error: BaseException) -> dict[str, str]:
    """Return which fields were refused: {"spec.size": "Expected `int`, got `str`"}.

    Returns:
        The fields for errors of msgspec, which names the first one only, and of pydantic; {} if they are not known.
    """
    if isinstance(error, msgspec.ValidationError):
        text, _, path = _of_msgspec(error).rpartition(" at ")
        field = path.removeprefix("key in ").removeprefix("$").removeprefix(".")
        if missing := re.fullmatch(r"Object missing required field `([^`]*)`", text):
            field = f"{field}.{missing[1]}".removeprefix(".")
            text = "is required"
        return {field: text} if field else {}
    found: dict[str, str] = {}
    for each in _details(error) or ():
        field = "".join(_step(step) for step in each["loc"]).removeprefix(".")
        if not field:
            return {}
        found.setdefault(field, each["type"])
    return found


def is_validation(error: BaseException) -> bool:
    """Return whether an error means that data does not fit a model, so that its text may quote the data."""
    return isinstance(error, msgspec.ValidationError) or _details(error) is not None


def _of_msgspec(error: msgspec.ValidationError) -> str:
    text, _, path = str(error).rpartition(" - at `")
    text, path = (text, path.replace("`", "")) if text else (str(error), "$")
    if error.__cause__ is not None:  # raised by the model class itself: the text is the user's
        text = f"refused by the class ({type(error.__cause__).__name__})"
    elif not re.fullmatch(_SCHEMA, text):
        text = "invalid value"
    if not re.fullmatch(r"(?:key in )?\$[\w.\[\]-]*", path):
        path = "$"
    return f"{text} at {path}"


def _of_pydantic(error: BaseException) -> str:
    details = _details(error)
    if not details:
        return ""
    first = details[0]
    more = len(details) - 1
    path = "".join(_step(step) for step in first["loc"])
    return f"{first['type']} at ${path}{f' and {more} more' if more else ''}"


def _step(step: Any) -> str:
    # Keys of maps are data: leave out those that cannot be field names. (msgspec leaves out all keys.)
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if str(step).isidentifier() else "[...]"


def _details(error: BaseException) -> Sequence[Mapping[str, Any]] | None:
    # pydantic may not be installed, so its error is recognised by its name and method.
    errors: Callable[[], Any] | None = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(errors):
        return None
    try:
        details = errors()
        return details if all("loc" in each and "type" in each for each in details) else None
    except Exception:  # another library's class of the same name
        return None


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
