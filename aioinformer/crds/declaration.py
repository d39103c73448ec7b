"""`custom_resource`: one declaration of a class makes the resource with its decoder, and its definition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from aioinformer.crds.agreement import disagreements
from aioinformer.crds.conversion.checks import check_conversion
from aioinformer.crds.conversion.steps import Step
from aioinformer.crds.structural import find, structural
from aioinformer.crds.types import schema_of
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources.resource import Resource
from aioinformer.resources.types_of_objects import declare_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
else:
    T = TypeVar("T_co", covariant=True)
    T_co = T

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
#: Bytes that the server accepts.
_LONGEST_WARNING: Final = 256
_SELECTABLE: Final = ("string", "integer", "boolean")
_APPROVED: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = (*_SELECTABLE, "number", "date")


class Column(msgspec.Struct, frozen=True, omit_defaults=True, rename={"path": "jsonPath"}):
    """A column of `kubectl get`.

    Attributes:
        name: its header.
        path: of the value, ".spec.size"; `.metadata.creationTimestamp` for the age.
        description: what it shows.
        priority: 0 for always, greater for `-o wide` only.
        format: a format of OpenAPI, such as "int32", "" for none.
    """

    name: str
    path: str
    description: str = ""
    priority: int = 0
    format: str = ""


class Scale(msgspec.Struct, frozen=True):
    """The fields of the subresource `scale`, which `kubectl scale` and autoscalers use.

    Attributes:
        replicas: the wanted number.
        status_replicas: the present number.
        selector: labels of the pods, as text; needed by horizontal pod autoscalers.
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


