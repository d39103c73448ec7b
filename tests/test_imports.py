"""What an import costs: each module stands alone, and the package brings in only what an informer needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

EACH_ALONE = """
import importlib, json, pkgutil, sys, traceback
import aioinformer

failures = {}
for name in sorted(module.name for module in pkgutil.walk_packages(aioinformer.__path__, "aioinformer.")):
    for loaded in [module for module in sys.modules if module.partition(".")[0] == "aioinformer"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except Exception:
        failures[name] = traceback.format_exc()
print(json.dumps(failures))
"""


def test_every_module_can_be_the_first_one_imported() -> None:
    run = subprocess.run([sys.executable, "-c", EACH_ALONE], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {}


@pytest.fixture(scope="module")
def modules_of_the_package() -> set[str]:
    """Everything that `import aioinformer` brings into a fresh interpreter."""
    script = "import json, sys, aioinformer; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(
    "module", ["aioinformer.cli", "aioinformer.testing", "click", "kubernetes_asyncio", "pytest", "rich"]
)
def test_the_package_is_imported_without(module: str, modules_of_the_package: set[str]) -> None:
    assert module not in modules_of_the_package
