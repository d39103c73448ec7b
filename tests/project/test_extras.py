"""A missing extra is named by each module that needs one, with the command that installs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: The names of imports that differ from those of packages.
IMPORTS = {
    "google-re2": "re2",
    "prometheus-client": "prometheus_client",
    "python-socks": "python_socks",
}
#: What needs an extra. Without pydantic, no class of it can be passed; who uses uvloop imports it.
USES = {
    "cli": "from aioinformer.cli import main; main()",
    "compression": (
        "from aioinformer import HttpTransport, SharedIndexInformer\n"
        "from aioinformer.reflector.listwatch import ListWatch\n"
        "from aioinformer.resources.catalog import find\n"
        "async def use():\n"
        "    lists = ListWatch(HttpTransport('http://127.0.0.1:1'), find('', 'v1', 'pods'))\n"
        "    SharedIndexInformer(lists, storage='compressed')\n"
        "import asyncio; asyncio.run(use())"
    ),
    "prometheus": "from aioinformer.prometheus import PrometheusMetrics",
    "socks": (
        "from aioinformer import HttpTransport\n"
        "async def use(): HttpTransport('https://127.0.0.1:1', proxy='socks5://127.0.0.1:2')\n"
        "import asyncio; asyncio.run(use())"
    ),
    "testing": (
        "from aioinformer.testing import ApiServer\n"
        "async def use():\n"
        "    async with ApiServer(tls=True): pass\n"
        "import asyncio; asyncio.run(use())"
    ),
    "web": "import aioinformer.web.fastapi",
    "webhooks": "from aioinformer.webhooks import WebhookServer; WebhookServer(name='a')",
}
_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {missing!r} else find(name, package)
"""


def test_every_extra_is_tested() -> None:
    assert set(USES) | {"pydantic", "uvloop"} == set(EXTRAS)


@pytest.mark.parametrize("extra", USES)
def test_missing_extra_is_named(extra: str) -> None:
    packages = [re.split("[<>=; ]", requirement)[0] for requirement in EXTRAS[extra]]
    missing = {IMPORTS.get(package, package) for package in packages}
    program = _WITHOUT.format(missing=missing) + USES[extra]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(rf"pip install ['\"]aioinformer\[{extra}\]['\"]", last), done.stderr
