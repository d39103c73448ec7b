"""Imports: each module can be imported alone; rooms are imported on first use. `make layers` checks their direction."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import aioinformer

#: Python imports the parent packages of a module first. Every module that these do not import is imported with only
#: them present, as if it were the first.
EACH_ALONE = """
import importlib, json, pkgutil, sys, traceback

def ours():
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "aioinformer"}

def import_first(name, before):
    later = ours().keys() - before.keys()
    for each in later:
        package, _, leaf = each.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(leaf, None)
    for each in later:
        del sys.modules[each]
    try:
        importlib.import_module(name)
    except Exception:
        failures[name] = traceback.format_exc()
    return ours()

def import_each_of(package, before):
    there = import_first(package, before)
    if package in failures:
        return
    for _, name, is_package in pkgutil.iter_modules(sys.modules[package].__path__, package + "."):
        if is_package:
            import_each_of(name, there)
        elif name not in there:
            import_first(name, there)
        walked.append(name)

failures, walked = {}, []
import_each_of("aioinformer", {})
print(json.dumps([failures, walked]))
"""


def test_every_module_can_be_imported_first() -> None:
    run = subprocess.run([sys.executable, "-c", EACH_ALONE], capture_output=True, text=True, check=True)
    failures, walked = json.loads(run.stdout)
    assert failures == {}
    package = Path(aioinformer.__path__[0])
    modules_of_types = list((package / "models").glob("*/__init__.pyi"))
    assert len(walked) == len(list(package.rglob("*.py"))) - 1 + len(modules_of_types)


def modules_after(statement: str) -> set[str]:
    """Return the modules that a statement imports in a fresh interpreter."""
    script = f"{statement}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_package_imports_rooms_on_first_use() -> None:
    loaded = {name for name in modules_after("import aioinformer") if name.startswith("aioinformer.")}
    assert loaded == {"aioinformer.exports"}


def test_factory_does_not_import_what_it_may_not_need() -> None:
    loaded = modules_after("from aioinformer import SharedInformerFactory")
    assert "aioinformer.informer.shared_informer" in loaded
    ours = {"aioinformer.cli", "aioinformer.testing"}
    others = {"aiohttp", "anyio", "click", "dataclasses", "kubernetes_asyncio", "pytest", "rich", "yaml"}
    assert loaded & (ours | others) == set()


def test_pytest_plugin_does_not_import_the_server_or_transports() -> None:
    unwanted = {"aioinformer.testing.server.api_server", "aioinformer.transport", "kubernetes_asyncio", "aiohttp"}
    assert modules_after("import aioinformer.harness.plugin") & unwanted == set()
