#!/usr/bin/env python3
"""Record the protobuf layout of Kubernetes' kinds.

    python scripts/record_protobuf.py v0.36.4

Needs Go, which downloads the modules of Kubernetes' API in that version; `protobuf_schema.go` reads their types. The
script keeps the kinds of requests and of the API versions in the catalog. It writes
`aioinformer/resources/catalog/protobuf.json`, which `go_structs.py` there reads.
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
from aioinformer.testing.schemas.openapi_v3 import builtin_documents

SOURCE = Path(__file__).resolve().with_name("protobuf_schema.go")
OUTPUT = SOURCE.parent.parent / "aioinformer" / "resources" / "catalog" / "protobuf.json"
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


def mark_merged(messages: dict[str, dict[str, str]]) -> None:
    """Mark what server-side apply merges or replaces, as the OpenAPI documents state."""
    for document in builtin_documents().values():
        for name, schema in json.loads(document.body)["components"].get("schemas", {}).items():
            group, version, kind = name.split(".")[-3:]
            fields = messages.get(f"{group}/{version}", {})
            if kind not in fields:
                continue
            for member, node in schema.get("properties", {}).items():
                is_map = "additionalProperties" in node and node.get("x-kubernetes-map-type") != "atomic"
                if is_map or node.get("x-kubernetes-list-type") in ("map", "set"):
                    fields[kind] = re.sub(rf"(?<= ){re.escape(member)}(?=[?! ])", f"{member}&", fields[kind], count=1)
            if schema.get("x-kubernetes-map-type") == "atomic" and not fields[kind].startswith("="):
                fields[kind] = f"={fields[kind]}"


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
    found = read_types(version)
    mark_merged(found["messages"])
    OUTPUT.write_text(render(found), encoding="utf-8")


if __name__ == "__main__":
    main()
