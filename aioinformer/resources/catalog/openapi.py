"""The OpenAPI v3 documents of a real server, packed into one file, which is read on first use.

A line of the file has a path of the index, "api/v1" or "apis/apps/v1", and its document. The last two, "crd/namespaced"
and "crd/cluster", are those of a custom resource with placeholder names. `scripts/record_server.py` writes it.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Precedes the name of a schema in a reference.
REFERENCE = "#/components/schemas/"


@cache
def recorded_documents() -> Mapping[str, bytes]:
    """Return the documents by path. The first call takes 50 ms."""
    packed = resources.files("aioinformer.resources.catalog").joinpath("openapi-v3.xz").read_bytes()
    lines = (line.partition(b"\t") for line in lzma.decompress(packed).split(b"\n"))
    return {path.decode(): body for path, _, body in lines}


@cache
def schemas_of(path: str) -> Mapping[str, Any]:
    """Return the schemas of a document by name, "io.k8s.api.core.v1.Pod"; none if there is no such document."""
    body = recorded_documents().get(path)
    schemas: dict[str, Any] = json.loads(body)["components"].get("schemas", {}) if body else {}
    return schemas


@cache
def paths_of_schemas() -> Mapping[str, str]:
    """Return the document that has a schema, by the name of the schema."""
    paths = [path for path in recorded_documents() if not path.startswith("crd/")]
    return {name: path for path in reversed(paths) for name in schemas_of(path)}
