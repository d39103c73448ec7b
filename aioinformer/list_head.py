"""What a list says of itself, once its items are taken out, and what an answer says that is a failure."""

from __future__ import annotations

import msgspec

from aioinformer.errors import ApiError, DecodeError, api_error


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a page of a list."""

    resource_version: str | None = ""
    continue_: str | None = msgspec.field(name="continue", default="")


class ListHead(msgspec.Struct, gc=False):
    """A list without its items."""

    metadata: ListMeta | None = None
    kind: str = ""


class _List(ListHead, gc=False):
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_head = msgspec.json.Decoder(_List).decode  # here, since event loops in two threads may be the first


def head_of(document: bytes) -> ListHead:
    """Read what a list says of itself. Its kind may be any: a custom resource chooses what its lists are called.

    Args:
        document: the list; its items may be left out, their brackets may not.

    Raises:
        DecodeError: it is no list.
        ApiError: it is a Status.
    """
    try:
        head = _decode_head(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_a_list(document) from error
    if head.kind == "Status":
        raise status_error(0, document)
    if head.kind == "Table":
        raise DecodeError("the server answered with a Table; informers need the objects themselves")
    if head.items is msgspec.UNSET:
        raise DecodeError("the server answered with something that is not a list: it has no items")
    return ListHead(head.metadata, head.kind)


def status_error(status: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error in a body that should be a Status; a body that is none says so, without being quoted."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    return api_error(status, document if isinstance(document, dict) else None, retry_after=retry_after)


def not_a_list(document: bytes) -> DecodeError:
    """The error for a body that is no list, of which nothing is quoted."""
    start = document[:1]
    hint = " (it looks like HTML: is there a proxy in between?)" if start == b"<" else ""
    return DecodeError(f"the body is not a JSON list{hint}")
