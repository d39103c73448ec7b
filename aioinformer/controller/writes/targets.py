"""What a write is about, from its request; and what the server has stored, from the answer. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from typing import Any

    from aioinformer.transport import Request

#: The verbs of the API that write, as in RBAC rules.
VERBS: Final = ("create", "update", "patch", "delete", "deletecollection")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: The only subresources of namespaces: what else follows the name is a resource in the namespace.
_OF_NAMESPACES: Final = ("status", "finalize")


class Target(NamedTuple):
    """What a write is about.

    Attributes:
        verb: one of `VERBS`.
        group: API group, "" for the core group.
        version: of the API.
        plural: the resource as in URLs.
        namespace: "" for cluster-scoped resources.
        name: of the object; "" for a collection.
        subresource: "" for the object itself.
    """

    verb: str
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def what(self) -> str:
        """The resource and the subresource, as in RBAC rules and with the group: "deployments.apps/scale"."""
        resource = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{resource}/{self.subresource}" if self.subresource else resource

    @property
    def resource(self) -> Resource[Any]:
        """The resource. Its kind is not known."""
        return Resource(self.group, self.version, self.plural, "", namespaced=bool(self.namespace))

    def __str__(self) -> str:
        where = self.key if self.name else f"in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.what} {where}".rstrip()


def target_of(request: Request) -> Target | None:
    """Return what a write is about; None if its path is not that of a resource."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in _OF_NAMESPACES):
        namespace, rest = rest[1], rest[2:]
    plural, name = rest[0], unquote(rest[1]) if len(rest) > 1 else ""
    verb = _VERBS.get(request.method, request.method.lower())
    if verb == "delete" and not name:
        verb = "deletecollection"
    return Target(verb, group, version, plural, namespace, name, "/".join(rest[2:]))


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of the metadata of an object or a list."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str | None] | None = None


class _Details(msgspec.Struct, frozen=True, gc=False):
    uid: str | None = None


_NO_METADATA: Final = Metadata()
_NO_DETAILS: Final = _Details()


class Item(msgspec.Struct, frozen=True, gc=False):
    """The metadata of an object in a list."""

    metadata: Metadata = _NO_METADATA


class Document(msgspec.Struct, frozen=True, gc=False):
    """What is read of bodies and answers: of objects, of lists, and of Status."""

    kind: str = ""
    metadata: Metadata = _NO_METADATA
    details: _Details | None = None
    items: list[Item] | None = None

    @property
    def uid(self) -> str:
        """The uid of the object, or that in the details of a Status; "" for none."""
        return self.metadata.uid or (self.details or _NO_DETAILS).uid or ""

    @property
    def version(self) -> str:
        """The version of the object, "" for none."""
        return self.metadata.resource_version or ""


_decode = msgspec.json.Decoder(Document).decode


def read(raw: bytes | None) -> Document:
    """Return what is known of a body or an answer; an empty document if it cannot be read."""
    try:
        return _decode(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Document()
