"""Generated files and pages agree with the generator, the tests and the recordings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import behaviours
import conformance
import contract
from conformance import read_tests

PROJECT = Path(__file__).parents[2]


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_behaviours_have_tests_or_reasons_and_their_pages_are_up_to_date() -> None:
    rows, tests, scripts = conformance.read_rows(), read_tests(), conformance.read_scripts()
    ours, proofs = behaviours.read_rows(), read_tests(mark=behaviours.MARK)
    assert conformance.find_problems(rows, tests, scripts) + behaviours.find_problems(ours, proofs) == []
    assert conformance.PAGE.read_text() == conformance.render(rows, tests, scripts), "run scripts/conformance.py"
    assert behaviours.PAGE.read_text() == behaviours.render(ours, proofs), "run scripts/behaviours.py"


def test_page_of_the_contract_is_up_to_date() -> None:
    page = contract.render(contract.read_rows(), contract.read_checks())
    assert page == contract.PAGE.read_text(), "run scripts/contract.py"
