"""The resources that a server serves, and the resource that a name means.

Names mean the same as for kubectl. The first matching rule applies:

1. `group/version/plural` (core: `version/plural`) names exactly one resource.
2. `name.version.group` does, too, if the group has that version. Otherwise everything after the first dot is the group,
   so that `widgets.example.com` works although it looks like version `example` of group `com`.
3. A group is matched exactly, otherwise by prefix (`deployments.app`).
4. A name is a plural, a singular or a kind in upper or lower case, otherwise a short name.
5. If several resources match, the group that the server lists first wins, core before all others; within a group, the
   preferred version wins.

The result of a discovery includes its failures. A name is unknown only if all groups that could have it were read;
otherwise the discovery is incomplete. The same holds for a name that is found after an unread version of its own group,
which might have been preferred. Unread other groups do not matter: one broken extension server must not make pods
unavailable.
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
    """The result of a discovery; immutable.

    Attributes:
        versions: the served versions, in the order of the server's preference.
    """

    versions: tuple[ServedVersion, ...]

    def __iter__(self) -> Iterator[Resource[Any]]:
        """Yield each resource of each version, in order of preference."""
        for served in self.versions:
            yield from served.resources

    @property
    def failures(self) -> dict[str, str]:
        """Why versions could not be read, by group and version; {} if the discovery is complete."""
        return {served.api_version: served.failure for served in self.versions if served.failure}

    @property
    def complete(self) -> bool:
        """Whether all versions could be read."""
        return not any(served.failure for served in self.versions)

    def resolve(self, text: str) -> Resource[Any]:
        """Return the resource that a name means to kubectl.

        Raises:
            UsageError: the text is not a valid name.
            UnknownResource: the server does not serve the resource.
            DiscoveryIncomplete: a version that could have the resource was not read.
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
    """A version of an API group.

    Attributes:
        group: the group, "" for the core group.
        version: "v1" …; "" stands for all versions of a group whose versions are unknown.
        resources: the resources in it, as far as known.
        failure: why resources may be missing, "" if none is.
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
    """One interpretation of a name that a user wrote.

    Attributes:
        name: plural, singular, kind or short name; lower case unless exact.
        group: the group, None for any.
        version: the version, "" for any.
        exact: whether it means only a plural of exactly this group and version.
    """

    name: str
    group: str | None = None
    version: str = ""
    exact: bool = False

    def admits(self, served: ServedVersion, *, by_prefix: bool = False) -> bool:
        """Return whether the resource could be in this group and version."""
        if self.version and served.version and served.version != self.version:
            return False
        return self.group is None or served.group == self.group or (by_prefix and served.group.startswith(self.group))

    def is_named(self, resource: Resource[Any], *, short: bool = False) -> bool:
        """Return whether this is a name of the resource."""
        if self.exact:
            return resource.plural == self.name
        if short:
            return self.name in resource.short_names
        return self.name in (resource.plural, resource.singular, resource.kind.lower())


def parse_resource_name(text: str) -> tuple[ResourceName, ...]:
    """Return the possible interpretations of a name, in the order in which to try them.

    Raises:
        UsageError: the text is not a valid name; the message lists the forms.
    """
    parts = text.split("/")
    if len(parts) > 1:
        if len(parts) > 3 or not all(parts):
            raise UsageError(
                f"{text!r} is not the name of a resource: write group/version/plural, or v1/pods for the core group"
            )
        return (ResourceName(parts[-1], parts[0] if len(parts) == 3 else "", parts[-2], exact=True),)
    name, dot, rest = text.lower().partition(".")
    if not name or any(character.isspace() or character in "?#%" for character in text):
        raise UsageError(
            f"{text!r} is not the name of a resource: write it as for kubectl, such as pods or deployments.apps"
        )
    if not dot:
        return (ResourceName(name),)
    version, second_dot, group = rest.partition(".")
    readings = (ResourceName(name, rest),)
    return (ResourceName(name, group, version), *readings) if second_dot else readings


class UnknownResource(UsageError, LookupError):
    """The server does not serve the resource: a complete discovery does not list it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the server has no resource {name!r}; list its resources with `kubectl api-resources`, "
            "or write group/version/plural"
        )
        self.name = name


class DiscoveryIncomplete(AioinformerError):
    """A part of the discovery failed that could have the resource; a later attempt may succeed.

    Attributes:
        failures: why versions could not be read, by group and version.
    """

    def __init__(self, name: str, failures: dict[str, str]) -> None:
        reasons = ", ".join(f"{where} ({why})" for where, why in failures.items())
        super().__init__(f"cannot decide which resource {name!r} is: discovery lacks {reasons}")
        self.failures = failures
