"""Generate what the package knows about the built-in resources, from the classes of kubernetes_asyncio.

Without options, the script writes the files that are out of date. With `--check` it prints their names, and exits with
status 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import definitions
import introspection
from render_accessors import CLIENT, FACTORY, render_accessors
from render_catalog import render_catalog
from render_exports import render_exports
from render_models import render_models
from render_shapes import render_shapes
from render_troubleshooting import render_troubleshooting

PROJECT = Path(__file__).resolve().parent.parent


def generate() -> dict[str, str]:
    """Return the text of each generated file, by its path in the project."""
    resources = introspection.resources()
    discovery = json.loads((PROJECT / "scripts" / "discovery.json").read_text())
    types = definitions.types(introspection.shapes(), resources)
    return {
        "aioinformer/resources/catalog/rows.py": render_catalog(resources, discovery),
        "aioinformer/cache/objects/models/shapes.json": render_shapes(
            introspection.shapes(), definitions.required_collections(types), definitions.quantities(types)
        ),
        **render_exports(),
        **render_troubleshooting(),
        **render_models(types, resources),
        "aioinformer/factory/accessors.pyi": render_accessors(resources, discovery, FACTORY),
        "aioinformer/client/accessors.pyi": render_accessors(resources, discovery, CLIENT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print what is out of date, and exit with status 1 if there is any",
    )
    check = parser.parse_args().check
    stale = []
    for name, text in generate().items():
        path = PROJECT / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    print("\n".join(f"{'out of date' if check else 'wrote'}: {name}" for name in stale) or "everything is up to date")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
