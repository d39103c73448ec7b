"""What the types of all groups have in common."""

from __future__ import annotations

from aioinformer.cache.objects.metadata import MetadataView, ObjectMeta
from aioinformer.cache.objects.models import Model
from aioinformer.cache.objects.views import ModelView as Object

__all__ = ["MetadataView", "Model", "Object", "ObjectMeta"]
