"""`help()`, `inspect.signature()` and type hints work for all public names, and frameworks may evaluate them."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import typing
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import Depends, FastAPI
from kubernetes_asyncio.client import ApiClient

from aioinformer import Resource, SharedInformerFactory
from aioinformer.exports import ADDRESSES, modules_of
from aioinformer.transport import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLABLES = {
    f"{address}.{name}": value
    for address in ADDRESSES
    for name in modules_of(address)
    if inspect.isclass(value := getattr(importlib.import_module(address), name)) or inspect.isroutine(value)
}
CLASSES = {name: value for name, value in CALLABLES.items() if inspect.isclass(value)}


def methods_of(cls: type) -> Iterator[Any]:
    """Yield the functions of the public methods and properties that classes of this package define."""
    for base in cls.__mro__:
        for name, member in vars(base).items() if base.__module__.startswith("aioinformer.") else ():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
                yield function


@pytest.mark.parametrize("address", CALLABLES)
def test_help_and_signature(address: str) -> None:
    value = CALLABLES[address]
    assert pydoc.render_doc(value)
    # Python knows none of errors, dictionaries and texts whose class has no `__init__`.
    with suppress(ValueError):
        inspect.signature(value)
        inspect.signature(value, eval_str=True)


@pytest.mark.parametrize("address", CALLABLES)
def test_type_hints(address: str) -> None:
    typing.get_type_hints(CALLABLES[address])


@pytest.mark.parametrize("address", CLASSES)
def test_type_hints_of_methods(address: str) -> None:
    for method in methods_of(CLASSES[address]):
        typing.get_type_hints(method)


def test_lazy_types_are_the_classes() -> None:
    hints = typing.get_type_hints(SharedInformerFactory.__init__)
    assert {Connection, ApiClient} <= set(typing.get_args(hints["client"]))


async def test_struct_can_be_a_dependency_of_fastapi() -> None:
    app = FastAPI()
    query = b"group=apps&version=v1&plural=deployments&kind=Deployment"
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": query}
    sent: list[Any] = []

    @app.get("/")
    def path(resource: Any = Depends(Resource)) -> str:  # noqa: B008
        return f"{resource.api_version} {resource.plural}"

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert sent[1]["body"] == b'"apps/v1 deployments"'
