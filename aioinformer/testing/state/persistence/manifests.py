"""Manifests on disk: read as people write them, and written so that another server can continue from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from aioinformer.errors import UsageError
from aioinformer.testing.api.golike import yaml_error
from aioinformer.testing.state.persistence.private_files import write_private
from aioinformer.transport.auth.yaml_documents import load_all_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
_STATE = ".state.json"
_HEAD, _BETWEEN, _END = b'{"apiVersion":"v1","kind":"List","items":[\n', b",\n", b"\n]}\n"


def read_manifests(path: Path) -> list[dict[str, Any]]:
    """Return all objects in a file, or in the files of a folder and its subfolders, in the order of their names.

    Documents in one file are separated by "---"; lists are expanded.

    Args:
        path: a file, or a folder whose `.yaml`, `.yml` and `.json` files are read.

    Raises:
        UsageError: the path does not exist, or a document is no object; the message names file and document.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return list(_objects(path))
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and not file.name.startswith("."))
    return [obj for file in files for obj in _objects(file)]


def saved_version(path: Path) -> int:
    """Return the version of the server whose state a folder contains; 0 for other manifests.

    Raises:
        UsageError: the file with the version is malformed.
    """
    state = path / _STATE
    if not state.is_file():
        return 0
    try:
        return int(json.loads(state.read_bytes())["resourceVersion"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{state}: resourceVersion is not there, or no number; remove the file") from error


def write_manifests(folder: Path, collections: Iterable[tuple[str, Iterable[bytes]]], version: int) -> None:
    """Write a file for each resource that has objects, such as `deployments.apps.json`; kubectl accepts them.

    Files of resources without objects are removed. Only their owner can read the files: they contain Secrets.

    Args:
        folder: created if needed.
        collections: names of resources, with the bodies of their objects.
        version: of the server.

    Raises:
        UsageError: the folder cannot be written to.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, bodies in collections:
            path, content = folder / f"{name}.json", _BETWEEN.join(bodies)
            if content:
                write_private(path, _HEAD, content, _END)
            else:
                path.unlink(missing_ok=True)
        write_private(folder / _STATE, json.dumps({"resourceVersion": str(version)}).encode(), b"\n")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text()
        documents = [json.loads(text)] if file.suffix == ".json" else list(load_all_yaml(text))
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: cannot be read: {yaml_error(error)}") from error
    except RecursionError:
        raise UsageError(f"{file}: cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        for obj in _opened(document):
            if not isinstance(obj, dict) or not (obj.get("kind") and obj.get("apiVersion")):
                raise UsageError(f"{file}: document {number} is no object: it needs apiVersion and kind")
            if not isinstance(obj.get("metadata"), dict):
                raise UsageError(f"{file}: document {number}: {obj['kind']} needs metadata with a name")
            yield obj


def _opened(document: Any) -> list[Any]:
    is_list = isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document
    return list(document["items"] or ()) if is_list else [document]
