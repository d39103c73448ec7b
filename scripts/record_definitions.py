#!/usr/bin/env python3
"""Record what the API says about the types of the built-in resources: which attributes are required, and descriptions.

    python scripts/record_definitions.py kubernetes/api/openapi-spec/swagger.json v1.36.4

The first argument is the OpenAPI document in the repository of Kubernetes, the second its version. The script writes
`scripts/definitions.xz`, the input of `scripts/render_models.py`: one JSON document with the version and the
definitions by name: description, required properties, and for each property a list of its description and its reference
or format.

The texts are part of Kubernetes (Apache License 2.0, The Kubernetes Authors).
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parent / "definitions.xz"


def main() -> None:
    source, version = sys.argv[1:]
    definitions = json.loads(Path(source).read_text())["definitions"]
    recorded = {name: _definition(text) for name, text in sorted(definitions.items())}
    text = json.dumps({"version": version, "definitions": recorded}, separators=(",", ":"), sort_keys=True)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    OUTPUT.write_bytes(packed)
    print(f"{len(recorded)} definitions of {version}, {len(packed)} bytes")


def _definition(schema: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: [each.get("description", ""), _shape(each)] for name, each in schema.get("properties", {}).items()
    }
    return {
        "description": schema.get("description", ""),
        "required": schema.get("required", []),
        "properties": properties,
    }


def _shape(schema: dict[str, Any]) -> str:
    """Return the definition, format or type of a value; for lists and maps, those of an element."""
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict):
        return _shape(inner)
    return str(schema.get("$ref", "").removeprefix("#/definitions/") or schema.get("format") or schema.get("type", ""))


if __name__ == "__main__":
    main()
