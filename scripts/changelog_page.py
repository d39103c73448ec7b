"""A hook of mkdocs: adds CHANGELOG.md to the pages, as changelog.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page."""
    text = Path(config.config_file_path).with_name("CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=text))
    return files
