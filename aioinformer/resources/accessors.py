"""Attribute paths of the built-in resources: `factory.apps.v1.deployments`, `client.core.v1.pods`.

`add_groups` gives a class a property for each API group of the catalog. The values of these properties look up the
versions and the resources, so one resolver serves factories and clients. Type checkers read generated stubs, in which
each path has its type.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from aioinformer.errors import UsageError, did_you_mean
from aioinformer.resources.catalog import BUILTIN_RESOURCES, find
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    #: Makes the value at the end of a path.
    _End = Callable[[Resource[Any]], Any]


def add_groups(owner: type, end: Callable[[Any], _End], verbs: Collection[str] = ()) -> None:
    """Add a property for each API group to a class.

    The property has the name that client-go gives the group: its first label, `rbac` of `rbac.authorization.k8s.io`. If
    the class has an attribute of this name, the property has the full name: `resource_k8s_io`.

    Args:
        end: called with an instance; returns the function that makes the value at the end of a path from its resource.
        verbs: what the resources must support; others have no path.
    """
    groups: dict[str, dict[str, dict[str, Resource[Any]]]] = defaultdict(lambda: defaultdict(dict))
    for resource in BUILTIN_RESOURCES:
        if set(verbs) <= set(resource.verbs):
            groups[resource.group][resource.version][resource.plural] = resource
    names = []
    for group, versions in groups.items():
        short = group.partition(".")[0] or "core"
        name = group.replace(".", "_") if hasattr(owner, short) else short
        setattr(owner, name, _of_group(name, versions, end))
        names.append(name)

    def missing(self: object, name: str) -> Any:
        members = [each for each in dir(self) if not each.startswith("_")]
        raise _missing(
            self, name, f"{type(self).__name__} has no attribute", members, f"its groups are {', '.join(names)}"
        )

    owner.__getattr__ = missing  # type: ignore[attr-defined]


def _of_group(name: str, versions: Mapping[str, Mapping[str, Resource[Any]]], end: Callable[[Any], _End]) -> property:
    @cache
    def accessor() -> type[Accessor]:
        parts = {version: _of_version(f"{name}.{version}", resources) for version, resources in versions.items()}
        return _class(name, "version", parts)

    return property(lambda owner: accessor()(end(owner)), doc=f"The versions of the group {name}.")


def _of_version(path: str, resources: Mapping[str, Resource[Any]]) -> property:
    accessor = _class(path, "resource", {plural: _of_resource(resource) for plural, resource in resources.items()})
    return property(lambda group: accessor(_end_of(group)), doc=accessor.__doc__)


def _of_resource(resource: Resource[Any]) -> property:
    return property(lambda version: _end_of(version)(resource), doc=f"{resource.kind} of {resource.api_version}.")


def _class(path: str, part: str, properties: Mapping[str, property]) -> type[Accessor]:
    title = "".join(each.capitalize() for each in path.split("."))
    members = {"__slots__": (), "__doc__": f"The {part}s of {path}.", "_path": path, "_part": part}
    return type(title, (Accessor,), {**members, **properties})


class Accessor:
    """A group or a version in a path: the next part is an attribute.

    An accessor refers to its owner by the function that makes the value at the end of the path, and has no other state.
    Each access creates it anew.
    """

    __slots__ = ("_end",)

    _path: ClassVar[str]
    _part: ClassVar[str]

    def __init__(self, end: _End) -> None:
        self._end = end

    def __getattr__(self, name: str) -> Any:
        known = self._names()
        raise _missing(self, name, f"{self._path} has no {self._part}", known, f"it has {', '.join(known)}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self._names())}>"

    def _names(self) -> list[str]:
        return [name for name in vars(type(self)) if not name.startswith("_")]


#: The function of an accessor. It has an underscore, because the public attributes of accessors are names of the API.
_end_of: Callable[[Accessor], _End] = attrgetter("_end")


def _missing(owner: object, name: str, what: str, known: Collection[str], otherwise: str) -> AttributeError:
    """Return the error for a part of a path that does not exist, with the known name that is the nearest."""
    if name.startswith("_"):  # `copy`, `pickle` and `inspect` ask for such names
        return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")
    return AttributeError(f"{what} {name!r}; {did_you_mean(name, known) or otherwise}")


def named_resource(resource: Resource[Any] | str) -> Resource[Any]:
    """Return a resource that is given as such, or by the `gvr` of a built-in one: "apps/v1/deployments", "v1/pods".

    Raises:
        UsageError: it is something else, or there is no built-in resource with this name.
    """
    if isinstance(resource, Resource):
        return resource
    if not isinstance(resource, str):
        raise UsageError(f'resource: expected a Resource, or a name like "apps/v1/deployments", not {resource!r}')
    group_version, _, plural = resource.rpartition("/")
    group, _, version = group_version.rpartition("/")
    found = find(group, version, plural)
    if found is None:
        hint = did_you_mean(resource, (each.gvr for each in BUILTIN_RESOURCES))
        raise UsageError(
            f"resource: {resource!r} is not a built-in resource; write it as group/version/plural (core: v1/pods), or "
            f"pass a Resource for a custom one{hint and f'; {hint}'}"
        )
    return found
