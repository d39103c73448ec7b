"""A Deployment that is applied, and what changes in it."""

from __future__ import annotations

import copy
from typing import Any

LABELS = {"app": "web"}


DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": LABELS, "finalizers": ["example.com/a"]},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "example.com/web:1",
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    },
                    {"name": "side", "image": "example.com/side:1", "args": ["-v", "2"]},
                ],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "nodeSelector": {"disk": "fast"},
            },
        },
    },
}


def changed(*path: Any, to: Any = ..., by: Any = DEPLOYMENT) -> dict[str, Any]:
    """Return a copy of the configuration with another value at a path; without a value, the member is left out."""
    made: dict[str, Any] = copy.deepcopy(by)
    node: Any = made
    for step in path[:-1]:
        node = node[step]
    if to is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return made


POD = ("spec", "template", "spec")


MAIN = (*POD, "containers", 0)


CHANGES = [
    changed("spec", "replicas", to=3),
    changed("spec", "replicas", to=2.0),
    changed("spec", "paused", to=True),
    changed("metadata", "labels", to={"app": "web", "b": "c"}),
    changed("metadata", "annotations", to={"a": "b"}),
    changed("metadata", "finalizers", to=[]),
    changed("metadata", "finalizers", to=["example.com/a", "example.com/b"]),
    changed("metadata", "resourceVersion", to="1"),
    changed(*MAIN, "image", to="example.com/web:2"),
    changed(*MAIN, "env", to=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
    changed(*MAIN, "env", to=[{"name": "A", "value": "1"}]),
    changed(*MAIN, "env", 0, "value", to="2"),
    changed(*MAIN, "ports", 0, "protocol", to="TCP"),
    changed(*MAIN, "ports", 0, "containerPort", to=81),
    changed(*MAIN, "resources", "limits", "cpu", to="1001m"),
    changed(*POD, "containers", to=list(reversed(DEPLOYMENT["spec"]["template"]["spec"]["containers"]))),
    changed(*POD, "containers", 1, "args", to=["2", "-v"]),
    changed(*POD, "volumes", 0, "emptyDir", to={"medium": "Memory"}),
    changed(*POD, "nodeSelector", to={"disk": "slow"}),
    changed("spec", "selector", to=None),
    changed("status", to={"replicas": 1}),
    changed("apiVersion", to="apps/v1beta1"),
]


def without_version(obj: Any) -> Any:
    """Return the content of an object. Real servers store some kinds again, unchanged, after their creation."""
    document = obj.to_dict()
    del document["metadata"]["resourceVersion"]
    return document
