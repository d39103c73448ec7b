"""Objects that tests pass to kubectl."""

from __future__ import annotations

from typing import Any


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
    }


def deployment(name: str, replicas: int = 1, *containers: str) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": each, "image": f"example.com/{each}:1"} for each in containers or ("main",)]
                },
            },
        },
    }


def holds(stored: Any, sent: Any) -> bool:
    """Return whether an object has all values that were sent; it may have more."""
    if isinstance(sent, dict):
        # Older versions of kubectl send nulls for times that are not set.
        said = {key: value for key, value in sent.items() if value is not None}
        return isinstance(stored, dict) and all(holds(stored.get(key, {}), value) for key, value in said.items())
    if isinstance(sent, list):
        return isinstance(stored, list) and len(stored) == len(sent) and all(map(holds, stored, sent))
    return bool(stored == sent)
