"""The served resources, built-in and custom, found by URL or by name."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.resources.resource import Resource
from aioinformer.testing.api.conversions import WebhookConversion
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.selectors import selectable_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from aioinformer.testing.api.conversions import Stored

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_STATUS_VERBS = ["get", "patch", "update"]
_DEPRECATED = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """Convert objects between a version and the stored version; the argument is not changed.

    Versions without one differ only in their names. For custom resources with a webhook, the functions raise
    `ConversionNeeded` until its answer is known.

    Attributes:
        stored_as: resource in the stored version, "v1/events".
        to_stored: returns an object of this version in the stored version.
        from_stored: returns a stored object in this version.
    """

    stored_as: str
    to_stored: Callable[[Mapping[str, Any]], dict[str, Any]]
    from_stored: Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(slots=True, eq=False)
class Served:
    """One resource in one API version.

    Attributes:
        resource: group, version, names, scope.
        custom: whether it is defined by a CustomResourceDefinition.
        entries: its rows in a resource list of discovery, subresources included.
        fields: names of selectable fields beyond name and namespace.
        subresources: those in `entries`.
        columns: printer columns of a custom resource.
        schema: OpenAPI schema of a custom resource.
        scale: paths of the scale subresource of a custom resource.
        deprecated: the warning for this version, "" for none.
        conversion: to and from the stored version; None if no other version is stored.
        webhook: converts the objects of a custom resource; None if they are converted without one.
        stored_as: the resource in the stored version; errors about the contents of an object name it.
        collection: name of the collection of its objects.
        stored_fields: names of `fields` in the stored version, and further ones.
        others: other versions of the same objects in its group, by API version.
    """

    resource: Resource[Any]
    custom: bool = False
    entries: list[dict[str, Any]] = field(default_factory=list)
    fields: tuple[str, ...] = ()
    subresources: frozenset[str] = field(init=False)
    columns: tuple[Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] | None = None
    scale: Mapping[str, Any] | None = None
    deprecated: str = ""
    conversion: Conversion | None = None
    webhook: WebhookConversion | None = None
    head: bytes = b""
    list_kind: str = ""
    stored_as: Resource[Any] = field(init=False)
    collection: str = field(init=False)
    stored_fields: tuple[str, ...] = ()
    others: dict[str, Served] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resource = self.resource
        self.stored_as = resource
        self.collection = resource.group_resource
        self.stored_fields = self.stored_fields or self.fields
        self.subresources = frozenset(row["name"].partition("/")[2] for row in self.entries if "/" in row["name"])
        self.list_kind = self.list_kind or f"{resource.kind}List"
        version = f'"apiVersion":"{resource.api_version}",'
        self.head = ("{" + (version if self.custom else f'"kind":"{resource.kind}",{version}')).encode()

    @property
    def is_stored(self) -> bool:
        """Whether this is the version that is stored."""
        return self.stored_as == self.resource

    def body(self, stored: bytes) -> bytes:
        """Return a stored object in this version."""
        if stored.startswith(self.head):
            return stored
        if self.conversion is not None:
            return encode_object(self.conversion.from_stored(decode(stored)), custom=self.custom)
        rest = stored.index(b'"kind":' if self.custom else b'"metadata":')
        return self.head + stored[rest:]

    def form(self, record: Stored) -> bytes:
        """Return what lists and watches send of an object. A webhook has converted it already."""
        if self.webhook is None:
            found = None
        else:
            found = self.webhook.form(record, self.resource.api_version)
        return self.body(record.body) if found is None else found

    def has_form(self, record: Stored) -> bool:
        """Return whether `form` needs no webhook for an object."""
        if self.webhook is None or record.body.startswith(self.head):
            return True
        return self.webhook.form(record, self.resource.api_version) is not None

    def as_stored(self, body: bytes) -> Served:
        """Return the resource in the version in which an object is stored, for changes of its metadata.

        Objects of custom resources with a webhook are stored in the version that was the stored one when they were
        written last.
        """
        if self.webhook is None:
            return self
        return self.webhook.versions.get(decode(body)["apiVersion"], self)

    def decoded(self, body: bytes) -> Mapping[str, Any]:
        """Return an object in the stored version, from its body in that version or in this one."""
        if self.conversion is None or self.custom:
            obj: Mapping[str, Any] = decode(self.body(body))
            return obj
        obj = decode(body)
        return self.to_stored(obj) if body.startswith(self.head) else obj

    def source(self, record: Stored) -> bytes:
        """Return the body of which `decoded` makes an object for a list or a watch."""
        return record.body if self.webhook is None else self.form(record)

    def to_stored(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an object of this version in the stored version."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)

    def from_stored(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a stored object in this version."""
        return kept if self.conversion is None else self.conversion.from_stored(kept)


