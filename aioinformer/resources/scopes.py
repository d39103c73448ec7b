"""Scopes: the part of a collection that an informer watches, by namespace and by selectors that the server applies.

Resource and scope together identify an informer of a factory. Two scopes of a resource have two informers, each with a
cache and a watch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.errors import OptionError, UsageError
from aioinformer.resources.selectors import field_selector_of, label_selector_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.resource import Resource

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
#: Characters of selectors that stay unquoted in a key, to keep it readable.
_READABLE: Final = "=,!()<> /.:\\"


class Scope(msgspec.Struct, frozen=True):
    """A part of a collection, validated.

    Attributes:
        namespace: "" for all namespaces, and for cluster-scoped resources.
        label_selector: in canonical text, "" for all objects.
        field_selector: in canonical text, "" for all objects.
    """

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @classmethod
    def requested(cls, options: Mapping[str, Any], own: Scope, resource: Resource[Any]) -> Scope:
        """Return the scope for the options of an informer.

        Args:
            options: the options of the informer. Missing ones are those of `own`.
            own: the scope of the factory. Its namespace does not limit cluster-scoped resources.

        Raises:
            OptionError: the namespace is invalid.
            SelectorError: a selector is invalid.
            UsageError: the options have a namespace, and the resource is cluster-scoped.
        """
        namespace = options.get("namespace", own.namespace if resource.namespaced else "")
        check_namespace(namespace)
        if namespace and not resource.namespaced:
            raise UsageError(f"{resource.gvr} is cluster-scoped: leave out namespace={namespace!r}")
        return cls(
            namespace,
            str(label_selector_of(options.get("label_selector", own.label_selector), "label_selector")),
            str(field_selector_of(options.get("field_selector", own.field_selector), "field_selector")),
        )

    def __str__(self) -> str:
        parts = (("namespace", self.namespace), ("labels", self.label_selector), ("fields", self.field_selector))
        return ", ".join(f"{name} {value}" for name, value in parts if value)


class InformerKey(msgspec.Struct, frozen=True):
    """Identifies an informer of a factory.

    `str()` returns the `gvr` of the resource, followed by the options in which the scope differs from that of the
    factory: `v1/pods?namespace=shop&labelSelector=app=web`.

    Attributes:
        scope: the part of it that the informer watches.
        own: the scope of the factory for this resource.
    """

    resource: Resource[Any]
    scope: Scope
    own: Scope

    @property
    def differences(self) -> dict[str, str]:
        """The options in which the scope differs from that of the factory, by their names in URLs."""
        scope = self.scope
        own = self.own
        pairs = (
            ("namespace", scope.namespace, own.namespace),
            ("labelSelector", scope.label_selector, own.label_selector),
            ("fieldSelector", scope.field_selector, own.field_selector),
        )
        return {name: value for name, value, default in pairs if value != default}

    @property
    def query(self) -> str:
        """The differences in the form of a URL's query: "namespace=shop&labelSelector=app=web"."""
        from urllib.parse import quote

        return "&".join(f"{name}={quote(value, safe=_READABLE)}" for name, value in self.differences.items())

    def __str__(self) -> str:
        query = self.query
        return f"{self.resource.gvr}?{query}" if query else self.resource.gvr


def key_of(resource: Resource[Any], options: Mapping[str, Any], own: Scope) -> InformerKey:
    """Return the identity of an informer.

    Raises:
        UsageError: as `Scope.requested`.
    """
    if resource.namespaced:
        here = own
    else:
        here = Scope("", own.label_selector, own.field_selector)
    return InformerKey(resource, Scope.requested(options, here, resource), here)


def check_namespace(namespace: object, option: str = "namespace") -> None:
    """Raise unless `namespace` is a valid name of a namespace, or "" for all namespaces.

    Raises:
        OptionError: it is neither.
    """
    if not isinstance(namespace, str):
        raise OptionError(f'{option} must be the name of a namespace, or "" for all namespaces, not {namespace!r}')
    if namespace and not (len(namespace) <= 63 and _NAMESPACE.fullmatch(namespace)):
        raise OptionError(f"{option}: {namespace!r} cannot be a namespace: use up to 63 characters of a-z 0-9 -")
