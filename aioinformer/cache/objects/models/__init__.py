"""Immutable stand-ins for kubernetes_asyncio's model classes, made when a kind is read for the first time.

They have the attributes of the originals (`pod.spec.node_name`), and decode some forty times faster. Importing this
package does not import kubernetes_asyncio, nor does reading an object.
"""

from __future__ import annotations

from aioinformer.cache.objects.models.classes import struct_for
from aioinformer.cache.objects.models.decoding import decoder_for
from aioinformer.cache.objects.models.model import Model

__all__ = ["Model", "decoder_for", "struct_for"]