class Registry:
    """All served resources; custom ones come and go.

    Args:
        extra: resources of the catalogue to serve besides the stable ones, such as beta versions.
    """

    def __init__(self, extra: Iterable[Resource[Any]] = ()) -> None:
        self._served: dict[tuple[str, str, str], Served] = {}
        self._versions: dict[str, list[str]] = {}
        # Results of `resolve`; cleared when a resource comes or goes.
        self._resolved: dict[str, Served] = {}
        recorded = recorded_discovery()
        for api_version in recorded:
            group, _, version = api_version.rpartition("/")
            self._versions.setdefault(group, []).append(version)
        for resource in (*BUILTIN_RESOURCES, *extra):
            entries = recorded.get(resource.api_version)
            if entries is None and resource not in extra:
                continue
            own = [row for row in entries or () if row["name"].partition("/")[0] == resource.plural]
            fields = selectable_fields(resource)
            conversion = _CONVERSIONS.get(resource.gvr)
            warning = _DEPRECATED.get(resource.group_resource, "")
            entries = own or [_entry(resource)]
            self._add(Served(resource, False, entries, fields, deprecated=warning, conversion=conversion))
        for served in self._served.values():
            if served.conversion is not None:
                self._join(served, served.conversion.stored_as)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Served | None:
        """Return the resource of a kind."""
        for served in self._served.values():
            if served.resource.kind == kind and served.resource.api_version == api_version:
                return served
        return None

    def find_collection(self, collection: str) -> Served | None:
        """Return the resource of a collection, preferably in the stored version."""
        found = [served for served in self._served.values() if served.collection == collection]
        return next((served for served in found if served.is_stored), found[0] if found else None)

    def versions(self, group: str) -> list[str]:
        """Return the versions of a group, preferred one first; empty for an unknown group."""
        return list(self._versions.get(group, ()))

    def groups(self) -> list[str]:
        return list(self._versions)

    def of_version(self, group: str, version: str) -> list[Served]:
        return [
            served
            for served in self._served.values()
            if served.resource.group == group and served.resource.version == version
        ]

    def resolve(self, wanted: str | Resource[Any]) -> Served:
        """Find a resource by the names that people use.

        Args:
            wanted: a `Resource`, "pods", "deployments.apps", "apps/v1/deployments" or "v1/pods".

        Raises:
            UsageError: the server serves no such resource.
        """
        if isinstance(wanted, Resource):
            found = self.find(wanted.group, wanted.version, wanted.plural)
            candidates = [found] if found else []
        elif (known := self._resolved.get(wanted)) is not None:
            return known
        elif "/" in wanted:
            candidates = [served for served in self._served.values() if served.resource.gvr == wanted]
        else:
            candidates = [
                served
                for served in self._served.values()
                if wanted in (served.resource.group_resource, served.resource.plural)
            ]
            # As for kubectl, "events" means those of the core group.
            candidates.sort(key=lambda served: (bool(served.resource.group), self._rank(served)))
        if not candidates:
            raise UsageError(f"the server does not serve {str(wanted)!r}; create its CustomResourceDefinition first")
        if isinstance(wanted, str):
            self._resolved[wanted] = candidates[0]
        return candidates[0]

    def define(self, definition: Mapping[str, Any]) -> list[Served]:
        """Serve the resource of a CustomResourceDefinition, in place of its earlier definition."""
        spec = definition["spec"]
        for served in self._served.values():
            if served.webhook is not None and served.collection == f"{spec['names']['plural']}.{spec['group']}":
                served.webhook.replaced = True
        self.forget(definition)
        added = [self._add(served) for served in _versions(spec)]
        versions = [served.resource.version for served in added]
        known = self._versions.setdefault(spec["group"], [])
        known[:] = sorted({*known, *versions}, key=_version_priority)
        self._resolved.clear()
        return added

    def forget(self, definition: Mapping[str, Any]) -> None:
        """Stop serving the resource of a CustomResourceDefinition."""
        spec = definition["spec"]
        self._resolved.clear()
        group = spec["group"]
        plural = spec["names"]["plural"]
        for key in [key for key in self._served if key[0] == group and key[2] == plural]:
            del self._served[key]
        left = {version for other, version, _ in self._served if other == group}
        if group in self._versions:
            self._versions[group] = [version for version in self._versions[group] if version in left]
            if not self._versions[group]:
                del self._versions[group]

    def _add(self, served: Served) -> Served:
        resource = served.resource
        for other in self._served.values():
            if other.resource.group_resource == resource.group_resource:
                served.others[other.resource.api_version] = other
                other.others[resource.api_version] = served
        self._served[resource.group, resource.version, resource.plural] = served
        if resource.version not in self._versions.setdefault(resource.group, []):
            self._versions[resource.group].append(resource.version)
        return served

    def _join(self, served: Served, stored_as: str) -> None:
        """Store the objects of a resource in another version."""
        [keeper] = [other for other in self._served.values() if other.resource.gvr == stored_as]
        served.stored_as = keeper.resource
        served.collection = keeper.collection
        served.stored_fields = keeper.fields

    def _rank(self, served: Served) -> int:
        return self._versions[served.resource.group].index(served.resource.version)


