"""Parse untrusted YAML: aliases and nesting are limited before they are expanded.

A few hundred bytes of nested aliases can stand for more values than fit into memory. The parser keeps them as one
graph, but merging of keys (`<<`), and any walk through the values, follows each path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import ComposerError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_ALIASED = 4 * 1024 * 1024
"""How many bytes aliases may add to a document. Each value counts as `_LEAST` bytes or more."""
_LEAST = 32


class UnboundedDocument(ComposerError):
    """A document is nested too deeply, or its aliases expand to too much. `problem` says which, without values."""


class _BoundedLoader(yaml.SafeLoader):
    def compose_document(self) -> yaml.Node | None:
        try:
            node: yaml.Node | None = super().compose_document()
            if node is not None:
                _check_aliases(node)
        except RecursionError:
            raise UnboundedDocument(None, None, "exceeded max depth", None) from None
        return node


def load_yaml(data: bytes | str) -> Any:
    """Return the value of the only document.

    Raises:
        YAMLError: there are several documents, or one is not YAML, is nested too deeply, or has too many aliases.
    """
    return yaml.load(data, _BoundedLoader)


def load_all_yaml(data: bytes | str) -> Iterator[Any]:
    """Yield the value of each document."""
    return yaml.load_all(data, _BoundedLoader)


def load_marked(data: bytes | str) -> Iterator[tuple[Any, yaml.Node]]:
    """Yield the value of each document, with its nodes, which have the lines. Keys that occur twice are refused.

    Raises:
        YAMLError: as `load_all_yaml`.
    """
    loader = _BoundedLoader(data)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            _check_keys(node)
            yield loader.construct_document(node), node
    finally:
        loader.dispose()


def compose_first(data: bytes | str) -> yaml.Node | None:
    """Return the nodes of the first document."""
    return next(iter(yaml.compose_all(data, _BoundedLoader)), None)


def _check_aliases(root: yaml.Node) -> None:
    """Raise if a graph expands to a much larger tree, or to an endless one."""
    sizes: dict[int, int] = {}  # 0 while the content of a node is being measured
    written = 0

    def size_of(node: yaml.Node) -> int:
        nonlocal written
        size = sizes.get(id(node))
        if size == 0:
            raise UnboundedDocument(None, None, "an anchor's value contains itself", node.start_mark)
        if size is None:
            sizes[id(node)] = 0
            own = _LEAST + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            written += own
            sizes[id(node)] = size = own + sum(map(size_of, _parts(node)))
        return size

    if size_of(root) - written > _MOST_ALIASED:
        raise UnboundedDocument(None, None, "document contains excessive aliasing", None)


def _check_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys and key.value != "<<":
                raise ComposerError(None, None, f"the key {key.value!r} occurs twice", key.start_mark)
            keys.add(str(key.value))
    for part in _parts(node):
        _check_keys(part)


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
