"""What a write is about, from its request; and what the server has stored, from the answer. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import msgspec

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest

#: The verbs of the API that write, as in RBAC rules.
VERBS: Final = ("create", "update", "patch", "delete", "deletecollection")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: What follows the name of a namespace, and is no resource in it.
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
        """The resource with its group and the subresource: "deployments.apps/scale"."""
        resource = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{resource}/{self.subresource}" if self.subresource else resource

    def __str__(self) -> str:
        where = f"in {self.namespace}" if self.namespace else ""
        if self.name:
            where = self.key
        return f"{self.verb} {self.what} {where}".rstrip()


def target_of(request: HttpRequest) -> Target | None:
    """Return what a request is about; None if its path is not that of a resource."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group = ""
        version = parts[1]
        rest = parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group = parts[1]
        version = parts[2]
        rest = parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in _OF_NAMESPACES):
        namespace = rest[1]
        rest = rest[2:]
    name = unquote(rest[1]) if len(rest) > 1 else ""
    verb = _VERBS.get(request.method, request.method.lower())
    if verb == "delete" and not name:
        verb = "deletecollection"
    return Target(verb, group, version, rest[0], namespace, name, "/".join(rest[2:]))


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of metadata, and of the details of a Status."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None
    labels: dict[str, str | None] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name or ""

    @property
    def ended(self) -> bool:
        """Whether nothing keeps an object that is being deleted: the write that removed its last finalizer ended it."""
        return bool(self.deletion_timestamp) and not (self.finalizers or self.deletion_grace_period_seconds)


class Document(msgspec.Struct, frozen=True, gc=False):
    """What is read of bodies and answers: of objects and of a Status.

    Attributes:
        kind: "" if it is not stated.
        metadata: of the object.
        details: encoded; of a Status. Custom resources may have other members of this name.
    """

    kind: str = ""
    metadata: Metadata = Metadata()
    details: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def deleted(self) -> str:
        """The uid in a Status that answers a deletion, "" for none."""
        return _decode_details(self.details).uid or ""


_decode = msgspec.json.Decoder(Document).decode
_decode_details = msgspec.json.Decoder(Metadata).decode


def read(raw: bytes | None) -> Document:
    """Return what is known of a body or an answer; an empty document if it cannot be read."""
    try:
        return _decode(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Document()
