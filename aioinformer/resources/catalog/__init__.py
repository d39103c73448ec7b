"""The catalog: all resources that kube-apiserver itself serves, without any server or client library.

Its rows are generated from kubernetes_asyncio's API classes and from the discovery of a real server (short names,
singulars, categories). They include alpha and beta versions, which a server may have disabled.
"""

from __future__ import annotations

from typing import Any

from aioinformer.resources.catalog.rows import ROWS
from aioinformer.resources.resource import Resource

__all__ = ["BUILTIN_RESOURCES", "by_kind", "find"]

BUILTIN_RESOURCES: tuple[Resource[Any], ...] = tuple(Resource(*row) for row in ROWS)
"""All built-in resources, sorted by group, version and plural. Some of them can only be created."""

_BY_PLURAL = {(resource.group, resource.version, resource.plural): resource for resource in BUILTIN_RESOURCES}
_BY_KIND = {(resource.group, resource.version, resource.kind): resource for resource in BUILTIN_RESOURCES}


def find(group: str, version: str, plural: str) -> Resource[Any] | None:
    """Return the built-in resource of this name, None for a custom one or one of another version of Kubernetes.

    Args:
        group: API group, "" for the core group.
        version: "v1", "v1beta1" …
        plural: as in URLs, "pods".
    """
    return _BY_PLURAL.get((group, version, plural))


def by_kind(group: str, version: str, kind: str) -> Resource[Any] | None:
    """Return the built-in resource whose objects have this kind, or None."""
    return _BY_KIND.get((group, version, kind))
