"""What commands share: coloured help, errors without control characters, and options of several commands."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar, cast

import click

from aioinformer.errors import UsageError
from aioinformer.logs import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., Any]")

#: The type of options for a run time.
POSITIVE: Final = click.FloatRange(0, min_open=True)
_SERVER_OPTIONS: Final = [
    click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."),
    click.option("--server", metavar="URL", help="Connect to this server, without a kubeconfig."),
    click.option("--token-file", metavar="FILE", help="With --server: bearer token, read again when it changes."),
    click.option("--certificate-authority", metavar="FILE", help="With --server: PEM certificates to trust."),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="With --server: accept any certificate."),
]


def server_options(function: F) -> F:
    """Add the options that name a server, in the order of the help."""
    for option in reversed(_SERVER_OPTIONS):
        function = option(function)
    return function


def is_terminal() -> bool:
    """Return whether stdout is a terminal that a command can draw on."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Formatter(click.HelpFormatter):
    """Formats help with coloured headings and names. click removes colours if the output is not a terminal."""

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, fg="cyan", bold=True))

    def write_dl(self, rows: Any, *spacing: Any, **more: Any) -> None:
        super().write_dl([(click.style(name, fg="green"), text) for name, text in rows], *spacing, **more)


class Context(click.Context):
    """A context whose help is written by `Formatter`."""

    formatter_class = Formatter


#: What click 8.2 and later raise to show the help of a group that is called without a command.
_NO_ARGS_IS_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Command(click.Command):
    """A command whose help is written by `Formatter`. A `UsageError` is an error of its arguments."""

    context_class = Context

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise click.UsageError(str(error), ctx) from error


class Group(click.Group):
    """A group of commands whose help is written by `Formatter`. Its error messages cannot control the terminal.

    If what a command prints cannot be written, that is an error of one line, with exit code 1.
    """

    context_class = Context
    command_class = Command

    def main(self, *arguments: Any, **more: Any) -> Any:
        stdout = sys.stdout
        if stdout is not None:
            sys.stdout = cast("TextIO", _Stdout(stdout))
        try:
            return super().main(*arguments, **more)
        finally:
            sys.stdout = stdout

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _visible_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _visible_errors():
            return super().invoke(ctx)


class _Stdout:
    """Standard output, whose failures are errors of the command line: of one line, with exit code 1."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if text == "":
            return 0  # click tries so what kind of stream this is, and ignores errors
        with self._failing():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._failing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Otherwise, Python would try again at the end, and print a traceback.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            reason = error.strerror or str(error)
            raise click.ClickException(f"stdout cannot be written to: {reason}; the output is not complete") from error


@contextmanager
def _visible_errors() -> Iterator[None]:
    try:
        yield
    except _NO_ARGS_IS_HELP:
        raise  # the message is the help, which quotes no arguments
    except click.ClickException as error:
        vars(error)["message"] = visible(error.message)  # the attribute is typed as final
        raise
