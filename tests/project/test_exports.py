"""The public names: each has one address, exists there, and is documented."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections import Counter

import pytest

from aioinformer.exports import ADDRESSES, modules_of

#: Each public name with its address.
PUBLIC = [(address, name) for address in ADDRESSES for name in modules_of(address)]

every_address = pytest.mark.parametrize("address", ADDRESSES)


@every_address
def test_each_name_exists_and_is_listed_once(address: str) -> None:
    module = importlib.import_module(address)
    assert sorted(" ".join(ADDRESSES[address].values()).split()) == module.__all__
    assert set(module.__all__) <= set(dir(module))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@every_address
def test_each_name_is_documented(address: str) -> None:
    module = importlib.import_module(address)
    exports = {name: getattr(module, name) for name in modules_of(address)}
    undocumented = [name for name, value in exports.items() if _can_have_docs(value) and not inspect.getdoc(value)]
    undocumented += [
        f"{name}.{member}"
        for name, value in exports.items()
        if inspect.isclass(value)
        for member, attribute in vars(value).items()
        if not member.startswith("_")
        and (inspect.isroutine(attribute) or isinstance(attribute, property))
        and not inspect.getdoc(getattr(value, member))
    ]
    assert undocumented == []


def test_each_name_means_one_thing() -> None:
    """Those for one framework have the names of those for another one."""
    frameworks = ("aioinformer.web.aiohttp", "aioinformer.web.fastapi")
    names = Counter(name for address, name in PUBLIC if address not in frameworks)
    assert [name for name, count in names.items() if count > 1] == []


def test_each_object_has_one_address() -> None:
    objects = Counter(id(getattr(importlib.import_module(address), name)) for address, name in PUBLIC)
    assert [each for each in PUBLIC if objects[id(getattr(sys.modules[each[0]], each[1]))] > 1] == []


@every_address
def test_name_of_another_address_is_looked_up(address: str) -> None:
    module = importlib.import_module(address)
    name = "ThreadSafeStore" if address == "aioinformer.queue" else "RealFIFO"
    room = "aioinformer.cache" if address == "aioinformer.queue" else "aioinformer.queue"
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=f"^module '{address}' has no attribute '{name}': {name} is in {room}$"):
        getattr(module, name)
    with pytest.raises(AttributeError, match=f"^module '{address}' has no attribute 'Nothing'$"):
        module.Nothing  # noqa: B018


def test_looking_up_an_address_imports_no_room() -> None:
    script = """
import sys, aioinformer
try:
    aioinformer.UndeltaStore
except AttributeError as error:
    print(error, sorted(name for name in sys.modules if name.startswith("aioinformer.")))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = "module 'aioinformer' has no attribute 'UndeltaStore': UndeltaStore is in aioinformer.cache"
    assert run.stdout == f"{found} ['aioinformer.exports']\n"


def _can_have_docs(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)
