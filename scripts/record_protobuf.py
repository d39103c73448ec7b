#!/usr/bin/env python3
"""Records how the kinds of Kubernetes are laid out in protobuf, from the source of its Go types.

    python scripts/record_protobuf.py v0.36.4

The modules k8s.io/api and k8s.io/apimachinery are downloaded by Go, as that version. Written is
`aioinformer/testing/data/protobuf.json.xz`: for each message its fields by number, each as its name in JSON, its type,
and letters for what else must be known:

- `p`: a pointer; a zero that is sent was set.
- `o`: left out of JSON when it is zero, unless it is a pointer.
- `r`: repeated. `m`: a map with string keys. `i`: inline, its fields are those of the message around it.

The .proto files that the modules carry would not do: they do not tell pointers from values.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "aioinformer" / "testing" / "data" / "protobuf.json.xz"
SHARED_PACKAGES = {
    "k8s.io/apimachinery/pkg/apis/meta/v1": "meta.k8s.io/v1",
    "k8s.io/apimachinery/pkg/runtime": "runtime",
    "k8s.io/apimachinery/pkg/api/resource": "resource",
    "k8s.io/apimachinery/pkg/util/intstr": "intstr",
    "k8s.io/apimachinery/pkg/types": "types",
}
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int32": "int",
    "int64": "int",
    "uint8": "int",
    "float64": "double",
    "[]byte": "bytes",
}
STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^type (\w+) (?:= )?((?:\[\]|map\[\w+\])?[\w.]+)(?:$|\s*//)", re.MULTILINE)
IMPORT = re.compile(r'^(?:import )?\s*(\w+ )?"(k8s\.io/[^"]+)"$', re.MULTILINE)
FIELD = re.compile(r'^\s+(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:"([^"]*)".*?protobuf:"([^"]*)"', re.MULTILINE)
GROUP = re.compile(r'^const GroupName = "(.*)"', re.MULTILINE)


@dataclass
class Package:
    """The types of one Go package."""

    path: str
    prefix: str
    structs: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    aliases: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)


def module(name: str, version: str) -> Path:
    command = ["go", "mod", "download", "-json", f"{name}@{version}"]
    return Path(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["Dir"])


def read_package(directory: Path, path: str, prefix: str) -> Package:
    package = Package(path, prefix)
    for file in sorted(directory.glob("*.go")):
        if file.name.endswith("_test.go") or file.name.startswith(("generated", "zz_generated")):
            continue
        text = file.read_text()
        imports = {(alias or where.rpartition("/")[2]).strip(): where for alias, where in IMPORT.findall(text)}
        package.structs |= {name: (body, imports) for name, body in STRUCT.findall(text)}
        package.aliases |= {name: (target, imports) for name, target in ALIAS.findall(text)}
    return package


class Recorder:
    """Follows types from package to package."""

    def __init__(self, packages: dict[str, Package]) -> None:
        self.packages = packages

    def messages(self) -> dict[str, dict[str, list[str]]]:
        recorded = {}
        for package in self.packages.values():
            for name, (body, imports) in package.structs.items():
                fields = dict(self.fields(package, body, imports))
                if fields:
                    recorded[f"{package.prefix}.{name}"] = fields
        return dict(sorted(recorded.items()))

    def fields(self, package: Package, body: str, imports: dict[str, str]) -> list[tuple[str, list[str]]]:
        found = []
        for name, go_type, json_tag, proto_tag in FIELD.findall(body):
            json_name, *options = json_tag.split(",")
            _, number, *_ = proto_tag.split(",")
            kind, flags = self.resolve(package, go_type, imports)
            flags += "o" * ("omitempty" in options)
            if not json_name:
                flags += "i" * ("inline" in options or not name)
            found.append((number, [json_name, kind, flags]))
        return found

    def resolve(self, package: Package, go_type: str, imports: dict[str, str]) -> tuple[str, str]:
        if go_type in SCALARS:
            return SCALARS[go_type], ""
        if go_type.startswith("*"):
            kind, flags = self.resolve(package, go_type[1:], imports)
            return kind, flags + "p"
        if go_type.startswith("[]"):
            return self.resolve(package, go_type[2:], imports)[0], "r"
        if go_type.startswith("map["):
            return self.resolve(package, go_type.partition("]")[2], imports)[0], "m"
        if "." in go_type:
            alias, _, name = go_type.partition(".")
            if imports[alias] not in self.packages:
                sys.exit(f"{package.path}: {go_type} is of a package that is not read")
            package, go_type = self.packages[imports[alias]], name
        if go_type in package.structs:
            return f"{package.prefix}.{go_type}", ""
        target, where = package.aliases[go_type]
        if target.startswith("[]"):
            # A list with a name is a message of its own, with the list as its only field.
            return f"list:{self.resolve(package, target[2:], where)[0]}", ""
        return self.resolve(package, target, where)


def main() -> None:
    version = sys.argv[1]
    api, machinery = module("k8s.io/api", version), module("k8s.io/apimachinery", version)
    packages = {}
    for register in sorted(api.glob("*/*/register.go")):
        path = f"k8s.io/api/{register.parent.relative_to(api)}"
        group = GROUP.search(register.read_text())
        assert group is not None, f"{register} does not name its group"
        packages[path] = read_package(register.parent, path, f"{group[1]}/{register.parent.name}".lstrip("/"))
    for path, prefix in SHARED_PACKAGES.items():
        packages[path] = read_package(machinery / path.removeprefix("k8s.io/apimachinery/"), path, prefix)
    messages = Recorder(packages).messages()
    packed = lzma.compress(json.dumps(messages, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME)
    OUTPUT.write_bytes(packed)
    print(f"{len(messages)} messages in {len(packed)} bytes")


if __name__ == "__main__":
    main()
