"""The types of the built-in resources: what kubernetes_asyncio's models and the API's own definitions say together.

`definitions.xz` has the required properties and the descriptions; `record_definitions.py` writes it.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from introspection import ApiResource

_SOURCE = Path(__file__).resolve().parent / "definitions.xz"

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
#: Packages of Go whose group has another name.
_GROUPS = {"apiserverinternal": "internal"}
#: The models of subresources that are objects of another kind, with the plurals of these.
SUBRESOURCES = {"V1Scale": "scales", "V1Eviction": "evictions", "AuthenticationV1TokenRequest": "tokenrequests"}

_LIST = re.compile(r"^list\[(.+)\]$")
_MAP = re.compile(r"^dict\(str, (.+)\)$")
_ABBREVIATION = re.compile(r"(?:e\.g|i\.e|etc|vs|cf|ex)\.$", re.IGNORECASE)


@dataclass(frozen=True)
class Attribute:
    """An attribute of a model.

    Attributes:
        name: in Python.
        kind: in kubernetes_asyncio's notation, "list[V1Container]".
        shape: the definition, format or type of the value or its elements in the API's definitions.
        required: whether the API requires it.
        summary: the first sentence of its description.
    """

    name: str
    kind: str
    shape: str
    required: bool
    summary: str

    @property
    def is_collection(self) -> bool:
        """Return whether it is a list or a map."""
        return self.kind.startswith(("list[", "dict("))


@dataclass(frozen=True)
class Type:
    """A type of the API.

    Attributes:
        model: kubernetes_asyncio's name, "V1PodSpec".
        module: the module of the package that has it, "core_v1".
        name: its name there, "PodSpec".
        summary: the first sentence of its description.
        attributes: in kubernetes_asyncio's order.
    """

    model: str
    module: str
    name: str
    summary: str
    attributes: tuple[Attribute, ...]


def version() -> str:
    """Return the version of Kubernetes whose definitions these are."""
    return str(_document()["version"])


def types(models: Iterable[tuple[str, dict[str, str], dict[str, str]]], resources: Iterable[ApiResource]) -> list[Type]:
    """Return the types of all resources and their attributes, by module and name.

    Args:
        models: name, attribute types and wire names of each model.
        resources: the built-in resources.

    Raises:
        ValueError: the definitions lack a model or an attribute of it.
    """
    by_name = {name: (kinds, wire_names) for name, kinds, wire_names in models}
    named = {model: name for name in _document()["definitions"] for model in _models_of(name) if model in by_name}
    reachable: set[str] = set()
    for root in (*(resource.model for resource in resources), *SUBRESOURCES):
        _reach(root, by_name, reachable)
    if missing := reachable - named.keys():
        raise ValueError(f"definitions.xz lacks {sorted(missing)}; record it again")
    found = [_type(model, named[model], *by_name[model]) for model in reachable]
    return sorted(found, key=lambda each: (each.module, each.name))


def required_collections(types: Iterable[Type]) -> dict[str, set[str]]:
    """Return the required lists and maps of each model that has some."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in types:
        for attribute in each.attributes:
            if attribute.required and attribute.is_collection:
                found[each.model].add(attribute.name)
    return found


def quantities(types: Iterable[Type]) -> dict[str, set[str]]:
    """Return the quantities of each model, and its lists of quantities; those in maps are read as they are."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in types:
        for attribute in each.attributes:
            if attribute.shape == QUANTITY and not attribute.kind.startswith("dict("):
                found[each.model].add(attribute.name)
    return found


def element(kind: str) -> str:
    """Return the innermost type in kubernetes_asyncio's notation."""
    while match := _LIST.match(kind) or _MAP.match(kind):
        kind = match[1]
    return kind


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lzma.decompress(_SOURCE.read_bytes()))
    return document


def _models_of(definition: str) -> Iterator[str]:
    """Yield the names that kubernetes_asyncio may give the model of a definition; one with a group is unambiguous."""
    group, version, name = definition.split(".")[-3:]
    yield f"{version.capitalize()}{name}"
    yield f"{group[0].upper()}{group[1:]}{version.capitalize()}{name}"


def _reach(model: str, by_name: Mapping[str, Any], reachable: set[str]) -> None:
    if model in by_name and model not in reachable:
        reachable.add(model)
        for kind in by_name[model][0].values():
            _reach(element(kind), by_name, reachable)


def _type(model: str, definition: str, kinds: dict[str, str], wire_names: dict[str, str]) -> Type:
    group, version, name = definition.split(".")[-3:]
    recorded = _document()["definitions"][definition]
    attributes = []
    for attribute, kind in kinds.items():
        wire = wire_names[attribute]
        if wire not in recorded["properties"]:
            raise ValueError(f"definitions.xz lacks {wire} of {definition}; record it again")
        text, shape = recorded["properties"][wire]
        attributes.append(Attribute(attribute, kind, shape, wire in recorded["required"], first_sentence(text)))
    module = f"{_GROUPS.get(group, group)}_{version}"
    return Type(model, module, name, first_sentence(recorded["description"]), tuple(attributes))


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    end = 0
    while (end := paragraph.find(". ", end) + 1) > 0:
        if not _ABBREVIATION.search(paragraph[:end]):
            return paragraph[:end]
    return paragraph
