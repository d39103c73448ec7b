"""What is listed and watched: a group, a version and a plural, and how its URLs are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

from aioinformer.errors import UsageError

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T_co]):
    """One resource of the API, as discovery would describe it.

    `Resource[V1Pod]` tells editors and mypy what an informer of it hands out.

    Attributes:
        group: API group, "" for the core group.
        version: "v1", "v1beta1" …
        plural: the last part of the URL, "pods".
        kind: "Pod".
        namespaced: whether objects live in a namespace.
        model: name of the kubernetes_asyncio model ("V1Pod"), or "" for mapping access.
        singular: as discovery says it, "pod".
        short_names: what kubectl also takes, ("po",).
        subresources: ("status", "scale", …), without the plural in front.
        verbs: as discovery lists them; none if nothing is known of them.
        categories: such as ("all",).
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    model: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group: what objects carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`deployments.apps`, or `pods` in the core group: how the API names resources in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def gvr(self) -> str:
        """`apps/v1/deployments` (core: `v1/pods`): unique, and accepted by the command line."""
        return f"{self.api_version}/{self.plural}"

    @property
    def holds_secrets(self) -> bool:
        """Whether its objects are Secrets, whose values are not shown: by its name, or by its kind."""
        return self.plural == "secrets" or self.kind == "Secret"

    def path(self, namespace: str = "", name: str = "") -> str:
        """The URL path of the collection, or of one object.

        Args:
            namespace: "" for all namespaces, or for cluster-scoped resources.
            name: "" for the collection.
        """
        parts = ["/apis", self.group] if self.group else ["/api"]
        parts.append(self.version)
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        return "/".join(parts)

    def require(self, *verbs: str) -> None:
        """Does nothing if the resource has these verbs, or if nothing is known of its verbs.

        Raises:
            UsageError: it lacks one; says which, and how to find others that have it.
        """
        lacking = [verb for verb in verbs if verb not in self.verbs]
        if self.verbs and lacking:
            raise UsageError(
                f"{self.gvr} has no verb {' and '.join(lacking)}, only {', '.join(self.verbs)}; for resources that "
                f"have, see `kubectl api-resources --verbs={','.join(verbs)}`"
            )

    def __str__(self) -> str:
        return self.gvr
