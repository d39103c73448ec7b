"""Factories: informers of several resources, namespaces and selections that start and stop together."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.factory.dynamic import DynamicInformer, DynamicInformers
    from aioinformer.factory.factory import SharedInformerFactory
    from aioinformer.factory.multi_namespace import MultiNamespaceInformer
    from aioinformer.factory.reselecting import ReselectingInformer

__all__ = [
    "DynamicInformer",
    "DynamicInformers",
    "MultiNamespaceInformer",
    "ReselectingInformer",
    "SharedInformerFactory",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "dynamic": "DynamicInformer DynamicInformers",
            "factory": "SharedInformerFactory",
            "multi_namespace": "MultiNamespaceInformer",
            "reselecting": "ReselectingInformer",
        },
    )
