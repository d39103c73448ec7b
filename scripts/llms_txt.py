"""A hook of mkdocs: writes llms.txt beside the pages, the list of them that language models read first (llmstxt.org).

Each line has a page, its address relative to that file, and the first sentence of the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"\*?([`\w].*?)[.:]?\*?(?:\. |$)")
_built: dict[str, Any] = {}


def on_nav(nav: Any, *, config: Any, files: Any) -> None:
    """Keep the navigation. Its pages are read later."""
    _built["nav"] = nav


def on_post_build(*, config: Any) -> None:
    """Write the file, now that all pages are read."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", *_lines(_built["nav"], 2)]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lines(items: Iterable[Any], depth: int) -> Iterator[str]:
    for item in items:
        if item.is_page:
            sentence = first_sentence(item.markdown or "")
            yield f"- [{item.title}]({item.url})" + (f": {sentence}" if sentence else "")
        elif item.is_section:
            yield from ("", f"{'#' * depth} {item.title}", "", *_lines(item.children, depth + 1))


def first_sentence(markdown: str) -> str:
    """Return the first sentence of a page as plain text; an empty text if the page has none."""
    for paragraph in _FENCED.sub("", markdown).split("\n\n"):
        text = _LINK.sub(r"\1", " ".join(paragraph.split()))
        if (found := _SENTENCE.match(text)) and "\n:" not in paragraph:
            return f"{found[1].rstrip('.:*')}."
    return ""
