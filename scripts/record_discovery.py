"""Record from a real API server what API classes do not contain: short names, singulars, categories, verbs.

Run it against a server of the same minor version as the installed kubernetes_asyncio, started with
`--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true`, so that it serves all resources:

    python scripts/record_discovery.py KUBECONFIG

It rewrites `scripts/discovery.json`, which `scripts/generate.py` reads.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kubernetes_asyncio import client, config

RECORD = Path(__file__).with_name("discovery.json")


async def discover(kubeconfig: str) -> dict[str, dict[str, Any]]:
    """Return what the server reports about each resource, by `group/version/plural` (core: `v1/plural`)."""
    configuration = client.Configuration()
    await config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    async with client.ApiClient(configuration) as api:

        async def get(path: str) -> Any:
            return await api.call_api(
                path,
                "GET",
                auth_settings=["BearerToken"],
                response_types_map={200: "object"},
                _return_http_data_only=True,
            )

        paths = ["/api/v1"]
        for group in (await get("/apis"))["groups"]:
            paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
        found: dict[str, dict[str, Any]] = {}
        for path in paths:
            answer = await get(path)
            for entry in answer["resources"]:
                plural, _, subresource = entry["name"].partition("/")
                resource = found.setdefault(f"{answer['groupVersion']}/{plural}", {"subresources": []})
                if subresource:
                    resource["subresources"].append(subresource)
                    continue
                resource["kind"] = entry["kind"]
                resource["namespaced"] = entry["namespaced"]
                resource["singular"] = entry["singularName"]
                resource["verbs"] = sorted(entry["verbs"])
                resource["shortNames"] = entry.get("shortNames") or []
                resource["categories"] = entry.get("categories") or []
    for resource in found.values():
        resource["subresources"].sort()
    return dict(sorted(found.items()))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = asyncio.run(discover(sys.argv[1]))
    lines = [f"{json.dumps(name)}: {json.dumps(resource, sort_keys=True)}" for name, resource in found.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
