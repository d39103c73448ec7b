"""Immutable counterparts of kubernetes_asyncio's model classes, built when a kind is first read.

They have the same attributes (`pod.spec.node_name`), and decode about forty times faster. Neither the import of this
package nor reading an object imports kubernetes_asyncio.
"""

from __future__ import annotations

from aioinformer.cache.objects.models.classes import struct_for
from aioinformer.cache.objects.models.decoding import decoder_for
from aioinformer.cache.objects.models.model import Model

__all__ = ["Model", "decoder_for", "struct_for"]
