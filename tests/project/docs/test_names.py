"""Check that the names in the tables for users of client-go and of other frameworks exist."""

from __future__ import annotations

import inspect
import re

import pytest

import aioinformer
import aioinformer.controller
import aioinformer.testing
from aioinformer import (
    Client,
    EventRecorder,
    HandlerRegistration,
    Indexer,
    LeaderElector,
    Lister,
    RateLimitingQueue,
    ResourceClient,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.controller import Controller, Manager, Request
from aioinformer.informer import InformerOptions
from tests.project.docs.blocks import DOCS

#: What the variables of a page stand for.
VARIABLES: dict[str, dict[str, object]] = {
    "coming-from.md": {
        "client": Client,
        "controller": Controller,
        "elector": LeaderElector,
        "factory": SharedInformerFactory,
        "indexer": Indexer,
        "informer": SharedIndexInformer,
        "lister": Lister,
        "manager": Manager,
        "pods": ResourceClient,
        "queue": RateLimitingQueue,
        "recorder": EventRecorder,
        "registration": HandlerRegistration,
        "request": Request(None, None, None),  # type: ignore[arg-type] # some attributes are of instances
    },
}
OPTIONS = {
    *(
        name
        for made in (Manager, Controller, SharedInformerFactory, Client)
        for name in inspect.signature(made).parameters
    ),
    *inspect.signature(SharedIndexInformer.add_event_handler).parameters,
    *InformerOptions.__annotations__,
    *("after", "controller_only", "resources", "signals", "size", "to"),
}
#: Programs, operators, words of Python, and arguments that a page leaves to its reader.
WORDS = {"aioinformer", "async", "&", "~", "is_in_initial_list", "widgets"}


def code_of(page: str) -> list[str]:
    """Return the code in the last column of the tables of a page."""
    rows = [line.split(" | ") for line in (DOCS / page).read_text().splitlines() if line.startswith("| ")]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row[-1])]


@pytest.mark.parametrize(("page", "code"), [(page, code) for page in VARIABLES for code in code_of(page)])
def test_names_of_the_page_exist(page: str, code: str) -> None:
    code = re.sub(r"^(?:async (?:with|def|for key in)|await|except) ", "", code)
    name, _, rest = re.split(r"[ (=]", code)[0].partition(".")
    if name in VARIABLES[page] and rest:
        assert hasattr(VARIABLES[page][name], rest.split(".")[0])
    elif name not in WORDS | VARIABLES[page].keys() | OPTIONS:
        assert any(hasattr(each, name) for each in (aioinformer, aioinformer.controller, aioinformer.testing))


@pytest.mark.parametrize("page", VARIABLES)
def test_options_of_the_page_exist(page: str) -> None:
    calls = [re.sub(r'"[^"]*"', "", code) for code in code_of(page)]
    assert {name for code in calls for name in re.findall(r"(\w+)=", code)} <= OPTIONS
