"""The reference shows each public name, and none twice."""

from __future__ import annotations

import re
from collections import Counter

from aioinformer.exports import ADDRESSES, modules_of
from tests.project.docs.blocks import DOCS

#: The addresses that the pages show.
SHOWN = Counter(
    address
    for page in (DOCS / "reference").glob("*.md")
    for address in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
)
PUBLIC = {f"{address}.{name}" for address in ADDRESSES for name in modules_of(address)}
#: The docstring of this module has a picture of all errors.
MODULES = {"aioinformer.errors"}


def test_reference_shows_each_public_name_and_no_other() -> None:
    assert SHOWN.keys() == PUBLIC | MODULES


def test_no_name_is_in_the_reference_twice() -> None:
    assert [address for address, count in SHOWN.items() if count > 1] == []
