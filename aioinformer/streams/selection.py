"""What a reader of changes selects: namespaces, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from aioinformer.errors import UsageError
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.selectors import LabelSelector, label_selector_of

_decode_labels = msgspec.json.Decoder(dict[str, str | None] | None).decode


class Selection(msgspec.Struct, frozen=True, eq=False):
    """The objects that a reader may see and wants to see. `selected` returns the same one for the same arguments.

    Attributes:
        namespaces: the names of namespaces; None for all of them, and for cluster-scoped resources.
        selector: of labels.
    """

    namespaces: frozenset[str] | None
    selector: LabelSelector

    def selects(self, namespace: str, labels: bytes | None) -> bool:
        """Return whether an object is selected.

        Args:
            namespace: of the object, "" if it has none.
            labels: their JSON; None if there is no object.
        """
        if labels is None or (self.namespaces is not None and namespace not in self.namespaces):
            return False
        return self.selector.empty or self.selector.matches(read_labels(labels))

    @property
    def text(self) -> str:
        """The selection as text: equal for equal selections, and different for others."""
        namespaces = "*" if self.namespaces is None else ",".join(sorted(self.namespaces))
        return f"{namespaces};{self.selector}"


@lru_cache(maxsize=1024)
def selected(namespaces: frozenset[str] | None, selector: LabelSelector) -> Selection:
    """Return the selection of these namespaces and labels, which equal readers share."""
    return Selection(namespaces, selector)


def selection_of(namespace: str | Iterable[str] | None, selector: str | LabelSelector | Mapping[str, str]) -> Selection:
    """Return the selection of these options.

    Args:
        namespace: the name of a namespace, or several; None and "" for all.
        selector: of labels, in any form.

    Raises:
        SelectorError: the selector is invalid.
        UsageError: a name of a namespace is invalid, or the list is empty.
    """
    labels = label_selector_of(selector)
    if namespace is None or namespace == "":
        return selected(None, labels)
    wanted = frozenset([namespace] if isinstance(namespace, str) else namespace)
    if not wanted:
        raise UsageError("namespace: the list is empty; name at least one namespace, or pass None for all of them")
    for each in wanted:
        check_namespace(each, "namespace")
        if not each:
            raise UsageError('namespace: "" in a list does not mean all namespaces; pass None for all of them')
    return selected(wanted, labels)


@lru_cache(maxsize=1024)  # labels are often equal, and each reader of another selection compares them
def read_labels(labels: bytes) -> Mapping[str, str]:
    """Return labels from their JSON; none if they are invalid."""
    try:
        found = _decode_labels(labels) or {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {name: value or "" for name, value in found.items()}
