#!/usr/bin/env python3
"""Record the protobuf layout of Kubernetes' kinds.

    python scripts/record_protobuf.py v0.36.4

Needs Go, which downloads the modules of Kubernetes' API in that version; `protobuf_schema.go` reads their types. The
script keeps the kinds of requests and of the API versions in the catalog. It writes
`aioinformer/testing/data/protobuf.json`, which `aioinformer/testing/api/protobuf.py` reads.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aioinformer.resources.catalog import BUILTIN_RESOURCES

SOURCE = Path(__file__).resolve().with_name("protobuf_schema.go")
OUTPUT = SOURCE.parent.parent / "aioinformer" / "testing" / "data" / "protobuf.json"
MODULES = ("api", "apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator")
KEPT = {resource.api_version for resource in BUILTIN_RESOURCES} | {"meta.k8s.io/v1"}


def read_types(version: str) -> dict[str, Any]:
    """Return all messages and kinds."""
    with TemporaryDirectory() as directory:
        shutil.copy(SOURCE, directory)
        requirements = "".join(f"require k8s.io/{module} {version}\n" for module in MODULES)
        Path(directory, "go.mod").write_text(f"module schema\n\ngo 1.25\n\n{requirements}")
        environment = os.environ | {"GOFLAGS": "-mod=mod"}
        command = ["go", "run", "."]
        output = subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def reachable(messages: dict[str, dict[str, str]], kinds: dict[str, dict[str, str]]) -> set[tuple[str, str]]:
    """Return packages and names of the messages that the kinds contain."""
    found: set[tuple[str, str]] = set()
    waiting = [(package, kind) for packages in kinds.values() for kind, package in packages.items()]
    while waiting:
        package, name = waiting.pop()
        if (package, name) in found or name not in messages.get(package, ()):
            continue
        found.add((package, name))
        for kind in re.findall(r"[\w/.]+(?=;|$)", messages[package][name]):
            home, _, local = kind.rpartition(".")
            waiting.append((home or package, local))
    return found


def render(found: dict[str, Any]) -> str:
    """Return the text of the file."""
    kinds = {version: packages for version, packages in found["kinds"].items() if version in KEPT}
    used = reachable(found["messages"], kinds)
    common = set.intersection(*(set(packages) for version, packages in kinds.items() if version != "meta.k8s.io/v1"))
    rows = {"*": dict.fromkeys(common, "meta/v1")} | dict(sorted(kinds.items()))
    lines = []
    for version, packages in rows.items():
        names: dict[str, list[str]] = {}
        for kind, package in sorted(packages.items()):
            if version == "*" or kind not in common:
                names.setdefault(package, []).append(kind)
        lines.append(f'"{version}": {json.dumps({package: " ".join(kinds) for package, kinds in names.items()})}')
    messages = [f'"{package}.{name}": "{found["messages"][package][name]}"' for package, name in sorted(used)]
    return "\n".join(("{", '"kinds": {', ",\n".join(lines), "},", '"messages": {', ",\n".join(messages), "}", "}", ""))


def main() -> None:
    (version,) = sys.argv[1:]
    OUTPUT.write_text(render(read_types(version)), encoding="utf-8")


if __name__ == "__main__":
    main()
