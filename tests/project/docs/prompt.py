"""Run code as `python -m asyncio` does when you paste it."""

from __future__ import annotations

import ast
import inspect
from codeop import CommandCompiler
from types import FunctionType
from typing import Any


class Prompt:
    """A Python prompt with top-level `await`.

    Args:
        names: the namespace of the prompt; it grows.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._compile = CommandCompiler()
        self._compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    async def paste(self, code: str, source: str) -> None:
        """Enter code line by line, and run each statement when it is complete.

        Args:
            code: lines as on the page.
            source: where they are from, for errors.

        Raises:
            SyntaxError: the prompt does not accept a line.
            Exception: what a statement raised.
        """
        entered: list[str] = []
        for line in [*code.splitlines(), ""]:
            entered.append(line)
            compiled = self._compile("\n".join(entered), source, "single")
            if compiled is not None:
                entered.clear()
                result = FunctionType(compiled, self.names)()
                if inspect.iscoroutine(result):
                    await result
        assert not any(entered), f"{source}: the prompt waits for more lines after {entered}"


def is_for_files(code: str) -> bool:
    """Whether the code can be in a file: no `await` outside of a function."""
    try:
        compile(code, "file", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
