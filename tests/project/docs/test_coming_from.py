"""Check that the names in the tables for users of other frameworks exist."""

from __future__ import annotations

import inspect
import re

import pytest

import aioinformer
import aioinformer.controller
import aioinformer.testing
from aioinformer import Client, SharedIndexInformer
from aioinformer.controller import Controller, Manager, Request
from aioinformer.informer import InformerOptions
from tests.project.docs.blocks import DOCS

ROWS = [line.split(" | ") for line in (DOCS / "coming-from.md").read_text().splitlines() if line.startswith("| ")]
CODE = [code for row in ROWS for code in re.findall(r"`([^`]+)`", row[-1])]
VARIABLES = {
    "client": Client,
    "controller": Controller,
    "informer": SharedIndexInformer,
    "manager": Manager,
    "request": Request(None, None, None),  # type: ignore[arg-type] # some attributes are of instances
}
#: Programs, operators, and words of Python.
WORDS = {"aioinformer", "async", "&", "~"}
OPTIONS = {
    *(name for made in (Manager, Controller) for name in inspect.signature(made).parameters),
    *InformerOptions.__annotations__,
    *("after", "controller_only", "on_add", "resources", "signals", "size", "to"),
}


@pytest.mark.parametrize("code", CODE)
def test_names_of_the_page_exist(code: str) -> None:
    code = re.sub(r"^(?:async (?:with|def)|await) ", "", code)
    name, _, rest = re.split(r"[ (=]", code)[0].partition(".")
    if name in VARIABLES and rest:
        assert hasattr(VARIABLES[name], rest.split(".")[0])
    elif name not in WORDS | VARIABLES.keys() | OPTIONS | {"widgets"}:
        assert any(hasattr(each, name) for each in (aioinformer, aioinformer.controller, aioinformer.testing))


def test_options_of_the_page_exist() -> None:
    calls = [re.sub(r'"[^"]*"', "", code) for code in CODE]
    assert {name for code in calls for name in re.findall(r"(\w+)=", code)} <= OPTIONS