@cache
def recorded_discovery() -> Mapping[str, list[dict[str, Any]]]:
    """Return the resource lists of a real server by API version, in its order of groups and versions."""
    document = json.loads(files("aioinformer.testing").joinpath("data/discovery.json").read_text("utf-8"))
    resources: dict[str, list[dict[str, Any]]] = document["resources"]
    return resources


def _entry(resource: Resource[Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs or _VERBS),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _custom(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Served:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    resource: Resource[Any] = Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names["singular"],
        short_names=tuple(names.get("shortNames") or ()),
        subresources=tuple(sorted(subresources)),
        verbs=_VERBS,
        categories=tuple(names.get("categories") or ()),
    )
    entries = [_entry(resource)]
    digest = hashlib.sha256(f"{resource.api_version}/{resource.kind}".encode()).digest()
    entries[0]["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    for name in ("status", "scale"):
        if name not in subresources:
            continue
        row = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
        if name == "scale":
            row |= {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        else:
            row["kind"] = resource.kind
        entries.append(row | {"verbs": _STATUS_VERBS})
    fields = [item["jsonPath"].lstrip(".") for item in version.get("selectableFields") or ()]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return Served(
        resource,
        True,
        entries,
        tuple(fields),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        schema=schema,
        scale=subresources.get("scale"),
        deprecated=_deprecation(spec, version) if version.get("deprecated") else "",
        list_kind=names["listKind"],
    )


def _versions(spec: Mapping[str, Any]) -> list[Served]:
    """Return the versions of a definition that are served."""
    every = [_custom(spec, version) for version in spec["versions"]]
    [kept] = [served for served, version in zip(every, spec["versions"], strict=True) if version.get("storage")]
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        plain = [_custom(spec, version) for version in spec["versions"]]
        webhook = WebhookConversion(conversion["webhook"], {served.resource.api_version: served for served in plain})
        for served in (*every, *plain):
            served.stored_fields = kept.fields
        for served in every:
            _convert(served, kept, webhook)
    return [served for served, version in zip(every, spec["versions"], strict=True) if version.get("served")]


def _convert(served: Served, kept: Served, webhook: WebhookConversion) -> None:
    """Let a webhook convert the objects of a version from and to the stored one."""
    to_stored, from_stored = (
        partial(webhook.convert, api_version=each.resource.api_version) for each in (kept, served)
    )
    served.webhook = webhook
    served.conversion = Conversion(kept.resource.gvr, to_stored, from_stored)
    served.stored_as = kept.resource
    served.fields = tuple(name for name in served.fields if name in kept.fields)


def _deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    kind = spec["names"]["kind"]
    own = _version_priority(version["name"])
    others = [each["name"] for each in spec["versions"] if each.get("served") and not each.get("deprecated")]
    better = sorted((name for name in others if _version_priority(name) < own), key=_version_priority)
    instead = f"; use {spec['group']}/{better[0]} {kind}" if better else ""
    return f"{spec['group']}/{version['name']} {kind} is deprecated{instead}"


def _version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort as Kubernetes does: v2, v1, v1beta2, v1alpha1, then other names alphabetically."""
    head, _, rest = version.removeprefix("v").partition("beta")
    stage = 1 if rest else 0
    if not rest:
        head, _, rest = version.removeprefix("v").partition("alpha")
        stage = 2 if rest else 0
    if version.startswith("v") and head.isdigit() and (not rest or rest.isdigit()):
        return (stage, -int(head), -int(rest or 0), "")
    return (3, 0, 0, version)


# By field of an event of events.k8s.io, in its order: that of the core event, which is stored.
_CORE_EVENT_FIELDS = {
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_ALWAYS_IN_EVENTS: Mapping[str, Any] = {
    "involvedObject": {},
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
}


def _core_event(newer: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event from `events.k8s.io/v1` to `v1`."""
    fields = {core: newer[name] for name, core in _CORE_EVENT_FIELDS.items() if newer.get(name) is not None}
    return {"kind": "Event", "apiVersion": "v1", "metadata": newer.get("metadata", {}), **_ALWAYS_IN_EVENTS, **fields}


def _newer_event(core: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event from `v1` to `events.k8s.io/v1`."""
    fields = {
        name: core[core_name] for name, core_name in _CORE_EVENT_FIELDS.items() if core.get(core_name) not in (None, "")
    }
    whole = {"regarding": {}, "deprecatedSource": {}, **fields}
    return {"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": core.get("metadata", {}), **whole}


_CONVERSIONS = {"events.k8s.io/v1/events": Conversion("v1/events", _core_event, _newer_event)}
