"""Writes which packages aioinformer brings with it, and under which licences, into docs/adopting.md.

Names and licences come from the metadata of the locked packages, which are installed in `.venv`.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement  # hatchling needs it, too

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PAGE = Path(__file__).resolve().parent.parent / "docs" / "adopting.md"
BEGIN = "<!-- dependencies: scripts/dependencies.py -->\n"
END = "<!-- end of dependencies -->\n"

#: Older metadata names the licence in a classifier.
_CLASSIFIER = re.compile(r"^License :: (?:OSI Approved :: )?(.+)$")


def installed(site_packages: Path) -> dict[str, Distribution]:
    """Return the distributions of an environment by their normalised names."""
    return {normalised(each.name): each for each in distributions(path=[str(site_packages)])}


def required(found: Mapping[str, Distribution], name: str, extras: Iterable[str] = ()) -> set[str]:
    """Return the names of what a distribution requires on this machine, and of what that requires.

    Args:
        found: the distributions of the environment.
        name: the distribution.
        extras: the extras of it that count.

    Raises:
        PackageNotFoundError: a required distribution is not installed.
    """
    names: set[str] = set()
    waiting = [(name, frozenset(extras))]
    while waiting:
        current, chosen = waiting.pop()
        if current not in found:
            raise PackageNotFoundError(current)
        for requirement in map(Requirement, found[current].requires or ()):
            marker = requirement.marker
            applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in chosen or {""})
            other = normalised(requirement.name)
            if applies and other not in names:
                names.add(other)
                waiting.append((other, frozenset(requirement.extras)))
    return names


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(found: Distribution) -> str:
    """Return the licence as the metadata names it.

    Raises:
        ValueError: the metadata names none.
    """
    metadata = found.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classified = [match[1] for each in metadata.get_all("Classifier") or () if (match := _CLASSIFIER.match(each))]
    if classified:
        return " or ".join(classified)
    if "License" in metadata and "\n" not in metadata["License"]:
        return metadata["License"]
    raise ValueError(f"the metadata of {found.name} {found.version} names no licence")


def table() -> str:
    """Return the rows of the packages that an installation without extras brings."""
    site_packages = Path(str(distribution("aiohttp").locate_file("")))
    found = installed(site_packages)
    basic = required(found, "aioinformer")
    command_line = required(found, "aioinformer", ["cli"]) - basic
    rows = [
        f"| {name} | {found[name].version} | {licence(found[name])} | {extra} |"
        for names, extra in ((basic, ""), (command_line, "`cli`"))
        for name in sorted(names)
    ]
    return (
        "\n".join(["| package | locked version | licence in its metadata | extra |", "|---|---|---|---|", *rows]) + "\n"
    )


def render(page: str) -> str:
    """Return the page with the table of now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
