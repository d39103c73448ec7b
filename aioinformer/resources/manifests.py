"""Manifests: read them from YAML and JSON, with their lines."""

from __future__ import annotations

import json
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from aioinformer.errors import UsageError
from aioinformer.resources import catalog
from aioinformer.resources.crds import CustomResourceDefinition
from aioinformer.resources.resource import Resource
from aioinformer.transport.auth.yaml_documents import Document, documents, line_of
from aioinformer.transport.auth.yaml_scalars import json_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Manifest(dict[str, Any]):
    """The body of an object, as every method of the client takes it.

    Attributes:
        source: where it was read, "widgets.yaml:12", or "line 12" of a text.
        resource: of its kind: a built-in one, or one that another manifest defines; None for all others, which
            `client.apply_all` looks for in the cluster.
    """

    def __init__(self, body: dict[str, Any], source: str, resource: Resource[Any] | None = None) -> None:
        super().__init__(body)
        self.source = source
        self.resource = resource

    @property
    def title(self) -> str:
        """Kind, namespace and name, for people: "Deployment shop/web"."""
        stated = self.get("metadata")
        metadata = stated if isinstance(stated, dict) else {}
        key = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
        return f"{self.get('kind')} {key or metadata.get('generateName', '')}"


def load_manifests(source: str | bytes | Path) -> list[Manifest]:
    """Return the objects in a file, in the files of a folder and its subfolders, or in a text, in their order.

    Documents are separated by `---`; empty ones are skipped, and the items of a List are returned in its place. Of a
    folder, the files `*.yaml`, `*.yml` and `*.json` are read in the order of their names, without hidden ones and
    `kustomization.yaml`.

    Args:
        source: a path, as `Path` or as a text of one line; or YAML or JSON, as bytes or as a text of several lines.

    Raises:
        UsageError: a file cannot be read, or a document is no object; the message names file and line.
    """
    if isinstance(source, bytes) or (isinstance(source, str) and "\n" in source):
        found = list(_objects(source, ""))
    else:
        found = [each for file in _files(Path(source)) for each in _read(file)]
    _check_once(found)
    defined = {(each.api_version, each.kind): each for manifest in found for each in _defined_by(manifest)}
    for each in found:
        group, _, version = each["apiVersion"].rpartition("/")
        known = catalog.by_kind(group, version, each["kind"])
        each.resource = known or defined.get((each["apiVersion"], each["kind"]))
    return found


def _defined_by(manifest: Manifest) -> list[Resource[Any]]:
    """Return the resource that a manifest defines, in each version; [] if it is no definition."""
    if (manifest["apiVersion"], manifest["kind"]) != _DEFINITION:
        return []
    try:
        definition = msgspec.convert(manifest, CustomResourceDefinition)
    except msgspec.ValidationError as error:
        raise UsageError(f"{manifest.source}: {manifest.title}: {error}") from error
    return [definition.resource(version.name) for version in definition.spec.versions]


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and not file.name.startswith("."))
    return [file for file in found if file.stem != "kustomization"]


def _read(file: Path) -> Iterator[Manifest]:
    try:
        yield from _objects(file.read_bytes(), str(file))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error


def _objects(text: str | bytes, file: str) -> Iterator[Manifest]:
    def at(line: int) -> str:
        return f"{file}:{line}" if file else f"line {line}"

    try:
        for document in _documents(text, file):
            if document.repeated:
                line, key = document.repeated[0]
                raise UsageError(f"{at(line)}: cannot be read: the key {key!r} occurs twice")
            for body, line in _bodies(document):
                yield _checked(body, at(line))
    except yaml.MarkedYAMLError as error:
        last = line_of(error, text)
        raise UsageError(f"{file if last is None else at(last)}: cannot be read: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        place = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise UsageError(f"{at(place)}: cannot be read: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise UsageError(f"{file or 'the text'}: cannot be read: it is nested too deeply") from None


def _documents(text: str | bytes, file: str) -> Iterable[Document]:
    """Return the documents. As with kubectl, what begins with a brace is JSON if it can be, and otherwise YAML."""
    is_json = file.endswith(".json")
    if is_json or text.lstrip()[:1] in ("{", b"{"):
        try:
            return list(_json_documents(text))
        except ValueError:
            if is_json:
                raise
    return documents(text)


def _json_documents(text: str | bytes) -> Iterator[Document]:
    """Yield the objects of JSON, one after the other. They have no lines."""
    repeated: list[tuple[int, str]] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend((1, name) for name in members if names.count(name) > 1)
        return members

    def number(digits: str) -> Any:
        return json_value(float(digits))

    def whole(digits: str) -> Any:
        found = int(digits)
        return found if -(2**63) <= found < 2**63 else number(digits)

    def refuse(word: str) -> Any:
        raise ValueError(f"JSON has no {word}")

    decoder = json.JSONDecoder(
        object_pairs_hook=unique, parse_float=number, parse_int=whole, parse_constant=refuse, strict=True
    )
    decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    place = len(decoded) - len(decoded.lstrip())
    while place < len(decoded):
        value, end = decoder.raw_decode(decoded, place)
        yield Document(value, 1, (), tuple(repeated))
        place = len(decoded) - len(decoded[end:].lstrip())


def _bodies(document: Document) -> Iterator[tuple[Any, int]]:
    """Yield the value of a document, or the items of a List, with their lines."""
    value = document.value
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value:
        yield from zip(value["items"] or (), document.item_lines or repeat(document.line), strict=False)
    elif value is not None:
        yield value, document.line


def _checked(body: Any, source: str) -> Manifest:
    if not isinstance(body, dict):
        raise UsageError(f"{source}: expected an object with apiVersion and kind, not {type(body).__name__}")
    for name in ("apiVersion", "kind"):
        if not (isinstance(body.get(name), str) and body[name]):
            raise UsageError(f"{source}: {name} is missing, or no text")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise UsageError(f"{source}: {body['kind']}: metadata.name is missing")
    for name in ("name", "generateName", "namespace"):
        if not isinstance(metadata.get(name, ""), str):
            raise UsageError(
                f"{source}: {body['kind']}: metadata.{name} must be a text, not {metadata[name]!r}; quote it"
            )
    return Manifest(body, source)


def _check_once(found: Iterable[Manifest]) -> None:
    first: dict[tuple[str, str], Manifest] = {}
    for each in found:
        if "name" in each["metadata"]:
            known = first.setdefault((each["apiVersion"].rpartition("/")[0], each.title), each)
            if known is not each:
                raise UsageError(f"{each.source}: {each.title} is in {known.source} already; remove one of them")
