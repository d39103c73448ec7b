"""What commands share: coloured help, errors without control characters, and options of several commands."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

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
    """A group of commands whose help is written by `Formatter`. Its error messages cannot control the terminal."""

    context_class = Context
    command_class = Command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _visible_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _visible_errors():
            return super().invoke(ctx)


@contextmanager
def _visible_errors() -> Iterator[None]:
    try:
        yield
    except _NO_ARGS_IS_HELP:
        raise  # the message is the help, which quotes no arguments
    except click.ClickException as error:
        vars(error)["message"] = visible(error.message)  # the attribute is typed as final
        raise
