"""The documents of discovery, aggregated and legacy, as they come, and what they say.

Lists that are empty may come as null, and fields that nobody needs are not looked at. Both forms list subresources, the
aggregated one below their resource, the legacy one beside it with a slash in the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer import catalog
from aioinformer.errors import DecodeError
from aioinformer.resources import Resource
from aioinformer.served import ServedVersion

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Kind(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, gc=False):
    subresource: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()
    subresources: tuple[_Subresource, ...] | None = ()


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] | None = ()
    freshness: str = "Current"


class _Metadata(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: tuple[_AggregatedVersion, ...] | None = ()


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: tuple[_Version, ...] | None = ()
    preferred_version: _Version | None = None


class Root(msgspec.Struct):
    """Whichever document a root answers with; `kind` says which of the fields are meant."""

    kind: str = ""
    items: tuple[_AggregatedGroup, ...] | None = ()
    groups: tuple[_Group, ...] | None = ()
    versions: tuple[str, ...] | None = ()

    def legacy(self) -> list[tuple[str, str]] | None:
        """The groups and versions to ask for one by one, best first; None if the document has told all already."""
        match self.kind:
            case "APIGroupDiscoveryList":
                return None
            case "APIVersions":
                return [("", version) for version in self.versions or ()]
            case "APIGroupList":
                return [(group.name, version) for group in self.groups or () for version in _by_preference(group)]
            case _:
                raise DecodeError(f"kind {self.kind[:40]!r} is no discovery document")

    def aggregated(self) -> list[ServedVersion]:
        """What an aggregated document says of each version, best first."""
        return [
            _aggregated(group.metadata.name, version) for group in self.items or () for version in group.versions or ()
        ]


class _LegacyResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular_name: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()


class LegacyResources(msgspec.Struct):
    resources: tuple[_LegacyResource, ...] | None = ()

    def served(self, group: str, version: str) -> ServedVersion:
        """What the document of this group and version says."""
        entries = self.resources or ()
        subresources: dict[str, list[str]] = {}
        for entry in entries:
            plural, slash, subresource = entry.name.partition("/")
            if slash:
                subresources.setdefault(plural, []).append(subresource)
        return ServedVersion(
            group,
            version,
            tuple(
                Resource(
                    group=group,
                    version=version,
                    plural=entry.name,
                    kind=entry.kind,
                    namespaced=entry.namespaced,
                    model=_model(group, version, entry.name),
                    singular=entry.singular_name or entry.kind.lower(),
                    short_names=entry.short_names or (),
                    subresources=tuple(sorted(subresources.get(entry.name, ()))),
                    verbs=entry.verbs or (),
                    categories=entry.categories or (),
                )
                for entry in entries
                if "/" not in entry.name
            ),
        )


# Now, by one thread: event loops in two threads may be the first to read one, and msgspec learns what is in a class
# when it is first asked to decode it.
for _document in (Root, LegacyResources):
    msgspec.json.Decoder(_document)


def _aggregated(group: str, served: _AggregatedVersion) -> ServedVersion:
    # A stale version is one whose own server does not answer: what is listed was true once, and may not be all.
    failure = "" if served.freshness == "Current" else "its server does not answer; the list may be out of date"
    return ServedVersion(
        group,
        served.version,
        tuple(
            Resource(
                group=group,
                version=served.version,
                plural=entry.resource,
                kind=entry.response_kind.kind,
                namespaced=entry.scope == "Namespaced",
                model=_model(group, served.version, entry.resource),
                singular=entry.singular_resource or entry.response_kind.kind.lower(),
                short_names=entry.short_names or (),
                subresources=tuple(sorted(part.subresource for part in entry.subresources or ())),
                verbs=entry.verbs or (),
                categories=entry.categories or (),
            )
            for entry in served.resources or ()
            # Without a kind there are only subresources, as servers of Kubernetes 1.26 and 1.27 show them.
            if entry.response_kind is not None
        ),
        failure,
    )


def _by_preference(group: _Group) -> Iterator[str]:
    preferred = group.preferred_version.version if group.preferred_version else ""
    versions = [entry.version for entry in group.versions or ()]
    if preferred in versions:
        yield preferred
    yield from (version for version in versions if version != preferred)


def _model(group: str, version: str, plural: str) -> str:
    builtin = catalog.find(group, version, plural)
    return builtin.model if builtin else ""
