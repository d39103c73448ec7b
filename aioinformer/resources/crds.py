"""As much of CustomResourceDefinitions as it takes to follow what they define."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.resources.resource import Resource


class DefinedNames(msgspec.Struct, rename="camel"):
    """What the resource is called."""

    plural: str
    kind: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class DefinedVersion(msgspec.Struct):
    """One of its versions."""

    name: str
    served: bool = False
    storage: bool = False


class DefinitionSpec(msgspec.Struct):
    """What is wanted."""

    group: str
    names: DefinedNames
    versions: tuple[DefinedVersion, ...]
    scope: str = "Namespaced"


class DefinitionCondition(msgspec.Struct):
    """Something that is so, or not."""

    type: str
    status: str


class DefinitionStatus(msgspec.Struct):
    """What became of it."""

    conditions: tuple[DefinitionCondition, ...] | None = ()


class CustomResourceDefinition(msgspec.Struct, weakref=True):
    """One definition; its schemas are skipped."""

    spec: DefinitionSpec
    status: DefinitionStatus | None = None

    @property
    def name(self) -> str:
        """Its own name: `widgets.example.com`."""
        return self.resource("").group_resource

    def resource(self, version: str) -> Resource[Any]:
        """The resource in one version."""
        names, spec = self.spec.names, self.spec
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
        """What it serves, the version in which objects are stored first; nothing before it is established."""
        conditions = (self.status.conditions if self.status else None) or ()
        if not any(each.type == "Established" and each.status == "True" for each in conditions):
            return []
        versions = sorted((each for each in self.spec.versions if each.served), key=lambda each: not each.storage)
        return [self.resource(each.name) for each in versions]
