#!/usr/bin/env python3
"""Record from a real API server the data that the server in `aioinformer.testing` repeats literally.

    kubectl config use-context SOME-DISPOSABLE-CLUSTER   # with --runtime-config=api/all=true, to record everything
    python scripts/record_server.py

The script writes two files in `aioinformer/testing/data/`, and the first one in `aioinformer/resources/catalog/`:

- `openapi-v3.xz`: the OpenAPI v3 documents, one per line, as `path<TAB>document`. They are compressed together because
  they share most of their text. The last two lines, `crd/namespaced` and `crd/cluster`, are the documents of a custom
  resource with placeholder names.
- `columns.json`: the columns of the server's tables, by `group/version/plural`: name, type, format, priority and the
  number of their description; and those of all other resources, as "name and age".
- `roles.json`: the default roles and bindings of a cluster, by resource, as the controller of aggregated roles has
  written them.

The documents are part of Kubernetes (Apache License 2.0, The Kubernetes Authors), as `NOTICE` in both folders
states. At the end, the script removes the two definitions that it has created on the server.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

PACKAGE = Path(__file__).resolve().parent.parent / "aioinformer"
DATA = PACKAGE / "testing" / "data"
CATALOG = PACKAGE / "resources" / "catalog"
GROUP, VERSION = "standingroup.io", "v7"
LEFT_OUT = ("openid/", ".well-known/", "version")
#: The resources whose tables have columns of their own.
WITH_COLUMNS = (
    "apps/v1/deployments",
    "apps/v1/replicasets",
    "batch/v1/jobs",
    "events.k8s.io/v1/events",
    "v1/configmaps",
    "v1/events",
    "v1/namespaces",
    "v1/nodes",
    "v1/pods",
    "v1/services",
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def kubectl(*arguments: str, text: str = "") -> str:
    """Run kubectl and return its output."""
    command = ["kubectl", *arguments]
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def raw(path: str) -> str:
    """Return the response to a GET request."""
    return kubectl("get", "--raw", path)


def placeholder_definition(scope: str) -> dict[str, Any]:
    """Return a CustomResourceDefinition with placeholder names."""
    kind = f"Standin{scope.lower()}kind"
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{kind.lower()}s", "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]},
    }


def record_definition(scope: str) -> str:
    """Return the OpenAPI document of a custom resource with placeholder names."""
    definition = placeholder_definition(scope)
    name = definition["metadata"]["name"]
    kubectl("create", "-f", "-", text=json.dumps(definition))
    try:
        kubectl("wait", "--for=condition=Established", f"crd/{name}")
        path = f"apis/{GROUP}/{VERSION}"
        for _ in range(60):
            if path in json.loads(raw("/openapi/v3"))["paths"]:
                return raw(f"/openapi/v3/{path}")
            time.sleep(0.5)
        sys.exit(f"the server does not publish {path} in its OpenAPI documents")
    finally:
        kubectl("delete", "crd", name, "--wait=true")
        while f"apis/{GROUP}/{VERSION}" in json.loads(raw("/openapi/v3"))["paths"]:
            time.sleep(0.5)


def record_documents() -> bytes:
    """Return all OpenAPI documents, one per line."""
    paths = [path for path in sorted(json.loads(raw("/openapi/v3"))["paths"]) if not path.startswith(LEFT_OUT)]
    lines = [f"{path}\t{raw(f'/openapi/v3/{path}').strip()}" for path in paths]
    lines += [f"crd/{scope.lower()}\t{record_definition(scope).strip()}" for scope in ("Namespaced", "Cluster")]
    return "\n".join(lines).encode()


def record_columns(server: str) -> dict[str, list[list[Any]]]:
    """Return the columns of all tables."""
    columns: dict[str, list[list[Any]]] = {}
    groups = json.loads(raw("/apis"))["groups"]
    versions = ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]
    for version in versions:
        path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        for resource in json.loads(raw(path))["resources"]:
            if "list" in resource["verbs"]:
                table = fetch_table(f"{server}{path}/{resource['name']}?limit=1")
                columns[f"{version}/{resource['name']}"] = [
                    [column["name"], column["type"], column["format"], column["priority"], column["description"]]
                    for column in table["columnDefinitions"]
                ]
    return columns


def fetch_table(url: str) -> dict[str, Any]:
    """Return a list as a table."""
    with urlopen(Request(url, headers={"Accept": TABLE})) as response:
        table: dict[str, Any] = json.load(response)
    return table


def record_roles() -> dict[str, list[dict[str, Any]]]:
    """Return the default roles and bindings."""
    roles = {}
    for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        path = f"/apis/rbac.authorization.k8s.io/v1/{plural}?labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults"
        roles[plural] = json.loads(raw(path))["items"]
        for role in roles[plural]:
            for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                role["metadata"].pop(field, None)
    return roles


def render_roles(roles: dict[str, list[dict[str, Any]]]) -> str:
    """Return the text of `roles.json`."""
    parts = []
    for plural, objects in roles.items():
        rows = ",\n".join(f"    {json.dumps(obj, separators=(',', ':'))}" for obj in objects)
        parts.append(f'  "{plural}": [\n{rows}\n  ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def render_columns(columns: dict[str, list[list[Any]]]) -> str:
    """Return the text of `columns.json`."""
    descriptions = sorted({column[-1] for row in columns.values() for column in row})
    numbered = {
        name: [[*column[:-1], descriptions.index(column[-1])] for column in row] for name, row in columns.items()
    }
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(numbered.items()))
    texts = ",\n".join(f"    {json.dumps(text)}" for text in descriptions)
    return f'{{\n  "columns": {{\n{rows}\n  }},\n  "descriptions": [\n{texts}\n  ]\n}}\n'


def main() -> None:
    DATA.mkdir(exist_ok=True)
    packed = lzma.compress(record_documents(), preset=9 | lzma.PRESET_EXTREME)
    (CATALOG / "openapi-v3.xz").write_bytes(packed)
    proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert proxy.stdout is not None
        columns = record_columns("http://" + proxy.stdout.readline().rsplit(" ", 1)[-1].strip())
    finally:
        proxy.terminate()
        proxy.wait()
    name_and_age = [column for column in columns["v1/configmaps"] if column[0] in ("Name", "Age")]
    kept = {name: columns[name] for name in WITH_COLUMNS} | {"name and age": name_and_age}
    (DATA / "columns.json").write_text(render_columns(kept))
    (DATA / "roles.json").write_text(render_roles(record_roles()))
    print(f"{len(packed)} bytes of documents, columns of {len(columns)} resources")


if __name__ == "__main__":
    main()
