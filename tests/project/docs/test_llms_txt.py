"""The list of pages for language models."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import llms_txt

if TYPE_CHECKING:
    from pathlib import Path


def page(title: str, url: str, markdown: str) -> Any:
    return SimpleNamespace(is_page=True, is_section=False, title=title, url=url, markdown=markdown)


def test_lists_each_page_below_its_section(tmp_path: Path) -> None:
    guides = SimpleNamespace(
        is_page=False,
        is_section=True,
        title="Guides",
        children=[page("Handlers", "handlers.html", "# Handlers\n\nA [handler](a.md) is\nawaited. Then:\n")],
    )
    llms_txt.on_nav([page("Home", "index.html", "# Home\n\nCaches:\n\n- one"), guides], config=None, files=None)
    llms_txt.on_post_build(
        config=SimpleNamespace(site_name="name", site_description="what it is", site_dir=str(tmp_path))
    )
    assert (tmp_path / "llms.txt").read_text().splitlines() == [
        "# name",
        "",
        "> what it is",
        "",
        "- [Home](index.html): Caches.",
        "",
        "## Guides",
        "",
        "- [Handlers](handlers.html): A handler is awaited.",
    ]
