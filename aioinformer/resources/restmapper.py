"""What a server serves, and which resource a name means there.

Names mean what they mean to kubectl. The rules, first match wins:

1. `group/version/plural` (core: `version/plural`) names one resource and nothing else.
2. `name.version.group` does, too, if the group has that version. Otherwise all that follows the first dot is the group,
   so that `widgets.example.com` works although it looks like version `example` of group `com`.
3. A group is matched exactly, or else by how it begins (`deployments.app`).
4. A name is a plural, a singular or a kind, in any case; or else a short name.
5. Among several, the group the server lists first wins, with core before all; within a group the preferred version.

What a server could not tell is part of the answer. A name that is not found is *unknown* only if everything that could
have held it was read; otherwise nothing can be said yet. The same holds for a name that is found behind an unread
version of its own group, which might have been the one preferred. An unread group elsewhere changes nothing about what
is found: one broken extension server must not keep everybody from their pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.errors import AioinformerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class ServedResources:
    """The answer of one discovery; immutable.

    Attributes:
        versions: what was found, in the order of the server's preference.
    """

    versions: tuple[ServedVersion, ...]

    def __iter__(self) -> Iterator[Resource[Any]]:
        """Yields every resource of every version, in order of preference."""
        for served in self.versions:
            yield from served.resources

    @property
    def failures(self) -> dict[str, str]:
        """What could not be read and why, by group and version; empty if the discovery is complete."""
        return {served.api_version: served.failure for served in self.versions if served.failure}

    @property
    def complete(self) -> bool:
        """Whether everything could be read."""
        return not any(served.failure for served in self.versions)

    def resolve(self, text: str) -> Resource[Any]:
        """The resource that a name means, as kubectl takes it.

        Raises:
            UsageError: the text is not the name of a resource.
            UnknownResource: everything that could hold the resource was read, and does not.
            DiscoveryIncomplete: something that could decide it was not read.
        """
        readings = parse_resource_name(text)
        for name in readings:
            for by_prefix in (False, True) if name.group and not name.exact else (False,):
                for short in (False,) if name.exact else (False, True):
                    found = self._first(name, by_prefix=by_prefix, short=short)
                    if found is None:
                        continue
                    doubts = self._unread_before(found, name)
                    if doubts:
                        raise DiscoveryIncomplete(text, doubts)
                    return found
        doubts = {
            served.api_version: served.failure
            for served in self.versions
            if served.failure and any(name.admits(served, by_prefix=not name.exact) for name in readings)
        }
        if doubts:
            raise DiscoveryIncomplete(text, doubts)
        raise UnknownResource(text)

    def _first(self, name: ResourceName, *, by_prefix: bool, short: bool) -> Resource[Any] | None:
        for served in self.versions:
            if name.admits(served, by_prefix=by_prefix):
                for resource in served.resources:
                    if name.is_named(resource, short=short):
                        return resource
        return None

    def _unread_before(self, found: Resource[Any], name: ResourceName) -> dict[str, str]:
        unread = {}
        for served in self.versions:
            if (served.group, served.version) == (found.group, found.version):
                break
            if served.failure and served.group == found.group and name.admits(served, by_prefix=True):
                unread[served.api_version] = served.failure
        return unread


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One version of one API group.

    Attributes:
        group: "" for the core group.
        version: "v1" …; "" stands for all versions of a group of which not even these are known.
        resources: what it serves, as far as known.
        failure: why that may be less than there is, "" if it is all.
    """

    group: str
    version: str
    resources: tuple[Resource[Any], ...] = ()
    failure: str = ""

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class ResourceName:
    """A name as a user writes it, cut at one of the ways it can be read.

    Attributes:
        name: plural, singular, kind or short name; lower case unless exact.
        group: the group asked for, None for any.
        version: the version asked for, "" for any.
        exact: whether only a plural of exactly this group and version is meant.
    """

    name: str
    group: str | None = None
    version: str = ""
    exact: bool = False

    def admits(self, served: ServedVersion, *, by_prefix: bool = False) -> bool:
        """Whether the resource could be in this group and version."""
        if self.version and served.version and served.version != self.version:
            return False
        return self.group is None or served.group == self.group or (by_prefix and served.group.startswith(self.group))

    def is_named(self, resource: Resource[Any], *, short: bool = False) -> bool:
        """Whether this is a name of the resource."""
        if self.exact:
            return resource.plural == self.name
        if short:
            return self.name in resource.short_names
        return self.name in (resource.plural, resource.singular, resource.kind.lower())


def parse_resource_name(text: str) -> tuple[ResourceName, ...]:
    """The ways in which a name can be read, in the order in which they are tried.

    Raises:
        UsageError: it is none of the forms; the message lists them.
    """
    parts = text.split("/")
    if len(parts) > 1:
        if len(parts) > 3 or not all(parts):
            raise UsageError(f"{text!r} is not a resource: write group/version/plural, or v1/pods for the core group")
        return (ResourceName(parts[-1], parts[0] if len(parts) == 3 else "", parts[-2], exact=True),)
    name, dot, rest = text.lower().partition(".")
    if not name or any(character.isspace() or character in "?#%" for character in text):
        raise UsageError(f"{text!r} is not a resource: write it as kubectl takes it, such as pods or deployments.apps")
    if not dot:
        return (ResourceName(name),)
    version, second_dot, group = rest.partition(".")
    readings = (ResourceName(name, rest),)
    return (ResourceName(name, group, version), *readings) if second_dot else readings


class UnknownResource(UsageError, LookupError):
    """A complete, successful discovery does not list the resource."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the server has no resource {name!r}; look for it with `kubectl api-resources`, "
            "or name it as group/version/plural"
        )
        self.name = name


class DiscoveryIncomplete(AioinformerError):
    """The server did not tell enough to say which resource is meant; asking again later may help.

    Attributes:
        failures: what could not be read and why, by group and version.
    """

    def __init__(self, name: str, failures: dict[str, str]) -> None:
        reasons = ", ".join(f"{where} ({why})" for where, why in failures.items())
        super().__init__(f"cannot tell which resource {name!r} is: discovery lacks {reasons}")
        self.failures = failures
