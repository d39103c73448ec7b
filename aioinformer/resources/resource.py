"""Resources of the API: group, version and plural, and their URLs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

import msgspec

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

#: Segments of paths that need no quoting.
_PLAIN = re.compile(r"[a-zA-Z0-9.-]*[a-zA-Z0-9][a-zA-Z0-9.-]*").fullmatch


class Resource(msgspec.Struct, Generic[T_co], frozen=True):
    """A resource of the API, as discovery describes it.

    The objects of its informers and clients are of the type that its `decoder` returns. The constants in
    `aioinformer.models` have the types of the built-in kinds: `core_v1.PODS` is a `Resource[core_v1.Pod]`.

    Attributes:
        group: API group, "" for the core group.
        version: "v1", "v1beta1" …
        plural: the last part of the URL, "pods".
        kind: "Pod".
        namespaced: whether objects are in a namespace.
        model: name of the kubernetes_asyncio model ("V1Pod"), "" for access as a mapping.
        singular: "pod".
        short_names: names that kubectl also accepts, ("po",).
        subresources: ("status", "scale", …), without the plural.
        verbs: the verbs in discovery, () if they are unknown.
        categories: such as ("all",).
        decoder: your own model for the objects: a msgspec, dataclass or pydantic class, or a function of JSON bytes.
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
    decoder: type[T_co] | Callable[[bytes], T_co] | None = None

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group: the `apiVersion` of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`deployments.apps`, or `pods` in the core group: the name in messages of the API."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def gvr(self) -> str:
        """`apps/v1/deployments` (core: `v1/pods`): a unique name, which the command line accepts."""
        return f"{self.api_version}/{self.plural}"

    @property
    def holds_secrets(self) -> bool:
        """Whether its objects are Secrets by plural or kind, so that their values must not be shown."""
        return self.plural == "secrets" or self.kind == "Secret"

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the collection, or of one object.

        Args:
            namespace: "" for all namespaces, or for cluster-scoped resources.
            name: "" for the collection.

        Raises:
            UsageError: one of them, or a part of this resource, cannot be a segment of a path; see `path_segment`.
        """
        parts = ["/apis", path_segment(self.group, "group")] if self.group else ["/api"]
        parts.append(path_segment(self.version, "version"))
        if namespace and self.namespaced:
            parts += ["namespaces", path_segment(namespace, "namespace")]
        parts.append(path_segment(self.plural, "plural"))
        if name:
            parts.append(path_segment(name, "name"))
        return "/".join(parts)

    def require(self, *verbs: str) -> None:
        """Raise if the resource lacks one of these verbs. Its verbs may be unknown; then do nothing.

        Raises:
            UsageError: a verb is missing. The message names it, and how to find resources that have it.
        """
        lacking = [verb for verb in verbs if verb not in self.verbs]
        if self.verbs and lacking:
            raise UsageError(
                f"{self.gvr} has no verb {' and '.join(lacking)}, only {', '.join(self.verbs)}; to see resources that "
                f"have, run `kubectl api-resources --verbs={','.join(verbs)}`"
            )

    def __str__(self) -> str:
        return self.gvr


def path_segment(segment: str, what: str) -> str:
    """Return a segment of a path as URLs have it.

    A segment that a server or a proxy could read as another path is refused, as API servers refuse it in names: with
    `.` or `..`, a request for one object becomes one for a collection or a namespace.

    Args:
        segment: a name, a namespace, a subresource, or a part of a resource; not quoted.
        what: which of these, for the error.

    Raises:
        UsageError: it is empty, "." or "..", or contains "/", "%" or a control character.
    """
    given: object = segment
    text = given if isinstance(given, str) else ""
    if _PLAIN(text):
        return text  # most names need no quoting, and then nothing is imported for it
    if text in ("", ".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise UsageError(
            f'{what}: {segment!r} cannot be a part of a URL: it must be a string, neither empty nor "." nor "..", '
            'without "/", "%" and control characters'
        )
    from urllib.parse import quote

    return quote(segment, safe="")
