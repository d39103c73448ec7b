"""Write generated files into a folder that people work in, without harm to what they wrote.

The first line of a generated file has a digest of the rest. Only a file whose digest is right is replaced or removed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MARK: Final = "# Made by `aioinformer manifests`, which replaces it. Change the declarations, or patch it. Digest: "


def signed(text: str) -> str:
    """Return the text of a generated file, with the line that says so."""
    return f"{_MARK}{_digest(text)}\n{text}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_generated(text: str) -> bool:
    """Return whether a file was generated, edited since or not."""
    return text.startswith(_MARK)


def is_untouched(text: str) -> bool:
    """Return whether a file was generated, and not edited since."""
    head, _, body = text.partition("\n")
    return head == f"{_MARK}{_digest(body)}"


def update(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> list[str]:
    """Write generated files, remove generated ones that are no longer needed, and return what was done, a line each.

    Args:
        folder: created if needed.
        files: names, and texts without the first line.
        overwrite: replace files that were edited, or not generated.

    Raises:
        UsageError: a file was edited, or was not generated, or cannot be written. Then nothing was written.
    """
    try:
        known = {path.name: path.read_text() for path in folder.glob("*.yaml") if path.is_file()}
        wanted = {name: signed(text) for name, text in files.items()}
        stale = [name for name, text in known.items() if name not in wanted and is_generated(text)]
        changed = [name for name, text in wanted.items() if known.get(name) != text]
        for name in [*changed, *stale]:
            if name in known and not overwrite and not is_untouched(known[name]):
                why = "was edited" if is_generated(known[name]) else "was not made by this command"
                raise UsageError(
                    f"{folder / name} {why}: move your changes to another file or an overlay, or pass --overwrite"
                )
        folder.mkdir(parents=True, exist_ok=True)
        done = []
        for name in changed:
            (folder / name).write_text(wanted[name])
            done.append(f"{'changed' if name in known else 'created'} {folder / name}")
        for name in stale:
            (folder / name).unlink()
            done.append(f"removed {folder / name}")
        return done
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
