"""Texts that an error shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


def texts_of(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield texts with their places: messages, arguments and causes of an error, and local variables of frames."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        each = rest.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield type(each).__name__, f"{each} {each!r} {each.args!r} {getattr(each, '__notes__', '')}"
        yield from variables(each.__traceback__)
        rest += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def variables(trace: TracebackType | None) -> Iterator[tuple[str, str]]:
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        file = frame.f_code.co_filename
        if Path(file).parent == Path(__file__).parent or "/tests/" in file:
            continue
        for name, value in frame.f_locals.items():
            yield f"{file}:{frame.f_lineno} {frame.f_code.co_name}: {name}", f"{value!r}"
