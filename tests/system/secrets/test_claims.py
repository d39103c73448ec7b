"""Every claim of docs/security.md names tests."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "security.md").read_text()


def test_every_claim_names_existing_tests() -> None:
    claims = [line for line in PAGE.splitlines() if line.startswith("| ") and "| tests |" not in line]
    assert claims
    missing = []
    for claim in claims:
        named = re.findall(r"([a-z_/]+\.py): ((?:`\w+`(?:, )?)+)", claim)
        assert named, f"no test is named for: {claim}"
        for file, names in named:
            source = (PROJECT / "tests" / file).read_text()
            missing += [f"{file}: {name}" for name in re.findall(r"`(\w+)`", names) if f"def {name}(" not in source]
    assert missing == []
