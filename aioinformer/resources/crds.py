"""CustomResourceDefinitions, as far as informers of the defined resources need them."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.resources.resource import Resource


class DefinedNames(msgspec.Struct, rename="camel"):
    """The names of the defined resource."""

    plural: str
    kind: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class DefinedVersion(msgspec.Struct):
    """A version of the defined resource."""

    name: str
    served: bool = False
    storage: bool = False


class DefinitionSpec(msgspec.Struct):
    """The `spec` of a definition."""

    group: str
    names: DefinedNames
    versions: tuple[DefinedVersion, ...]
    scope: str = "Namespaced"


class DefinitionCondition(msgspec.Struct):
    """A condition of a definition."""

    type: str
    status: str
    message: str = ""


class DefinitionStatus(msgspec.Struct):
    """The `status` of a definition."""

    conditions: tuple[DefinitionCondition, ...] | None = ()


class CustomResourceDefinition(msgspec.Struct, weakref=True):
    """A definition without its schemas."""

    spec: DefinitionSpec
    status: DefinitionStatus | None = None

    @property
    def name(self) -> str:
        """The name of the definition: `widgets.example.com`."""
        return self.resource("").group_resource

    def resource(self, version: str) -> Resource[Any]:
        """Return the defined resource in one version."""
        names = self.spec.names
        spec = self.spec
        return Resource(
            spec.group,
            version,
            names.plural,
            kind=names.kind,
            namespaced=spec.scope == "Namespaced",
            singular=names.singular,
            short_names=names.short_names,
            categories=names.categories,
        )

    def served(self) -> list[Resource[Any]]:
        """Return the resource in each served version, the storage version first; [] before it is established."""
        conditions = (self.status.conditions if self.status else None) or ()
        if not any(each.type == "Established" and each.status == "True" for each in conditions):
            return []
        versions = sorted((each for each in self.spec.versions if each.served), key=lambda each: not each.storage)
        return [self.resource(each.name) for each in versions]
