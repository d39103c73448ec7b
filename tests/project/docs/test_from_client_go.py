"""Check that the names in the tables for users of client-go exist."""

from __future__ import annotations

import inspect
import re

import pytest

import aioinformer
import aioinformer.testing
from aioinformer import (
    Client,
    EventRecorder,
    HandlerRegistration,
    Indexer,
    LeaderElector,
    Lister,
    NamespaceLister,
    RateLimitingQueue,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.client import ResourceClient
from aioinformer.informer import InformerOptions
from tests.project.docs.blocks import DOCS

ROWS = [line.split(" | ") for line in (DOCS / "from-client-go.md").read_text().splitlines() if line.startswith("| `")]
CODE = [code for _, ours in ROWS for code in re.findall(r"`([^`]+)`", ours)]
#: What the variables of the page stand for.
VARIABLES = {
    "client": ResourceClient,
    "elector": LeaderElector,
    "factory": SharedInformerFactory,
    "indexer": Indexer,
    "informer": SharedIndexInformer,
    "lister": Lister,
    "queue": RateLimitingQueue,
    "recorder": EventRecorder,
    "registration": HandlerRegistration,
}
#: Parameters, and arguments that the page leaves to its reader.
WORDS = {"is_in_initial_list", "on_add", "informer", "aioinformer"}


@pytest.mark.parametrize("code", CODE)
def test_names_of_the_page_exist(code: str) -> None:
    code = re.sub(r"^(?:async (?:with|for key in)|except) ", "", code)
    name, _, rest = re.split(r"[ (]", code)[0].partition(".")
    if name in VARIABLES and rest:
        member = rest.split(".")[0]
        assert hasattr(VARIABLES[name], member)
    elif name not in WORDS and name not in VARIABLES:
        assert hasattr(aioinformer, name) or hasattr(aioinformer.testing, name)


def test_options_of_the_page_exist() -> None:
    options = inspect.signature(SharedInformerFactory).parameters.keys()
    handlers = inspect.signature(SharedIndexInformer.add_event_handler).parameters.keys()
    of_clients = inspect.signature(Client).parameters.keys()
    known = {*options, *of_clients, *handlers, *InformerOptions.__annotations__}
    assert {name for code in CODE for name in re.findall(r"(\w+)=", code)} <= known


def test_methods_behind_calls_exist() -> None:
    assert hasattr(Indexer, "by_index")
    assert hasattr(NamespaceLister, "get")
