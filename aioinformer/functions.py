"""Functions that users pass in: their names and places for messages, and checks that they can be called."""

from __future__ import annotations

import inspect
import os
import sysconfig
from functools import cache, partial, partialmethod
from itertools import islice
from pathlib import Path
from types import CodeType, MethodType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

_F = TypeVar("_F")

_log = get_logger("aioinformer.cache")

#: At most this many decorators and partials around a function are unwrapped.
_MAX_WRAPPERS = 20
#: The most characters of the text of an error, and errors of a group, that a line names.
_TEXT = 1000
_NAMED = 5


class Timed(Protocol):
    """Wraps a function of a user so that its calls are timed; `Stalls.timed` does."""

    def __call__(self, function: _F, what: str, key_of: Callable[[Any], str], /) -> _F: ...


def untimed(function: _F, what: str, key_of: Callable[[Any], str]) -> _F:
    """Return the function itself."""
    return function


class LogError(Protocol):
    """Logs an error of a function of a user; `RepeatedErrors.report` does."""

    def __call__(self, subject: str, error: BaseException, message: str, /, *arguments: object) -> object: ...


def log_each(subject: str, error: BaseException, message: str, /, *arguments: object) -> None:
    """Log the error, however often its function raises."""
    _log.error(message, *arguments, exc_info=error)


def function_name(function: Any) -> str:
    """Return the name, file and line of a callable: "Shop.on_update at controllers/shop.py:42".

    A decorator that sets `__wrapped__`, a partial or a bound method gets the name of the function in it; an object with
    `__call__` gets the name of its class. For callables without Python code the result is the name alone.
    """
    target = _unwrapped(function)
    code = _code_of(target)
    qualified = getattr(target, "__qualname__", "")
    if isinstance(qualified, str) and qualified:
        name = _short(qualified)
    else:
        name = type(target).__name__
    if code is not None:
        return f"{name} at {place(code.co_filename, code.co_firstlineno)}"
    return name


def place(filename: str, line: int) -> str:
    """Return a place in a source file, with the last two parts of its path: "controllers/shop.py:42"."""
    return f"{'/'.join(filename.replace(os.sep, '/').split('/')[-2:])}:{line}"


def origin(error: BaseException) -> str:
    """Return the type of an exception, and the innermost line of user code that it passed; of none, the innermost line.

    The message is left out: it may quote an object.
    """
    traceback: TracebackType | None = error.__traceback__
    lines: list[tuple[str, int]] = []
    while traceback is not None:
        lines.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    if not lines:
        return type(error).__name__
    return f"{type(error).__name__} at {place(*lines[innermost_user_code([file for file, _ in lines])])}"


def described(error: BaseException) -> str:
    """Return `origin` of an error, and its text; of a group, those of its first members, each different one once."""
    parts = []
    for each in islice(leaves(error), _NAMED):
        text = text_of(each)
        parts.append(f"{origin(each)}: {text}" if text else origin(each))
    return "; ".join(dict.fromkeys(parts))


def cause_of(error: BaseException) -> str:
    """Return `origin` of an error; of a group, that of its first member."""
    return origin(next(leaves(error), error))


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that a group contains, those in its groups included; an error that is no group itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def text_of(error: BaseException) -> str:
    """Return the text of an error, at most 1,000 characters of it; "" if it has none, or raises."""
    try:
        text = str(error)
    except Exception:  # a method of a class of the user
        return ""
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}… ({len(text)} characters)"


def innermost_user_code(files: Sequence[str]) -> int:
    """Return which frame is the innermost one of user code, by their files, outermost first; of none, the last one.

    User code is what is not installed. If everything is, as in an image, it is the distribution that the first frame
    outside of this one and of the standard library belongs to.
    """
    own, standard, installed = _libraries()
    package = ""
    for file in files:
        if file.startswith((own, "<")) or (file.startswith(standard) and not file.startswith(installed)):
            continue
        if file.startswith(installed):
            package = file[len(installed) :].split(os.sep)[0]
        break
    for index in range(len(files) - 1, -1, -1):
        if not files[index].startswith((own, standard, installed, "<")):
            return index
    if package:
        roots = (installed + package + os.sep, installed + package)  # a module alone is a file
        return max(index for index, file in enumerate(files) if file.startswith(roots[0]) or file == roots[1])
    return len(files) - 1


@cache
def _libraries() -> tuple[str, str, str]:
    """Return the folders of this package, of the standard library, and of installed packages."""
    folders = str(Path(__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
    return folders[0] + os.sep, folders[1] + os.sep, folders[2] + os.sep


def plain_function(function: _F, what: str) -> _F:
    """Return the function unchanged if it is a plain function, or None.

    Args:
        what: names the argument, for the error.

    Raises:
        UsageError: it is not callable, or it is a coroutine function, whose result would not be awaited.
    """
    if function is not None and not callable(function):
        raise UsageError(f"{what}: expected a function, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{what}: expected a plain function, not a coroutine function: its result would not be awaited; "
            "to await something, put an item into a queue and process it in a task"
        )
    return function


def async_function(given: Any, where: str, name: str, *arguments: str) -> Any:
    """Return the function unchanged if it is a coroutine function that accepts the arguments.

    Args:
        where: who takes it, for the error.
        name: of the argument.
        arguments: names of one argument or two, such as "request".

    Raises:
        UsageError: it is not.
    """
    remedy = f"write `async def {name}({', '.join(arguments)})`"
    if not callable(given):
        raise UsageError(f"{where}: {name} must be an async function, not {given!r}; {remedy}")
    function = inspect.unwrap(given)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - is it a coroutine function?
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)):
        raise UsageError(f"{where}: {name} is {function_name(given)}, which is not async; {remedy}")
    try:
        inspect.signature(given).bind(*arguments)
    except TypeError:
        count = "one argument" if len(arguments) == 1 else "two arguments"
        named = " and ".join(f"the {each}" for each in arguments)
        raise UsageError(
            f"{where}: {name} is {function_name(given)}, and must accept {count}, {named}; {remedy}, and bind further "
            "arguments with functools.partial"
        ) from None
    return given


def _unwrapped(function: Any) -> Any:
    for _ in range(_MAX_WRAPPERS):
        inner = _inner(function)
        if inner is None:
            break
        function = inner
    return function


def _inner(function: Any) -> Any:
    """Return the function in a partial, a bound method or a decorator; None for anything else."""
    if isinstance(function, (partial, partialmethod)):
        return function.func
    if isinstance(function, MethodType):
        return function.__func__
    wrapped = getattr(function, "__wrapped__", None)
    return wrapped if callable(wrapped) else None


def _code_of(function: Any) -> CodeType | None:
    for candidate in (function, getattr(type(function), "__call__", None)):  # noqa: B004 - its code is wanted
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _short(qualified: str) -> str:
    # "test_it.<locals>.Shop.on_add" -> "Shop.on_add"
    return qualified.rpartition("<locals>.")[2]
