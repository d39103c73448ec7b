"""The modules of types: Python finds, loads, lists and reloads them like modules with source files."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pickle
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import aioinformer
import aioinformer.models
from aioinformer.resources import BUILTIN_RESOURCES

FOLDER = Path(aioinformer.models.__file__).parent
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.pyi"))

#: Each is executed in a new interpreter, and raises if the module is not there.
IMPORTS = {
    "import": "import aioinformer.models.apps_v1\nassert aioinformer.models.apps_v1.Deployment",
    "import as": "import aioinformer.models.apps_v1 as apps\nassert apps.Deployment",
    "from package": "from aioinformer.models import apps_v1\nassert apps_v1.Deployment",
    "from module": "from aioinformer.models.apps_v1 import DEPLOYMENTS, Deployment",
    "by name": "import importlib\nassert importlib.import_module('aioinformer.models.apps_v1').Deployment",
    "find": "import importlib.util\nassert importlib.util.find_spec('aioinformer.models.apps_v1').has_location",
    "find other": "import importlib.util\nassert importlib.util.find_spec('aioinformer.models.apps_v9') is None",
    "star": "from aioinformer.models.apps_v1 import *",
    "after clearing": (
        "import importlib, sys, aioinformer.models\nsys.path_importer_cache.clear()\nimportlib.invalidate_caches()\n"
        "from aioinformer.models.apps_v1 import Deployment"
    ),
    "reload of the package": (
        "import importlib, aioinformer.models\nimportlib.reload(aioinformer.models)\n"
        "from aioinformer.models import apps_v1\nassert apps_v1.Deployment"
    ),
}


def execute(program: str, path: str = "") -> None:
    command = [sys.executable, "-c", f"import sys\nif {path!r}: sys.path.insert(0, {path!r})\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def module(name: str) -> Any:
    return importlib.import_module(f"aioinformer.models.{name}")


@pytest.mark.parametrize("program", IMPORTS.values(), ids=IMPORTS)
def test_modules_are_found_in_each_way(program: str) -> None:
    execute(program)


def test_modules_are_found_in_a_zip_file(tmp_path: Path) -> None:
    path = tmp_path / "site.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for each in FOLDER.parent.rglob("*"):
            if each.suffix in (".py", ".pyi", ".json", ".txt"):
                archive.write(each, each.relative_to(FOLDER.parent.parent))
    execute(
        "from aioinformer.models import core_v1\nimport importlib.util\n"
        "assert 'site.zip' in core_v1.__spec__.origin\nassert 'Pod' in dir(core_v1)\n"
        "assert importlib.util.find_spec('aioinformer.models.apps_v1')",
        str(path),
    )


def test_modules_without_stubs_are_found(tmp_path: Path) -> None:
    for each in FOLDER.parent.rglob("*"):  # as in images from which all but the code is removed
        if each.suffix in (".py", ".json", ".txt"):
            target = tmp_path / each.relative_to(FOLDER.parent.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(each.read_bytes())
    execute(
        f"from aioinformer.models import core_v1\nassert core_v1.__file__.startswith({str(tmp_path)!r})\n"
        "assert core_v1.Pod.__name__ == 'Pod'",
        str(tmp_path),
    )


def test_packages_list_their_modules() -> None:
    found = {name for _, name, _ in pkgutil.iter_modules(aioinformer.models.__path__, "aioinformer.models.")}
    assert found >= {f"aioinformer.models.{name}" for name in NAMES}
    walked = [name for _, name, _ in pkgutil.walk_packages(aioinformer.__path__, "aioinformer.")]
    assert walked.count("aioinformer.models.core_v1") == 1


@pytest.mark.parametrize("name", NAMES)
def test_each_stub_has_a_module(name: str) -> None:
    found = module(name)
    assert found.__doc__.startswith(("The types of ", "Types of "))
    assert found.__package__ == "aioinformer.models"
    assert not hasattr(found, "__path__")
    missing = [each for each in dir(found) if not hasattr(found, each)]
    assert missing == []


def test_modules_have_the_kinds_of_the_catalog() -> None:
    for resource in BUILTIN_RESOURCES:
        found = module(f"{resource.group.partition('.')[0] or 'core'}_{resource.version}")
        assert getattr(found, resource.kind).__name__ == resource.kind
        assert resource in [getattr(found, name) for name in dir(found) if name.isupper()]


def test_modules_can_be_inspected_and_reloaded() -> None:
    apps = module("apps_v1")
    assert apps.__name__ == apps.__spec__.name == "aioinformer.models.apps_v1"
    assert "class Deployment(Object" in inspect.getsource(apps)
    before = apps.Deployment
    assert importlib.reload(apps) is apps
    assert apps.Deployment is before
    assert {"Deployment", "DeploymentSpec", "DEPLOYMENTS", "__doc__"} <= set(dir(apps))
    with pytest.raises(AttributeError, match=r"module 'aioinformer\.models\.apps_v1' has no attribute 'Deploymnt'"):
        _ = apps.Deploymnt


def test_parts_survive_pickling() -> None:
    spec = module("core_v1").Container(name="web")
    assert pickle.loads(pickle.dumps(spec)) == spec
