"""Names of functions for messages, with file and line."""

from __future__ import annotations

import functools
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from aioinformer import functions
from aioinformer.functions import function_name, origin, place


def plain(obj: Any) -> None: ...


async def coroutine(obj: Any) -> None: ...


class Shop:
    def on_add(self, obj: Any) -> None: ...

    @staticmethod
    def static(obj: Any) -> None: ...

    def __call__(self, obj: Any) -> None: ...


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@decorated
@decorated
def wrapped(obj: Any) -> None: ...


def line_of(function: Any) -> int:
    line: int = function.__code__.co_firstlineno
    return line


FILE = "basics/test_functions.py"
_lambda = lambda obj: None  # noqa: E731 - the subject


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (plain, f"plain at {FILE}:{line_of(plain)}"),
        (coroutine, f"coroutine at {FILE}:{line_of(coroutine)}"),
        (_lambda, f"<lambda> at {FILE}:{line_of(_lambda)}"),
        (Shop().on_add, f"Shop.on_add at {FILE}:{line_of(Shop.on_add)}"),
        (Shop.static, f"Shop.static at {FILE}:{line_of(Shop.static)}"),
        (Shop(), f"Shop at {FILE}:{line_of(Shop.__call__)}"),
        (functools.partial(plain, 1), f"plain at {FILE}:{line_of(plain)}"),
        (functools.partial(functools.partial(Shop().on_add), 1), f"Shop.on_add at {FILE}:{line_of(Shop.on_add)}"),
        (wrapped, f"wrapped at {FILE}:{line_of(wrapped.__wrapped__.__wrapped__)}"),
        ([].append, "list.append"),
        (print, "print"),
        (int, "int"),
        (None, "NoneType"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_function_name_has_file_and_line(function: Any, name: str) -> None:
    assert function_name(function) == name


def test_local_function_name_omits_its_enclosing_function() -> None:
    class Local:
        def on_add(self, obj: Any) -> None: ...

    assert function_name(Local().on_add).startswith("Local.on_add at ")


def test_endless_wrappers_are_not_followed() -> None:
    class Endless:
        @property
        def __wrapped__(self) -> Any:
            return Endless()

        def __call__(self) -> None: ...

    assert function_name(Endless()).startswith("Endless at ")


def test_place_is_the_last_two_parts_of_a_path() -> None:
    assert place("/srv/app/controllers/shop.py", 42) == "controllers/shop.py:42"
    assert place("<string>", 1) == "<string>:1"


def test_error_origin_is_type_and_place_without_message() -> None:
    def fails() -> None:
        raise ValueError("secret")

    with pytest.raises(ValueError, match="secret") as caught:
        fails()
    assert origin(caught.value) == f"ValueError at {FILE}:{line_of(fails) + 1}"
    assert origin(KeyError("secret")) == "KeyError"


@pytest.mark.parametrize(
    ("files", "innermost"),
    [
        (["{own}/a.py", "/srv/shop.py", "{installed}/aiohttp/client.py", "{standard}/asyncio/tasks.py"], 1),
        (["/srv/main.py", "{own}/a.py", "/srv/shop.py", "{own}/b.py"], 2),
        (
            [
                "{own}/a.py",
                "{installed}/shop/run.py",
                "{installed}/shopping/list.py",
                "{installed}/shop/dns.py",
                "<string>",
            ],
            3,
        ),
        (["{own}/a.py", "{standard}/asyncio/tasks.py", "{installed}/shop.py", "{installed}/aiohttp/client.py"], 2),
        (["{own}/a.py", "{standard}/json/decoder.py"], 1),
    ],
)
def test_innermost_user_code_is_no_library_even_if_all_is_installed(files: list[str], innermost: int) -> None:
    places = {
        "own": str(Path(functions.__file__).parent),
        "standard": sysconfig.get_path("stdlib"),
        "installed": sysconfig.get_path("purelib"),
    }
    assert functions.innermost_user_code([each.format(**places) for each in files]) == innermost
