"""`Converter`: objects of one version of a custom resource as objects of another one, by way of the hub.

The hub is the version that is stored. Each other version declares its steps to the hub. A conversion there and back
changes nothing that the other version has not changed:

1. The steps make the other object, and what its version does not have is left out.
2. What was kept from an earlier conversion for this version is restored, as far as it is still valid.
3. The steps of the way back show what of the original is lost; an annotation keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.crds.conversion.kept import lost, restore, unreadable
from aioinformer.crds.conversion.pruning import OF_OBJECTS, prune
from aioinformer.crds.conversion.steps import ConversionError
from aioinformer.crds.declaration import CustomResource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioinformer.crds.conversion.steps import Step

#: Precedes the name of a version, in the annotation with what other versions lack of it.
LOST: Final = "aioinformer/lost-"
#: Precedes it in the annotation to which one that cannot be read gives way.
UNREAD: Final = "aioinformer/unread-"


class Converter:
    """Converts objects between the versions of a resource. It needs no cache and no server.

    Args:
        resource: with its other versions, each with `conversion=`.

    Attributes:
        declared: as given.

    Raises:
        UsageError: a class has no structural schema.
    """

    def __init__(self, resource: CustomResource[Any]) -> None:
        self.declared = resource
        versions = (resource, *resource.others)
        self._hub = next(each for each in versions if each.storage)
        self._versions = {each.api_version: each for each in versions}
        self._schemas = {each.api_version: each.schema() for each in versions}

    @property
    def resource(self) -> CustomResource[Any]:
        """The version that is stored."""
        return self._hub

    def convert(self, document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
        """Return an object in another version; the given one stays as it is.

        Of its metadata, only annotations change. An object that lacks fields, and one that is not valid, is converted
        as far as it goes; what is left over is kept in the annotation.

        Args:
            document: the object, as JSON has it.
            api_version: of the result, "example.com/v1".

        Raises:
            ConversionError: a function of a step failed, or what would be kept is too large; the message names version
                and field.
        """
        given: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
        for version in (str(given.get("apiVersion")), api_version):
            if version not in self._versions:
                raise ConversionError(f"{version}: no such version; there are {', '.join(self._versions)}")
        for target in (self._hub.api_version, api_version):
            if given["apiVersion"] != target:
                given = self._convert(given, target)
        return given

    def _convert(self, given: dict[str, Any], target: str) -> dict[str, Any]:
        source = given["apiVersion"]
        try:
            found = self._stepped(given, target)
            self._restore(found, target)
            text = self._lost(given, found)
        except ConversionError as error:
            raise ConversionError(f"{source} to {target}: {error}") from error
        except RecursionError:
            raise ConversionError(f"{source} to {target}: the object is nested too deeply") from None
        if text:
            annotations = _annotations(found)
            present = annotations.get(_annotation(source))
            if isinstance(present, str) and unreadable(present):
                annotations[f"{UNREAD}{_version(source)}"] = present
            annotations[_annotation(source)] = text
        return found

    def _stepped(self, given: dict[str, Any], target: str) -> dict[str, Any]:
        """Return what the steps make of an object, without what its version does not have."""
        document = msgspec.json.decode(msgspec.json.encode(given))
        spoke = self._versions[given["apiVersion"] if target == self._hub.api_version else target]
        steps: Sequence[Step] = spoke.conversion or ()
        if target == self._hub.api_version:
            for step in steps:
                step.to_hub(document)
        else:
            for step in reversed(steps):
                step.from_hub(document)
        document["apiVersion"] = target
        pruned: dict[str, Any] = prune(document, self._schemas[target], is_object=True)
        return pruned

    def _restore(self, document: dict[str, Any], version: str) -> None:
        """Restore what was kept for a version. An annotation that cannot be read stays, and restores nothing."""
        metadata = document.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(annotations, dict):
            return
        text = annotations.get(_annotation(version))
        if isinstance(text, str) and not unreadable(text):
            restore(document, text)
            del annotations[_annotation(version)]
            if not annotations:
                del metadata["annotations"]

    def _lost(self, given: dict[str, Any], found: dict[str, Any]) -> str:
        back = self._stepped(found, given["apiVersion"])
        return lost(_content(given), _content(back), self._schemas[given["apiVersion"]])


def unread_annotation(converted: Mapping[str, Any]) -> tuple[str, str]:
    """Return the annotation that should have restored fields of a converted object, and why it has not; "" for none."""
    name = _annotation(str(converted.get("apiVersion")))
    metadata = converted.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or name not in annotations:
        return "", ""
    return name, unreadable(str(annotations[name]))


def _annotations(document: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations of an object, with those that are none replaced."""
    place = document
    for name in ("metadata", "annotations"):
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    return place


def _annotation(api_version: str) -> str:
    return f"{LOST}{_version(api_version)}"


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _content(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in OF_OBJECTS}