class CustomResource(Resource[T_co], frozen=True):
    """A resource whose definition is made from the class of its objects. `custom_resource` describes its attributes."""

    served: bool = True
    storage: bool = True
    deprecated: str | bool = ""
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    api_descriptions: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    conversion: tuple[Step, ...] | None = None
    others: tuple[CustomResource[Any], ...] = ()

    @property
    def converts(self) -> bool:
        """Whether a version declares how it becomes the stored one."""
        return any(each.conversion is not None for each in (self, *self.others))

    def crd(self, client_config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the CustomResourceDefinition, with all versions, as `kubectl apply` and `client.apply_all` take it.

        Args:
            client_config: for versions that convert, how the API server reaches the webhook: `clientConfig` of the API,
                `{"service": {"namespace": …, "name": …, "path": "/convert"}}`. `aioinformer manifests` writes it.

        Raises:
            UsageError: the class has no structural schema, or a path names no field; the message names class and field.
                Or `client_config` is missing: without the webhook, the server would drop what a version lacks.
        """
        if self.converts and client_config is None:
            raise UsageError(
                f"{self.kind} has versions that convert, so its definition names a webhook: crd(client_config={{…}}); "
                "`aioinformer manifests` writes it for a manager with webhooks=WebhookServer(…)"
            )
        names = {"kind": self.kind, "listKind": f"{self.kind}List", "plural": self.plural, "singular": self.singular}
        several = _filled({"shortNames": list(self.short_names), "categories": list(self.categories)})
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": self.group_resource,
                **_filled({"labels": dict(self.labels), "annotations": dict(self.annotations)}),
            },
            "spec": {
                "group": self.group,
                "names": {**names, **several},
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [_version_body(each) for each in (self, *self.others)],
                **({"conversion": _webhook(client_config)} if self.converts and client_config is not None else {}),
            },
        }

    def schema(self) -> dict[str, Any]:
        """Return the structural schema of the objects, without what the server adds: metadata, kind and version.

        Raises:
            UsageError: as `crd`.
        """
        cls: Any = self.decoder
        return structural(schema_of(cls), cls.__name__, self.api_descriptions)


def custom_resource(
    cls: type[T],
    group: str,
    version: str,
    *,
    kind: str = "",
    plural: str = "",
    singular: str = "",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    namespaced: bool = True,
    served: bool = True,
    storage: bool = True,
    deprecated: str | bool = "",
    columns: Sequence[Column] = (),
    scale: Scale | None = None,
    selectable: Sequence[str] = (),
    api_descriptions: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conversion: Iterable[Step] | None = None,
    others: Iterable[CustomResource[Any]] = (),
) -> CustomResource[T]:
    """Return the resource of the objects of a class: `WIDGETS = custom_resource(Widget, "example.com", "v1")`.

    It is used as any `Resource`; its decoder is the class. `WIDGETS.crd()` is its CustomResourceDefinition, and
    `aioinformer crd MODULE:WIDGETS` prints it. The fields of the class but `apiVersion`, `kind` and `metadata` are
    described in the schema. A class with a field `status` has the subresource `status`.

    Args:
        cls: a msgspec Struct, a dataclass, a TypedDict or a pydantic model.
        group: a domain, "example.com".
        version: "v1", "v1beta1" …
        kind: "" for the name of the class.
        plural: "" for the kind in lower case, with the ending of an English plural.
        singular: "" for the kind in lower case.
        short_names: names that kubectl also accepts.
        categories: such as "all", for `kubectl get all`.
        namespaced: whether objects are in a namespace.
        served: requests may use this version.
        storage: objects are stored in this version. One version is stored.
        deprecated: the warning that clients of this version get, True for the server's own; "" or False for none.
        columns: of `kubectl get`. Their types are those of the fields.
        scale: the fields of the subresource `scale`.
        selectable: paths such as ".spec.colour", which field selectors may name.
        api_descriptions: whether the definition describes the fields of types of the API, too. Those of a pod template
            have 200 KB; etcd accepts objects of 1.5 MB, and an annotation of `kubectl apply`, 256 KiB.
        labels: of the definition.
        annotations: of the definition. A group below `k8s.io` or `kubernetes.io` needs
            `api-approved.kubernetes.io`: the URL of the approval, or "unapproved, …" with the reason.
        conversion: how this version becomes the stored one and back: `[Move("spec.size", "spec.replicas")]`. Fields
            that no step names have the same path, and what the other version lacks is kept in an annotation. It needs
            a webhook, which `Manager(webhooks=…)` serves. None for a version that has the fields of the stored one.
        others: the same resource in its other versions. Without conversion, the server drops what the version of a
            request or of the storage does not have. So those that are served or stored must have the same fields of
            the same types, preserve what they lack, or convert.

    Raises:
        OptionError: an argument is invalid.
        UsageError: there are other versions, and one of the classes has no structural schema.
    """
    kind = kind or cls.__name__
    plural = plural or _plural(kind.lower())
    singular = singular or kind.lower()
    _check("group", _DOMAIN, group, 'a domain in lower case, such as "example.com"')
    _check("kind", _KIND, kind, "letters and digits, the first in upper case")
    names = {"version": [version], "plural": [plural], "singular": [singular]}
    for option, several in {**names, "short_names": short_names, "categories": categories}.items():
        if isinstance(several, str):
            raise OptionError(f'{option}: give a list of names, not the text "{several}"')
        for name in several:
            _check(option, _LABEL, name, "lower-case letters, digits and -")
    switches = {
        "namespaced": namespaced,
        "served": served,
        "storage": storage,
        "api_descriptions": api_descriptions,
    }
    for option, value in switches.items():
        if not isinstance(value, bool):
            raise OptionError(f"{option}: expected True or False, not {value!r}")
    _check_warning(deprecated)
    subresources = (*(("status",) if _has_status(cls) else ()), *(("scale",) if scale else ()))
    found: CustomResource[T] = CustomResource(
        group,
        version,
        plural,
        kind,
        namespaced,
        singular=singular,
        short_names=tuple(short_names),
        categories=tuple(categories),
        subresources=subresources,
        decoder=cls,
        served=served,
        storage=storage,
        deprecated=deprecated,
        columns=tuple(columns),
        scale=scale,
        selectable=tuple(selectable),
        api_descriptions=api_descriptions,
        labels=_texts("labels", labels),
        annotations=_texts("annotations", annotations),
        conversion=None if conversion is None else tuple(conversion),
        others=tuple(others),
    )
    _check_approval(found)
    _check_versions(found)
    declare_class(cls, found.api_version, kind, first=storage)
    return found


def _texts(option: str, texts: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return the pairs of labels or annotations."""
    found: dict[Any, Any] = dict(texts or {})
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise OptionError(f"{option}: expected texts, not {name!r}: {value!r}")
    return tuple(found.items())


def _check_approval(found: CustomResource[Any]) -> None:
    protected = f".{found.group}".endswith((".k8s.io", ".kubernetes.io"))
    if protected and not dict(found.annotations).get(_APPROVED):
        raise OptionError(
            f"group: the server accepts definitions of {found.group}, a group of Kubernetes itself, with an approval "
            f'only; use a group of your own, or give annotations={{"{_APPROVED}": "unapproved, …"}}'
        )


def _check_versions(found: CustomResource[Any]) -> None:
    for other in found.others:
        if (other.group_resource, other.kind, other.namespaced) != (found.group_resource, found.kind, found.namespaced):
            raise OptionError(
                f"others: {other} is another resource: group, kind, plural and scope must be those of {found.kind}"
            )
    versions = [found, *found.others]
    if len({each.version for each in versions}) < len(versions):
        raise OptionError("others: a version occurs twice")
    stored = [each.version for each in versions if each.storage]
    if found.others and len(stored) != 1:
        raise OptionError(f"storage: one of the versions must be stored, not {' and '.join(stored) or 'none'}")
    if found.converts and (found.others or found.storage):
        _check_ways(versions)
        return
    used = [each for each in versions if each.served or each.storage]
    for one, other in combinations(used, 2):
        if lines := list(_lost(one, other)):
            raise OptionError(
                f"others: {one.version} and {other.version} of {found.kind} differ, and the server does not convert "
                f"between them: {'; '.join(lines)}. Give both the same fields, mark the class that lacks some with "
                "@rules(KEEP_UNKNOWN), declare conversion=[…], or do not serve one of them"
            )


def _check_ways(versions: Sequence[CustomResource[Any]]) -> None:
    """Check that each version has a way to the hub, the stored one."""
    hub = next(each for each in versions if each.storage)
    if hub.conversion is not None:
        raise OptionError(f"conversion: {hub.version} is the stored version; declare the steps of the other versions")
    if not hub.served:
        raise OptionError(f"conversion: {hub.version} is the stored version, which all others convert to; serve it")
    for other in versions:
        if other is hub:
            continue
        if other.conversion is not None:
            check_conversion(hub, other)
        elif lines := list(_lost(hub, other)):
            raise OptionError(
                f"conversion: {other.version} has no way to {hub.version}: {'; '.join(lines)}. Declare conversion=[…] "
                f"of {other.version}"
            )


def _webhook(client_config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": dict(client_config), "conversionReviewVersions": ["v1"]},
    }


def _lost(one: CustomResource[Any], other: CustomResource[Any]) -> Iterator[str]:
    """Yield what is lost between two versions."""
    for path, first, second in disagreements(one.schema(), other.schema()):
        if first and second:
            yield f"{path} is {first} in {one.version} and {second} in {other.version}"
        else:
            has, lacks = (one, other) if first else (other, one)
            yield f"{path} is in {has.version} only, and a write through {lacks.version} removes it"


def _check_warning(deprecated: object) -> None:
    if isinstance(deprecated, bool):
        return
    if not isinstance(deprecated, str):
        raise OptionError(f"deprecated: expected a warning, or True for that of the server, not {deprecated!r}")
    if len(deprecated.encode()) > _LONGEST_WARNING or not deprecated.isprintable():
        raise OptionError(f"deprecated: expected at most {_LONGEST_WARNING} bytes in one line, not {deprecated!r}")


def _check(option: str, form: re.Pattern[str], value: object, expected: str) -> None:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise OptionError(f"{option}: expected {expected}, not {value!r}")


def _plural(name: str) -> str:
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def _has_status(cls: type[Any]) -> bool:
    kinds = ("__struct_encode_fields__", "__dataclass_fields__", "model_fields", "__annotations__")
    return "status" in next((found for kind in kinds if (found := getattr(cls, kind, None)) is not None), ())


def _version_body(resource: CustomResource[Any]) -> dict[str, Any]:
    schema = resource.schema()
    subresources: dict[str, Any] = {"status": {}} if "status" in resource.subresources else {}
    if (scale := resource.scale) is not None:
        paths = {"specReplicasPath": scale.replicas, "statusReplicasPath": scale.status_replicas}
        subresources["scale"] = paths | _filled({"labelSelectorPath": scale.selector})
        for name, path in subresources["scale"].items():
            expected = "string" if name == "labelSelectorPath" else "integer"
            _check_path(resource, schema, "scale", path, (expected, None), f"of type {expected}")
    for path in resource.selectable:
        _check_path(resource, schema, "selectable", path, _SELECTABLE, "a text, an integer or a boolean")
    added = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    whole = {**schema, "properties": {**added, **schema["properties"]}}
    columns = [_column(resource, schema, each) for each in resource.columns]
    found = {"name": resource.version, "served": resource.served, "storage": resource.storage}
    if resource.deprecated:
        found["deprecated"] = True
        if isinstance(resource.deprecated, str):
            found["deprecationWarning"] = resource.deprecated
    # The rules of a class that occurs twice would be the same list.
    found |= {"schema": {"openAPIV3Schema": deepcopy(whole)}}
    selectable = [{"jsonPath": path} for path in resource.selectable]
    more = {"subresources": subresources, "additionalPrinterColumns": columns, "selectableFields": selectable}
    return {**found, **_filled(more)}


def _column(resource: CustomResource[Any], schema: dict[str, Any], column: Column) -> dict[str, Any]:
    kind = "date" if column.path.endswith("Timestamp") else "string"
    if not column.path.startswith(".metadata."):
        here = _check_path(resource, schema, "columns", column.path)
        kind = "date" if here.get("format") == "date-time" else here.get("type", "")
    return {**msgspec.to_builtins(column), "type": kind if kind in _COLUMN_TYPES else "string"}


def _check_path(
    resource: Resource[Any], schema: dict[str, Any], option: str, path: str, types: Any = None, expected: str = ""
) -> dict[str, Any]:
    """Return the schema at a path. It must be of one of some types, if they are given."""
    found = find(schema, path) if path.startswith(".") else None
    if found is None:
        raise UsageError(f'{resource.kind}: {option}: {path!r} names no field of the class; write ".spec.size"')
    if types and found.get("type") not in types:
        raise UsageError(f"{resource.kind}: {option}: {path} must be {expected}")
    return found


def _filled(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value}
