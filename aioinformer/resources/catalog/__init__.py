"""Every resource that kube-apiserver itself serves, as values: no server and no client library is asked.

The rows are generated from kubernetes_asyncio's API classes, together with what a real server's discovery adds
(short names, singulars, categories). Alpha and beta versions are listed whether or not a server has them switched on.
"""

from __future__ import annotations

from typing import Any

from aioinformer.resources.catalog.rows import ROWS
from aioinformer.resources.resource import Resource

__all__ = ["BUILTIN_RESOURCES", "by_kind", "find"]

BUILTIN_RESOURCES: tuple[Resource[Any], ...] = tuple(Resource(*row) for row in ROWS)
"""All built-in resources, sorted by group, version and plural; those that can only be created are among them."""

_BY_PLURAL = {(resource.group, resource.version, resource.plural): resource for resource in BUILTIN_RESOURCES}
_BY_KIND = {(resource.group, resource.version, resource.kind): resource for resource in BUILTIN_RESOURCES}


def find(group: str, version: str, plural: str) -> Resource[Any] | None:
    """The built-in resource of this name, or None: then it is a custom one, or of another Kubernetes.

    Args:
        group: API group, "" for the core group.
        version: "v1", "v1beta1" …
        plural: as in URLs, "pods".
    """
    return _BY_PLURAL.get((group, version, plural))


def by_kind(group: str, version: str, kind: str) -> Resource[Any] | None:
    """The built-in resource whose objects are of this kind, or None.

    Args:
        group: API group, "" for the core group.
        version: "v1", "v1beta1" …
        kind: as in objects, "Pod".
    """
    return _BY_KIND.get((group, version, kind))
