"""Factories: informers of several resources, namespaces and selections that start and stop together."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.factory.dynamic import DynamicInformer as DynamicInformer
    from aioinformer.factory.dynamic import DynamicInformers as DynamicInformers
    from aioinformer.factory.factory import SharedInformerFactory as SharedInformerFactory
    from aioinformer.factory.multi_namespace import MultiNamespaceInformer as MultiNamespaceInformer
    from aioinformer.factory.reselecting import ReselectingInformer as ReselectingInformer
else:  # a type checker must not accept misspelt names
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
