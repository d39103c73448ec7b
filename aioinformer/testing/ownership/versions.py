"""The forms of one object in the versions of its group, and the changes of a write in each form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.schemas.field_paths import NO_FIELDS, FieldSet
from aioinformer.testing.schemas.typed_fields import Comparison, FieldType, compare, fields_of, remove

if TYPE_CHECKING:
    from collections.abc import Iterable


class View(NamedTuple):
    """The same object in another version of the API.

    Attributes:
        show: converts to the form of that version.
        hide: converts to the form of the written version.
        type_: of that form.
    """

    show: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    hide: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    type_: FieldType


Views = Mapping[str, View]
"""The other versions, by name."""
NO_VIEWS: Views = MappingProxyType({})


class Versions:
    """All versions of a group.

    Args:
        api_version: the version of the write.
        type_: of objects in it.
        views: the other versions.
    """

    def __init__(self, api_version: str, type_: FieldType, views: Views) -> None:
        self._views = {api_version: View(_as_it_is, _as_it_is, type_), **views}

    def __contains__(self, api_version: str) -> bool:
        return api_version in self._views

    def __getitem__(self, api_version: str) -> View:
        return self._views[api_version]

    def fields_in(
        self, api_version: str, obj: Mapping[str, Any], owned: Iterable[tuple[str, FieldSet]]
    ) -> frozenset[tuple[str, ...]]:
        """Return fields that are named as in many versions, named as in one.

        Args:
            api_version: the version to return.
            obj: in the version of the write.
            owned: pairs of version and fields; unknown versions are skipped.
        """
        by_version: dict[str, FieldSet] = {}
        for version, fields in owned:
            by_version[version] = by_version.get(version, NO_FIELDS) | fields
        found = by_version.pop(api_version, NO_FIELDS)
        for version, fields in by_version.items():
            if version in self:
                other, own = self[version], self[api_version]
                shown = other.show(obj)
                part = other.hide(remove(shown, fields_of(shown, other.type_) - fields, other.type_))
                found |= fields_of(own.show(part), own.type_)
        return found


class Changes:
    """The changes of a write, in each version.

    Args:
        old: the object before.
        new: the object after.
        versions: of the group.
    """

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any], versions: Versions) -> None:
        self._old = old
        self._new = new
        self._versions = versions
        self._found: dict[str, Comparison] = {}

    def knows(self, api_version: str) -> bool:
        """Return whether there is such a version."""
        return api_version in self._versions

    def taken(self, api_version: str) -> FieldSet:
        """Return the fields that are added or changed; none for an unknown version."""
        found = self._of(api_version)
        return NO_FIELDS if found is None else frozenset(found.modified | found.added)

    def removed(self, api_version: str) -> FieldSet:
        """Return the fields that are removed; none for an unknown version."""
        found = self._of(api_version)
        return NO_FIELDS if found is None else frozenset(found.removed)

    def _of(self, api_version: str) -> Comparison | None:
        if api_version not in self._found and self.knows(api_version):
            view = self._versions[api_version]
            self._found[api_version] = compare(view.show(self._old), view.show(self._new), view.type_)
        return self._found.get(api_version)


def _as_it_is(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj
