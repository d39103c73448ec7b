"""Print the section of a version in CHANGELOG.md: the notes of its release.

The script exits with status 1 if the changelog has no such section, or if the section is not released yet: its heading
is then "## 1.2.3 (unreleased)" instead of "## 1.2.3 (2026-11-28)".
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"

_TITLE = re.compile(r"^## (?P<version>\d+\.\d+\.\d+\S*) \((?P<when>unreleased|\d{4}-\d\d-\d\d)\)$")


@dataclass(frozen=True)
class Section:
    """The part of the changelog about one version.

    Args:
        version: the version, such as "1.2.3".
        when: the date of its release, or "unreleased".
        text: what the section says, without its heading.
    """

    version: str
    when: str
    text: str

    @property
    def title(self) -> str:
        return f"{self.version} ({self.when})"

    @property
    def released(self) -> bool:
        return self.when != "unreleased"


def sections(text: str | None = None) -> list[Section]:
    """Return the sections of the changelog, the newest first.

    Args:
        text: the changelog; the default is that of the project.

    Raises:
        ValueError: a heading has no version, or neither a date nor "unreleased".
    """
    if text is None:
        text = CHANGELOG.read_text()
    found = []
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        match = _TITLE.match(title)
        if match is None:
            raise ValueError(f'the heading {title!r} of the changelog is not "## VERSION (DATE)" or "(unreleased)"')
        found.append(Section(match["version"], match["when"], rest.strip() + "\n"))
    return found


def notes(version: str, text: str | None = None) -> str:
    """Return the notes of the release of a version.

    Raises:
        ValueError: the changelog has no section of this version, or it is not released, or it is empty.
    """
    matching = [each for each in sections(text) if each.version == version]
    if not matching:
        raise ValueError(f"CHANGELOG.md has no section {version}: write it first")
    if not matching[0].released:
        raise ValueError(f'CHANGELOG.md has "## {matching[0].title}": write the date of the release instead')
    if not matching[0].text.strip():
        raise ValueError(f"the section {version} of CHANGELOG.md is empty: write what has changed")
    return matching[0].text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help='such as 1.2.3, or the tag "v1.2.3"')
    try:
        print(notes(parser.parse_args().version.removeprefix("v")), end="")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
