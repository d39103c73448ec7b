"""The command line; what scripts may rely on is in the help of each command.

Layers, from the bottom: `lines`, `changes` and `whole_objects` turn notifications into text, `measures` takes the
figures, `writer` and `ending` talk to the operating system, `connecting` finds the server, `followed` runs one informer
and `watching` those of all `targets`, `demo` and `serving` run the embedded server, `commands` knows the options. Only
`commands` and `help` import click, and only what draws imports rich.
"""

from __future__ import annotations

import sys

_EXTRA = frozenset({"click", "rich"})


def main() -> None:
    """The entry point of the `aioinformer` command."""
    # Before anything is imported that takes time: a signal counts from the first moment.
    try:
        from aioinformer.cli.shutdown import ending

        ending.listen()
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        from aioinformer.cli.commands import cli
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        print(
            f"aioinformer: the command line needs {error.name}; install it with: pip install 'aioinformer[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    cli(prog_name="aioinformer")
