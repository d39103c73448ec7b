"""The command line. The help of each command states what scripts can rely on.

Layers, from the bottom: `output` formats and writes lines; `shutdown` and `program` run a program until it ends;
`connecting` finds the server; `watch`, `serve`, `demo` and `bench` are the programs, `controllers` and `projects` what
is for controllers; `commands` defines the options. Only modules named `commands`, and `help`, import click, and only
modules that draw import rich.
"""

from __future__ import annotations

import sys

_EXTRAS = frozenset({"click", "rich"})


def main() -> None:
    """Run the `aioinformer` command."""
    # First, before the slow imports: a signal during these must end the process properly, too.
    try:
        from aioinformer.cli.shutdown import shutdown

        shutdown.handle_signals()
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        from aioinformer.cli.commands import cli
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRAS:
            raise
        print(
            f"aioinformer: the command line needs {error.name}; install it with: pip install 'aioinformer[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    cli(prog_name="aioinformer")
