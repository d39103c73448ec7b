"""`factory.apps.v1.deployments`: every built-in resource by attributes, with the types that editors and mypy need."""

from __future__ import annotations

from aioinformer.factory.accessors.access import ClusterAccessor, InformerSource, NamespacedAccessor, ResourceAccessor
from aioinformer.factory.accessors.groups import Accessors

__all__ = ["Accessors", "ClusterAccessor", "InformerSource", "NamespacedAccessor", "ResourceAccessor"]
