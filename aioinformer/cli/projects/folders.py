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


def _signed(text: str) -> str:
    return f"{_MARK}{hashlib.sha256(text.encode()).hexdigest()[:16]}\n{text}"


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
        wanted = {name: _signed(text) for name, text in files.items()}
        stale = [name for name, text in known.items() if name not in wanted and text.startswith(_MARK)]
        changed = [name for name, text in wanted.items() if known.get(name) != text]
        for name in [*changed, *stale]:
            text = known.get(name)
            if text is not None and not overwrite and text != _signed(text.partition("\n")[2]):
                why = "was edited" if text.startswith(_MARK) else "was not made by this command"
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
